"""Workers: the boundaries of an agent, and the shell tool that keeps them.

    from px.worker import load_worker, shell

    worker = load_worker("workers/example.yaml")
    worker.sandbox.read("portfolio/notes.md")
    result = shell("git status", worker.sandbox, approve=ask_somebody)

The shell tool runs a command line, all commands of which the rules allow, in a box that shows the roots of the worker at
/workspace and read-only system directories, nothing else. A command that failed is explained in its stderr, for a model.
"""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from . import _px
from ._errors import PathNotInSandboxError, SandboxError, from_engine
from ._folders import StrPath, absolute
from ._streams import step_out, step_out_async
from ._yaml import loaded
from .files import Approval, FileSandbox, FileSandboxConfig, PathConfig, shown, usable

__all__ = [
    "AttachmentPayload",
    "Sandbox",
    "SandboxConfig",
    "SandboxError",
    "ShellResult",
    "ShellRule",
    "ToolRule",
    "Worker",
    "load_attachment",
    "load_worker",
    "shell",
    "shell_async",
]

Approve = Callable[[str], bool]
AsyncApprove = Callable[[str], Awaitable[bool]]
BLOCKED, NEEDS_APPROVAL = 321, 322  # codes of px-errors(7)
NOT_RUN = {30: 126, 31: 127}  # codes of px-errors(7), and the exit status that a shell gives for them
TIMEOUT, TIMEOUT_MAX = 30, 300


# ---- boundaries ----


@dataclass
class ShellRule:
    """Commands that begin with the words of the pattern.

    sandbox_paths: names of roots in which every argument must lie, see px-worker(1); None: anywhere
    """

    pattern: str
    approval_required: bool = True
    sandbox_paths: list[str] | None = None


@dataclass
class ToolRule:
    """Whether the worker has a tool, and whether somebody must agree each time."""

    allowed: bool = True
    approval_required: bool = False


@dataclass(init=False)
class SandboxConfig(FileSandboxConfig):
    """The directories of a worker, and what its commands may do.

    network:            whether they reach the open network; {"allow": ["pypi.org"]}: these names alone, see --allow-net
    require_os_sandbox: an error instead of a weaker box, where the host cannot give the full isolation
    shell_rules:        the first one that fits decides
    shell_default:      of every other command: "blocked", "needs_approval" or "pre_approved"
    git_writable:       whether git directories of writable roots can be written
    tool_rules:         by the name of a tool, see px-worker(1); a tool without a rule is there
    memory:             of a command: "512m"
    env:                variables of commands
    base:               what their root is made of: a base of the store, or a directory
    """

    network: bool | dict[str, list[str]] = False
    require_os_sandbox: bool = False
    shell_rules: list[ShellRule] = field(default_factory=list)
    shell_default: Approval = "blocked"
    tool_rules: dict[str, ToolRule] = field(default_factory=dict)
    memory: str | int | None = None
    env: dict[str, str] = field(default_factory=dict)
    base: str | None = None

    def __init__(
        self,
        paths: Mapping[str, PathConfig | Mapping[str, Any]],
        network: bool | Mapping[str, Sequence[str]] = False,
        require_os_sandbox: bool = False,
        shell_rules: Sequence[ShellRule | Mapping[str, Any]] = (),
        shell_default: Approval = "blocked",
        git_writable: bool = False,
        *,
        tool_rules: Mapping[str, ToolRule | Mapping[str, Any]] | None = None,
        memory: str | int | None = None,
        env: Mapping[str, str] | None = None,
        base: str | None = None,
    ) -> None:
        super().__init__(paths, git_writable)
        if shell_default not in ("blocked", "needs_approval", "pre_approved"):
            raise ValueError(f"shell_default: '{shell_default}' is none of blocked, needs_approval, pre_approved")
        self.network = (
            {name: list(hosts) for name, hosts in network.items()} if isinstance(network, Mapping) else network
        )
        self.require_os_sandbox, self.shell_default = require_os_sandbox, shell_default
        self.memory, self.env, self.base = memory, dict(env or {}), base
        self.tool_rules = {
            name: rule if isinstance(rule, ToolRule) else ToolRule(**rule) for name, rule in (tool_rules or {}).items()
        }
        self.shell_rules = [rule if isinstance(rule, ShellRule) else ShellRule(**rule) for rule in shell_rules]

    def _fields(self, base: Path) -> dict[str, Any]:
        """The same as a worker's file."""
        paths = {name: told(path, root=base / path.root) for name, path in self.paths.items()}
        found: dict[str, Any] = {
            "sandbox": {
                "paths": paths,
                "network": self.network,
                "require_os_sandbox": self.require_os_sandbox,
                "git_writable": self.git_writable is True,
                **{name: value for name in ("memory", "env", "base") if (value := getattr(self, name))},
            },
            "shell_rules": [told(rule) for rule in self.shell_rules],
            "tool_rules": {name: told(rule) for name, rule in self.tool_rules.items()},
        }
        if self.shell_default != "blocked":
            found["shell_default"] = {"approval_required": self.shell_default == "needs_approval"}
        return found


