"""Tasks: a directory for each, allow-listed commands in boxes, and what they have changed.

    from px.tasks import apply_action, cleanup, prepare_workspace, run_tests

    workspace = prepare_workspace("task1", {"main.py": "print(1)\\n"})
    result = apply_action(workspace, {"command": ["python", "main.py"]})
    tests = run_tests(workspace, {"command": ["pytest", "-q"]})
    cleanup(workspace)

Without config= each call reads configs/sandbox.yaml, if it is there, which may only restrict the defaults (PX050).
Relative paths are those of the working directory.
Every call is a line of the task's journal, LOGS_DIR/ID.jsonl.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

from . import _px
from ._errors import SandboxError
from ._policy import seconds
from ._streams import step_out, step_out_async
from ._yaml import loaded

__all__ = [
    "SandboxConfig",
    "SandboxError",
    "SandboxResult",
    "TestResult",
    "WorkspaceChanges",
    "WorkspaceError",
    "apply_action",
    "apply_action_async",
    "apply_from",
    "checkout",
    "cleanup",
    "diff",
    "export",
    "fork",
    "list_files",
    "prepare_workspace",
    "read_file",
    "run_tests",
    "run_tests_async",
]

StrPath = str | os.PathLike[str]
TASK_ID, TASK_PATH = 401, 402  # codes of px-errors(7)


class WorkspaceError(SandboxError, ValueError):
    """A name of a task or a path in a workspace that is not allowed; nothing was written."""


# ---- the configuration ----


@dataclass
class SandboxConfig:
    """Where workspaces lie, and what actions may use.

    work_root, logs_dir: directories of the workspaces and of the journals
    allowed_binaries:    programs of the box by their names; a path is never another way to one of them
    enable_jail, jailer: False: no box, limits alone; px is the only jailer, others are refused (PX003)
    overlay:             "auto", or "never" for actions that run on a copy
    log_max_mb:          of a journal
    path, binds:         directories before the box's PATH, and paths that the box shows read-only where they are
    env:                 "NAME=VALUE" of every action
    base:                a base or an image of the store, in whose file system actions run; "": the host's /usr
    project:             the directory of a px project, whose environment actions have as px sync made it; "": none
    """

    work_root: StrPath = ".sandbox"
    logs_dir: StrPath = "logs/sandbox"
    default_timeout_sec: float = 30
    cpu_time_sec: float = 20
    mem_limit_mb: int = 4096
    allowed_binaries: Sequence[str] = ("ast-grep", "sg", "python", "pytest")
    enable_jail: bool = True
    jailer: str = "none"
    overlay: str = "auto"
    log_max_mb: int = 64
    path: Sequence[StrPath] = ()
    binds: Sequence[StrPath] = ()
    env: Sequence[str] = ()
    base: str = ""
    project: StrPath = ""

    @classmethod
    def load(cls, file: StrPath | None = None) -> SandboxConfig:
        """What a YAML file says; None: configs/sandbox.yaml, or the defaults without it. Makes the directories."""
        (
            work_root,
            logs_dir,
            timeout,
            cpu_time,
            memory,
            allowed,
            log_max,
            overlay,
            path,
            binds,
            env,
            base,
            project,
        ) = _px.Tasks(file).config()
        return cls(
            work_root,
            logs_dir,
            timeout / 1000,
            cpu_time / 1000,
            memory >> 20,
            allowed,
            overlay="auto" if overlay else "never",
            log_max_mb=log_max >> 20,
            path=tuple(path),
            binds=tuple(binds),
            env=tuple(env),
            base=base or "",
            project=project or "",
        )


def open_tasks(config: SandboxConfig | None) -> _px.Tasks:
    """The engine's half of a configuration."""
    if config is None:
        return _px.Tasks(None)
    return loaded({one.name: getattr(config, one.name) for one in fields(config)}, _px.Tasks)


# ---- workspaces ----


def refuse(error: SandboxError) -> NoReturn:
    """Raises it again, as a ValueError if it is about what the caller wrote."""
    if error.code not in (TASK_ID, TASK_PATH):
        raise error
    found = WorkspaceError(error.what, why=error.why, fix=error.fix)
    found.code, found.sys, found.details = error.code, error.sys, error.details
    raise found from None


def prepare_workspace(
    task_id: str, files: Mapping[str, str | bytes], *, config: SandboxConfig | None = None
) -> Path:
    """Makes the workspace <work_root>/<task_id>, or adds to it: all of the files or none.

    files: contents by their relative paths, without ".."
    """
    given = tuple((path, data.encode() if isinstance(data, str) else bytes(data)) for path, data in files.items())
    try:
        return Path(open_tasks(config).prepare(task_id, given))
    except SandboxError as error:
        refuse(error)


