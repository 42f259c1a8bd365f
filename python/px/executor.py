"""One call for one command of a stranger's: hard limits, no network, nothing of the host.

    from px.executor import SandboxConfig, SandboxExecutor

    async with SandboxExecutor(SandboxConfig(timeout=5)) as executor:
        result = await executor.execute("echo hello")

The box has the preset "untrusted": what it needs and cannot have here is an error, never left out.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from . import _px
from ._core import end_box
from ._errors import SandboxError
from ._folders import absolute
from ._policy import Setting, Value, environment, policy_of, seconds, settings_of
from ._streams import step_out_async
from ._words import EXECUTOR, spoken

__all__ = ["ExecutionResult", "SandboxConfig", "SandboxError", "SandboxExecutor"]

PRESET = "untrusted"
WORKSPACE = "/workspace"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
DEFAULT_TIMEOUT = 60
CANNOT_START, GONE = 19, 40  # codes of px-errors(7)


def checked_bound(timeout: int | None) -> int | None:
    """Seconds, or 0 for those of whoever is asked next."""
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout: {timeout!r} seconds are less than 0")
    return timeout


@dataclass
class SandboxConfig:
    """What a command may use.

    image:            "host" for the host's own programs, or a base or image of px's store
    timeout:          seconds; 0 means 60, less is an error
    memory_limit, cpu_limit, pids_limit: of all processes together
    runtime:          "native", or an OCI runtime for the same policy: then each command has a box of its own
    network_mode:     "none", or "bridge" for the way out: the open network, but nothing private or of the host
    dns_servers:      addresses of those that "bridge" asks for names; those of the host unless told
    workspace_access: what the command may do with workspace_path, which it sees at /workspace; with "rw" and no
                      path /workspace is an empty directory in the box's memory, 64 MiB at most
    limits:           "try" runs without a limit that this host cannot hold; the result lists it
    policy:           any other field of px-policy(5)
    """

    image: str = "host"
    timeout: int = DEFAULT_TIMEOUT
    memory_limit: str = "512m"
    cpu_limit: float = 1.0
    runtime: Literal["native", "runc", "crun", "runsc"] = "native"
    network_mode: Literal["none", "bridge"] = "none"
    workspace_access: Literal["none", "ro", "rw"] = "rw"
    workspace_path: str | os.PathLike[str] | None = None
    pids_limit: int = 100
    dns_servers: Sequence[str] = ()
    http_proxy: str | None = None
    limits: Literal["require", "try"] = "require"
    policy: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_bound(self.timeout)

    def settings(self) -> list[Setting]:
        """The same as fields of a policy."""
        if self.workspace_access not in ("none", "ro", "rw"):
            raise SandboxError(f"workspace_access: '{self.workspace_access}' is none of none, ro, rw")
        if self.network_mode not in ("none", "bridge"):
            raise SandboxError(f"network_mode: '{self.network_mode}' is neither none nor bridge")
        found = settings_of(
            {
                "base": None if self.image == "host" else self.image,
                "memory": self.memory_limit,
                "cpus": self.cpu_limit,
                "pids": self.pids_limit,
                "limits": self.limits,
                "dns": list(self.dns_servers) if self.network_mode == "bridge" else None,
                "net": "outbound" if self.network_mode == "bridge" else "none",
                "runtime": None if self.runtime == "native" else self.runtime,
            }
        )
        if self.workspace_path is not None and self.workspace_access != "none":
            found.append(("bind", f"{absolute(self.workspace_path)}:{WORKSPACE}:{self.workspace_access}"))
            found.append(("workdir", WORKSPACE))
        elif self.workspace_access == "rw":
            found.append(("tmpfs", f"{WORKSPACE}:size=64m,noexec"))
        if self.http_proxy:
            found += environment(dict.fromkeys(PROXIES, self.http_proxy))
        return found + settings_of(self.policy)


@dataclass
class ExecutionResult:
    """How a command ended.

    stdout, stderr: of what is longer than the output limit, the beginning and the end; between them a line
               `[... 1234 bytes left out ...]`
    exit_code: the command's own; -1 after a timeout; 128 + N if signal N ended it
    stderr:    after a timeout its last line says so
    timed_out: whether the timeout ended it; said by the engine, not guessed from a text
    status:    "ok", "nonzero", "signalled", "timeout", "memory", "output", "disk"
    details:   all that is known of the run
    truncated: whether bytes of stdout or stderr were left out
    """

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    status: str = ""
    details: dict[str, Any] = field(default_factory=dict, repr=False)
    truncated: bool = False

    @property
    def success(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0 and not self.timed_out

    @property
    def output(self) -> str:
        """Both streams, one after the other."""
        return "\n".join(part for part in (self.stdout, self.stderr) if part)


class SandboxExecutor:
    """Runs commands in a box that stays until cleanup(): files in /tmp and the home are there for the next one."""

    def __init__(self, config: SandboxConfig | None = None, environment: dict[str, str] | None = None) -> None:
        """environment: variables of every command."""
        self.config = config or SandboxConfig()
        self.environment = dict(environment or {})
        self._home: _px.Box | None = None
        self._settings: list[Setting] = []
        self._root = ""

    def _settle(self) -> None:
        """A box that the config, or what its image's name stands for, is not about any more makes room for another one."""
        settings, image = self.config.settings(), self.config.image
        stored = image != "host" and "/" not in image and not image.startswith(".")
        root = _px.stored_root(image, str, True) if stored else ""
        if (settings, root) != (self._settings, self._root):
            self._home = None  # commands that run in it have it until they end
        self._settings, self._root = settings, root

    def _bound(self, timeout: int | None) -> int:
        return checked_bound(timeout) or checked_bound(self.config.timeout) or DEFAULT_TIMEOUT

    def _policy(
        self, bound: int, variables: Mapping[str, str] | None, limits: Sequence[Setting]
    ) -> _px.Policy:
        self._settle()
        return policy_of(
            PRESET,
            self._settings,
            environment({**self.environment, **(variables or {})}),
            [("timeout", seconds(bound)), *limits],
        )

    def _exec(self, policy: _px.Policy, argv: Sequence[str], source: int) -> _px.Box:
        """In the box that stays; in a new one if that is full of what earlier commands left, or gone."""
        try:
            return self._box().exec(policy, argv, source)
        except SandboxError as error:
            if error.code not in (CANNOT_START, GONE):
                raise
        self._home = None
        return self._box().exec(policy, argv, source)

    def _box(self) -> _px.Box:
        """The box that stays; another one if it died, of memory or by a hand of the host's."""
        if self._home is not None:
            try:
                if self._home.step():
                    return self._home
            except SandboxError:
                pass
            self._home = None
        self._home = _px.stay(
            policy_of(PRESET, self._settings, environment(self.environment), [("timeout", "unlimited")])
        )
        return self._home

    async def execute(
        self,
        command: str,
        timeout: int | None = None,
        reuse_container: bool = True,
        environment: Mapping[str, str] | None = None,
        *,
        memory_limit: str | None = None,
        cpu_limit: float | None = None,
        pids_limit: int | None = None,
    ) -> ExecutionResult:
        """Runs `bash -c command`. SandboxError if there can be no box; everything else is in the result.

        timeout:         seconds; None or 0 means the config's, less is an error
        reuse_container: False for a box of its own, which is gone afterwards
        environment:     variables of this command, before those of the constructor
        memory_limit, cpu_limit, pids_limit: of this command instead of the config's. They are limits of a box, so a command
                         with one of them has a box of its own, as with reuse_container=False
        """
        given = {"memory": memory_limit, "cpus": cpu_limit, "pids": pids_limit}
        limits = settings_of({name: value for name, value in given.items() if value is not None})
        reuse = reuse_container and not limits
        return (await self._finish(["bash", "-c", command], timeout, reuse, environment, None, limits))[0]

    async def execute_script(
        self,
        code: str,
        interpreter: str = "python3",
        timeout: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ExecutionResult:
        """Runs code that is given to the interpreter as its standard input."""
        return await self._run([interpreter, "-"], timeout, True, environment, code.encode())

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Writes a file in the box, byte for byte."""
        data = content.encode() if isinstance(content, str) else content
        quoted = shlex.quote(path)
        result = await self._run(
            ["bash", "-c", f'mkdir -p -- "$(dirname -- {quoted})" && cat > {quoted}'], None, True, None, data
        )
        if not result.success:
            raise SandboxError(f"cannot write '{path}' in the box", why=result.stderr.strip())

    async def read_file(self, path: str) -> bytes:
        """Reads a file of the box."""
        result, data = await self._finish(["cat", "--", path], None, True, None, None)
        if not result.success:
            raise SandboxError(f"cannot read '{path}' in the box", why=result.stderr.strip())
        if result.details["truncated"]["stdout"]:
            raise SandboxError(
                f"'{path}' is longer than the output limit",
                fix="Raise it: SandboxConfig(policy={'output-limit': '64m'}).",
            )
        return data

    async def _run(
        self,
        argv: Sequence[str],
        timeout: int | None,
        reuse: bool,
        variables: Mapping[str, str] | None,
        data: bytes | None = None,
    ) -> ExecutionResult:
        return (await self._finish(argv, timeout, reuse, variables, data))[0]

    async def _finish(
        self,
        argv: Sequence[str],
        timeout: int | None,
        reuse: bool,
        variables: Mapping[str, str] | None,
        data: bytes | None,
        limits: Sequence[Setting] = (),
    ) -> tuple[ExecutionResult, bytes]:
        """Runs it to its end; its output is kept by the engine, no longer than the policy allows."""
        bound = self._bound(timeout)
        source = memory_file(data) if data is not None else -1
        try:
            with spoken(EXECUTOR):
                policy = self._policy(bound, variables, limits)
                alone = not reuse or self.config.runtime != "native"
                box = _px.start(policy, argv, source) if alone else self._exec(policy, argv, source)
        finally:
            if source >= 0:
                os.close(source)
        try:
            await step_out_async(box)
            return told(box, bound)
        except BaseException:  # who waits was cancelled: the command goes with it
            box.kill()
            raise
        finally:
            box.close()

    async def cleanup(self) -> None:
        """Ends the box and everything in it. The next execute() makes another one."""
        home, self._home = self._home, None
        if home is not None:
            end_box(home)
            home.close()

    async def __aenter__(self) -> SandboxExecutor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cleanup()


def memory_file(data: bytes) -> int:
    """A descriptor to read the bytes from."""
    fd = os.memfd_create("px-input", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def told(box: _px.Box, bound: int) -> tuple[ExecutionResult, bytes]:
    """The result of a command that has ended, and its exact output."""
    status, _, exit_code, _, exact, _ = box.result()
    stdout, stderr = box.output()
    details = json.loads(box.json())
    timed_out = status == "timeout"
    errors = stderr.decode("utf-8", "replace")
    if timed_out:
        errors += "\n" * bool(errors and errors[-1] != "\n") + f"Command timed out after {bound} seconds\n"
    result = ExecutionResult(
        -1 if timed_out else exit_code,
        stdout.decode("utf-8", "replace"),
        errors,
        timed_out,
        status,
        details,
        details["truncated"]["stdout"] or details["truncated"]["stderr"],
    )
    return result, exact