def told(item: PathConfig | ShellRule | ToolRule, **more: Any) -> dict[str, Any]:
    """What is set of it."""
    return {name: value for name, value in {**vars(item), **more}.items() if value is not None}


class Sandbox(FileSandbox):
    """A file sandbox whose boundaries hold for commands, too."""

    network_enabled: bool
    require_os_sandbox: bool

    def __init__(self, config: SandboxConfig, base_path: StrPath | None = None) -> None:
        """Relative roots are below base_path (None: the working directory)."""
        super().__init__(config, base_path)
        base = absolute(base_path or ".")
        self._take(loaded(config._fields(base), lambda file: _px.Worker(file, base)))

    def _take(self, worker: _px.Worker) -> None:
        self._worker = worker
        self._files = worker.files()
        found = self.describe()
        self.network_enabled, self.require_os_sandbox = found["network"], found["require_os_sandbox"]
        self._tools = {name: verdict_of(word) for name, word in found["tools"].items()}

    def describe(self) -> dict[str, Any]:
        """The boundaries: paths, network, require_os_sandbox, tools, shell_rules, shell_default, warnings and more."""
        found: dict[str, Any] = json.loads(self._worker.describe()[1])
        return found

    def approval(self, command: str) -> Approval:
        """What the rules say of a command; nothing is run."""
        try:
            return verdict_of(self._worker.judge(command)[0])
        except SandboxError as error:
            if error.code != BLOCKED:
                raise
            return "blocked"


def verdict_of(name: str) -> Approval:
    """The engine's word for it."""
    return "pre_approved" if name == "pre_approved" else "needs_approval" if name == "needs_approval" else "blocked"


# ---- workers ----


class Worker:
    """An agent's boundaries from its file: YAML, or the table [tool.px.worker] of a pyproject.toml."""

    def __init__(self, file: StrPath, base_path: StrPath | None = None) -> None:
        """base_path: what roots are relative to; None: the working directory, or where the pyproject.toml lies."""
        self.file = Path(file)
        self._base = base_path
        self.sandbox = Sandbox.__new__(Sandbox)
        self.sandbox._take(_px.Worker(self.file, base_path))

    def child(self, name: str) -> Worker:
        """Another worker that this one may call; it has boundaries of its own."""
        return Worker(self.sandbox._worker.child(name), self._base)

    def call(
        self,
        name: str,
        command: str,
        attachments: Sequence[str] = (),
        *,
        timeout: int = TIMEOUT,
        approve: Approve | None = None,
    ) -> ShellResult:
        """Runs a command of the other worker, within that one's boundaries; it sees attachments at /attachments.

        attachments: files of this worker's sandbox
        """
        self._allow_call(name, approve)
        for path in attachments:  # before anything of the child is read
            os.close(self.sandbox._worker.attach(path)[0])
        return shell(
            command,
            self.child(name).sandbox,
            timeout=timeout,
            approve=approve,
            attachments=attachments,
            caller=self.sandbox,
        )


    def _allow_call(self, name: str, approve: Approve | None) -> None:
        """By the tool_rules of this worker."""
        verdict = self.sandbox.tool_approval("worker_call")
        if verdict == "blocked":
            raise from_engine(BLOCKED, 0, "the worker does not have the tool 'worker_call'", "", "", "", None, None)
        if verdict == "needs_approval":
            asked = f"worker_call {name}"
            answer = approve(asked) if approve else None
            refuse_awaitable(answer)
            check_answer(asked, approve is not None, answer)


def load_worker(file: StrPath, base_path: StrPath | None = None) -> Worker:
    """The worker that the file describes."""
    return Worker(file, base_path)


@dataclass
class AttachmentPayload:
    """A file that may be handed to another worker."""

    path: str
    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.data)


def load_attachment(path: str, sandbox: Sandbox) -> AttachmentPayload:
    """Reads a file of the sandbox, of any kind, within its rules for attachments."""
    if not usable(path):
        raise PathNotInSandboxError(shown(path), sandbox.readable_roots)
    fd, _ = sandbox._worker.attach(path)
    with open(fd, "rb") as file:
        return AttachmentPayload(path, file.read())


# ---- the shell tool ----