def cleanup(workspace: StrPath, *, config: SandboxConfig | None = None) -> None:
    """Removes the workspace; fine if there is none. Both are lines of the journal."""
    tasks = open_tasks(config)
    try:
        tasks.cleanup(task_of(workspace, tasks))
    except SandboxError as error:
        refuse(error)


def task_of(workspace: StrPath, tasks: _px.Tasks) -> str:
    """The task whose workspace it is."""
    path, root = Path(workspace), Path(tasks.config()[0])
    if os.path.realpath(path.parent) != os.path.realpath(root) or not path.name:
        raise WorkspaceError(
            f"'{path}' is no workspace below '{root}'",
            why="Another configuration has another work_root.",
            fix="Use the path that prepare_workspace() gave, and the same config=.",
        )
    return path.name


# ---- branches and files ----


@dataclass
class WorkspaceChanges:
    """What differs between two workspaces.

    diff:          unified, with lines for modes, new and deleted files; `git apply` takes it
    changed_files: their paths
    changes:       (path, "added", "modified", "deleted", "mode" or "special", whether it is a symbolic link)
    truncated:     files whose diff did not fit are left out of it
    """

    diff: str
    changed_files: list[str]
    changes: list[tuple[str, str, bool]]
    truncated: bool


def changes_of(found: tuple[list[tuple[str, str, bool]], bytes, bool]) -> WorkspaceChanges:
    """What the engine says of changes."""
    changes, text, truncated = found
    return WorkspaceChanges(text.decode(errors="replace"), [path for path, _, _ in changes], changes, truncated)


def fork(workspace: StrPath, new_id: str, *, config: SandboxConfig | None = None) -> Path:
    """A branch that begins as the workspace is, in constant time; the path that names it.

    From then on neither has a directory: read_file(), list_files(), diff() and export() show what they hold, and
    checkout() gives one a directory again.
    """
    tasks = open_tasks(config)
    try:
        tasks.fork(task_of(workspace, tasks), new_id)
    except SandboxError as error:
        refuse(error)
    return Path(tasks.config()[0]) / new_id


def diff(
    workspace: StrPath, other: StrPath | None = None, *, config: SandboxConfig | None = None
) -> WorkspaceChanges:
    """What makes `other` of the workspace; without `other`, what a branch has done since it was forked."""
    tasks = open_tasks(config)
    return changes_of(tasks.diff(task_of(workspace, tasks), None if other is None else task_of(other, tasks)))


def apply_from(source: StrPath, to: StrPath, *, config: SandboxConfig | None = None) -> WorkspaceChanges:
    """Does to `to` what the branch `source` has done since it was forked; SandboxError 406 if both changed the same."""
    tasks = open_tasks(config)
    return changes_of(tasks.apply_from(task_of(source, tasks), task_of(to, tasks)))


def list_files(workspace: StrPath, *, config: SandboxConfig | None = None) -> list[str]:
    """The paths of all files of a workspace or a branch, sorted; those of directories end with "/"."""
    tasks = open_tasks(config)
    return sorted(tasks.list(task_of(workspace, tasks)))


def read_file(workspace: StrPath, path: StrPath, *, config: SandboxConfig | None = None) -> bytes:
    """A file of a workspace or a branch, at most 64 MiB; no link is followed."""
    tasks = open_tasks(config)
    try:
        return tasks.read(task_of(workspace, tasks), path)
    except SandboxError as error:
        refuse(error)


def export(workspace: StrPath, directory: StrPath, *, config: SandboxConfig | None = None) -> Path:
    """Copies all files to a directory that must not be there yet. Links are copied as links."""
    tasks = open_tasks(config)
    tasks.export(task_of(workspace, tasks), directory)
    return Path(directory)


def checkout(workspace: StrPath, *, config: SandboxConfig | None = None) -> Path:
    """Makes a plain workspace of a branch: its files are in a directory again, whose path it returns."""
    tasks = open_tasks(config)
    return Path(tasks.checkout(task_of(workspace, tasks)))


# ---- actions ----


@dataclass
class TestResult:
    """How a command ended.

    exit_code: the command's own; 124 after a timeout, 126 not allowed, 127 invalid, -N if signal N ended it
    error:     None, "timeout", "not_allowed" or "invalid_command"
    details:   all that is known of the run
    """

    __test__ = False  # pytest: this is none

    exit_code: int
    stdout: str
    stderr: str
    duration_sec: float
    error: str | None
    details: dict[str, Any] = field(default_factory=dict, repr=False, kw_only=True)