@dataclass
class ShellResult:
    """What a model is told of a command.

    stdout:    50 KiB of each stream are kept, from the beginning and the end; between them a line
               `[... 1234 bytes left out ...]`, and then truncated is true
    stderr:    with a note in the end that says what is allowed, if the command failed of a boundary
    exit_code: -1 after a timeout, 127 if there is no such program, 126 if it cannot be executed
    details:   all that is known of the run
    """

    stdout: str
    stderr: str
    exit_code: int
    truncated: bool
    note: str | None
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0


class RunOptions(TypedDict, total=False):
    """Of shell() and shell_async().

    timeout:     seconds, 1 to 300
    attachments: files of the caller's sandbox (None: this one), which the command sees read-only at /attachments/NAME
    """

    timeout: int
    attachments: Sequence[str]
    caller: Sandbox | None


def judged(command: str, sandbox: Sandbox, timeout: int = TIMEOUT, **_: object) -> tuple[bool, list[str]]:
    """Whether the command needs approval, and its words; an error if it is blocked."""
    if not 1 <= timeout <= TIMEOUT_MAX:
        raise ValueError(f"timeout: {timeout} is not a number of seconds from 1 to {TIMEOUT_MAX}")
    verdict, words = sandbox._worker.judge(command)
    return verdict != "pre_approved", words


def check_answer(command: str, asked: bool, answer: object) -> None:
    """Raises unless the answer is True itself: the text "no" is a true value as well."""
    if answer is True:
        return
    _, _, why, _ = _px.explain(NEEDS_APPROVAL) or ("", "", "", "")
    what = "the command was not approved" if asked else "the command needs approval"
    fix = "Give shell() a function approve= that asks somebody."
    if asked and answer is not None and answer is not False:
        fix = f"Let approve= return True or False; it returned {type(answer).__name__}."
    raise from_engine(NEEDS_APPROVAL, 0, f"{what}: {command[:200]}", why, fix, "", None, None)


def refuse_awaitable(answer: object) -> None:
    """shell() has no event loop in which it could await an approver."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("approve= returned an awaitable, which shell() cannot await: use shell_async()")


def begin(
    words: Sequence[str],
    sandbox: Sandbox,
    *,
    timeout: int = TIMEOUT,
    attachments: Sequence[str] = (),
    caller: Sandbox | None = None,
) -> tuple[_px.Box, int]:
    """Starts a command that was judged."""
    return sandbox._worker.start(words, timeout, list(attachments), (caller or sandbox)._worker), timeout


def result_of(sandbox: Sandbox, box: _px.Box, timeout: int) -> ShellResult:
    """Of a command that has ended."""
    found: dict[str, Any] = json.loads(sandbox._worker.result(box, timeout))
    isolation = found["result"]["isolation"]
    if isolation["tier"] != "full":
        net = "the host's network" if sandbox.network_enabled else "no network"
        warnings.warn(
            f"OS sandbox unavailable: the command ran with the tier {isolation['tier']} and {net};"
            " details['isolation']['missing'] says what is missing",
            RuntimeWarning,
            stacklevel=3,
        )
    return ShellResult(
        found["stdout"], found["stderr"], found["exit_code"], found["truncated"], found["note"], found["result"]
    )


def not_run(error: SandboxError) -> ShellResult:
    """Of a program that is not there (127) or cannot be executed (126); any other error is raised."""
    if error.code not in NOT_RUN:
        raise error
    return ShellResult("", f"{error.what}\n", NOT_RUN[error.code], False, None)


def shell(
    command: str, sandbox: Sandbox, *, approve: Approve | None = None, **options: Unpack[RunOptions]
) -> ShellResult:
    """Runs a line of commands within the boundaries; px-worker(1), COMMAND LINES, says what of a shell it may have.

    approve: is asked for a command that needs approval; True approves, nothing else. Without it that is PX322.
    """
    needs_approval, words = judged(command, sandbox, **options)
    if needs_approval:
        answer = approve(command) if approve else None
        refuse_awaitable(answer)
        check_answer(command, approve is not None, answer)
    try:
        box, timeout = begin(words, sandbox, **options)
    except SandboxError as error:
        return not_run(error)
    try:
        step_out(box)
        return result_of(sandbox, box, timeout)
    finally:
        box.close()


async def shell_async(
    command: str, sandbox: Sandbox, *, approve: Approve | AsyncApprove | None = None, **options: Unpack[RunOptions]
) -> ShellResult:
    """shell() for an event loop. Cancelling it ends the command. approve can also be a coroutine function."""
    needs_approval, words = judged(command, sandbox, **options)
    if needs_approval:
        answer = approve(command) if approve else None
        check_answer(command, approve is not None, await answer if inspect.isawaitable(answer) else answer)
    try:
        box, timeout = begin(words, sandbox, **options)
    except SandboxError as error:
        return not_run(error)
    try:
        await step_out_async(box)
        return result_of(sandbox, box, timeout)
    finally:
        box.close()