@dataclass
class SandboxResult:
    """The same with the command as it was run and what it changed.

    diff:          unified, `git apply` takes it; links have the mode 120000; None if nothing has changed
    changed_files: their paths; None if nothing has changed
    """

    cmd: list[str]
    exit_code: int
    stdout: str
    stderr: str
    duration_sec: float
    error: str | None
    diff: str | None = None
    changed_files: list[str] | None = None
    details: dict[str, Any] = field(default_factory=dict, repr=False, kw_only=True)


def words_of(action: Mapping[str, Any]) -> list[str] | None:
    """Its command, or None if that is none that could be run."""
    command = action.get("command")
    if not isinstance(command, (list, tuple)) or not all(isinstance(word, str) for word in command):
        return None
    try:
        plain = all(b"\0" not in os.fsencode(word) for word in command)
    except UnicodeEncodeError:
        plain = False
    return list(command) if plain else None


class RunOptions(TypedDict, total=False):
    """timeout_sec, cpu_time_sec, mem_limit_mb: instead of the configuration's."""

    timeout_sec: float | None
    cpu_time_sec: float | None
    mem_limit_mb: int | None
    config: SandboxConfig | None


class ActionOptions(RunOptions, total=False):
    """The same, and what becomes of its work.

    discard:             nothing of what it did is kept; the result still tells it
    discard_on_timeout:  the same if it does not end in time
    """

    discard: bool
    discard_on_timeout: bool


def begin(
    workspace: StrPath,
    action: Mapping[str, Any],
    test: bool,
    *,
    timeout_sec: float | None = None,
    cpu_time_sec: float | None = None,
    mem_limit_mb: int | None = None,
    discard: bool = False,
    discard_on_timeout: bool = False,
    config: SandboxConfig | None = None,
) -> _px.TaskRun:
    """Starts it."""
    tasks = open_tasks(config)
    try:
        return tasks.start(
            task_of(workspace, tasks),
            words_of(action),
            None if timeout_sec is None else seconds(timeout_sec),
            None if cpu_time_sec is None else seconds(cpu_time_sec),
            None if mem_limit_mb is None else f"{mem_limit_mb}m",
            discard,
            discard_on_timeout,
            test,
        )
    except SandboxError as error:
        refuse(error)


def finish(run: _px.TaskRun) -> dict[str, Any]:
    """Waits for the end of it; who is interrupted ends it, and nothing of it is kept."""
    try:
        step_out(run)
        found: dict[str, Any] = json.loads(run.json())
    finally:
        run.close()
    return found


async def finish_async(run: _px.TaskRun) -> dict[str, Any]:
    """The same for an event loop; cancelling ends it."""
    try:
        await step_out_async(run)
        found: dict[str, Any] = json.loads(run.json())
    finally:
        run.close()
    return found


def action_result(found: dict[str, Any]) -> SandboxResult:
    """What the engine says of an action."""
    names = [one.name for one in fields(SandboxResult) if one.name != "details"]
    return SandboxResult(*(found[name] for name in names), details=found)


def tests_result(found: dict[str, Any]) -> TestResult:
    """What the engine says of tests."""
    names = [one.name for one in fields(TestResult) if one.name != "details"]
    return TestResult(*(found[name] for name in names), details=found)


def apply_action(
    workspace: StrPath, action_dict: Mapping[str, Any], **options: Unpack[ActionOptions]
) -> SandboxResult:
    """Runs {"command": [program, words...]} in a box over the workspace, and merges what it did."""
    return action_result(finish(begin(workspace, action_dict, False, **options)))


async def apply_action_async(
    workspace: StrPath, action_dict: Mapping[str, Any], **options: Unpack[ActionOptions]
) -> SandboxResult:
    """apply_action() for an event loop. Cancelling it ends the command, and nothing of it is kept."""
    return action_result(await finish_async(begin(workspace, action_dict, False, **options)))


def run_tests(workspace: StrPath, test_spec: Mapping[str, Any], **options: Unpack[RunOptions]) -> TestResult:
    """Runs {"command": ["pytest", ...]} as apply_action() does; the result has no diff."""
    return tests_result(finish(begin(workspace, test_spec, True, **options)))


async def run_tests_async(
    workspace: StrPath, test_spec: Mapping[str, Any], **options: Unpack[RunOptions]
) -> TestResult:
    """run_tests() for an event loop."""
    return tests_result(await finish_async(begin(workspace, test_spec, True, **options)))
