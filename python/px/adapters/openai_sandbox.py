"""px as a sandbox client of the OpenAI Agents SDK: where its SandboxAgent lives.

    from px.adapters.openai_sandbox import SandboxClient

    config = RunConfig(sandbox=SandboxRunConfig(client=SandboxClient()))
    await Runner.run(SandboxAgent(name="worker", model=model), "...", run_config=config)

The workspace is the home of a px.Sandbox, /home/sandbox. What goes in and out goes by commands in the sandbox, so that
what a path means is decided there; the archive of a snapshot is unpacked there as well.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from agents.sandbox import ExecResult, Manifest
from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.session import BaseSandboxClient, BaseSandboxSession, SandboxSession, SandboxSessionState
from agents.sandbox.session.sandbox_client import BaseSandboxClientOptions
from agents.sandbox.snapshot import resolve_snapshot

from .. import Sandbox, SandboxError
from . import _run

__all__ = ["SandboxClient", "SandboxClientOptions"]

HOME = "/home/sandbox"
OUTPUT = 16 << 20
ARCHIVE = 256 << 20
PACK = 'cd -- "$1" && shift && exec tar -c "$@" . 2>/dev/null'
UNPACK = 'mkdir -p -- "$1" && exec tar -x -C "$1" 2>/dev/null'


class SandboxClientOptions(BaseSandboxClientOptions):
    """There are none: how a sandbox is made is the client's matter."""

    type: Literal["px"] = "px"


class State(SandboxSessionState):
    """A sandbox ends with its process, so that nothing but the snapshot can be resumed."""

    type: Literal["px"] = "px"


class Session(BaseSandboxSession):
    """One sandbox."""

    state: State

    def __init__(self, state: State, sandbox: Sandbox, command_timeout: float) -> None:
        self.state, self._sandbox, self._timeout = state, sandbox, command_timeout

    async def _collect(self, words: list[str], timeout: float | None, limit: int) -> _run.Kept:
        seconds = self._timeout if timeout is None else timeout
        try:
            env = await self.state.manifest.environment.resolve()
            process = await self._sandbox.run(words, seconds, env=env)
            return await _run.collect(process, seconds, limit)
        except (SandboxError, ValueError) as error:
            raise ExecTransportError(command=words, cause=error, message=str(error)) from error

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        words = [str(word) for word in command]
        kept = await self._collect(words, timeout, OUTPUT)
        if kept.code is None:
            raise ExecTimeoutError(command=command, timeout_s=timeout)
        return ExecResult(stdout=kept.text("stdout"), stderr=kept.text("stderr"), exit_code=kept.code)

    async def read(self, path: Path, *, user: Any = None) -> io.IOBase:
        """A file of the workspace."""
        place = await self._validate_path_access(path)
        kept = await self._collect(_run.fetch(place.as_posix(), _run.FILE_BYTES + 1), None, _run.FILE_BYTES + 1)
        if kept.code == _run.NOT_FOUND:
            raise WorkspaceReadNotFoundError(path=path)
        data, why = kept.read("stdout"), _run.reason(kept.code)
        if why is not None or len(data) > _run.FILE_BYTES:
            raise WorkspaceArchiveReadError(path=path, context={"reason": why or "too large"})
        return io.BytesIO(data)

    async def write(self, path: Path, data: io.IOBase, *, user: Any = None) -> None:
        """The same the other way round."""
        place = await self._validate_path_access(path, for_write=True)
        await self._put(_run.send(place.as_posix()), data, path, _run.FILE_BYTES)

    async def _put(self, words: list[str], data: io.IOBase, path: Path, most: int) -> None:
        """A command that takes its input and says nothing."""
        content = data.read(most + 1)
        content = content.encode() if isinstance(content, str) else bytes(content)
        if len(content) > most:
            raise WorkspaceArchiveWriteError(path=path, context={"reason": f"larger than {most} bytes"})
        try:
            process = await self._sandbox.run(words, self._timeout)
            await process.communicate(content)
        except SandboxError as error:
            raise WorkspaceArchiveWriteError(path=path, cause=error) from error
        if process.returncode != 0:
            raise WorkspaceArchiveWriteError(path=path, context={"reason": str(_run.reason(process.returncode))})

    async def running(self) -> bool:
        """Until it is shut down."""
        return not self._sandbox.closed

    async def _shutdown_backend(self) -> None:
        self._sandbox.close()

    async def persist_workspace(self) -> io.IOBase:
        """The workspace as a tar."""
        root = self._workspace_root_path()
        skip = [f"--exclude=./{path.as_posix()}" for path in sorted(self._persist_workspace_skip_relpaths())]
        kept = await self._collect(["bash", "-c", PACK, "pack", root.as_posix(), *skip], None, ARCHIVE + 1)
        data = kept.read("stdout")
        if kept.code != 0 or len(data) > ARCHIVE:
            raise WorkspaceArchiveReadError(path=root, context={"reason": _run.reason(kept.code) or "too large"})
        return io.BytesIO(data)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Unpacks such a tar."""
        root = self._workspace_root_path()
        await self._put(["bash", "-c", UNPACK, "unpack", root.as_posix()], data, root, ARCHIVE)


class SandboxClient(BaseSandboxClient[SandboxClientOptions | None]):
    """Makes a px.Sandbox for each session.

    make:            how: lambda: Sandbox(memory="1g", enable_outbound=True)
    command_timeout: seconds of a command that names none
    """

    backend_id = "px"
    supports_default_options = True

    def __init__(self, make: Callable[[], Sandbox] = Sandbox, *, command_timeout: float = _run.TIMEOUT_S) -> None:
        self._make, self._timeout = make, command_timeout

    async def create(
        self, *, snapshot: Any = None, manifest: Manifest | None = None, options: SandboxClientOptions | None = None
    ) -> SandboxSession:
        """A session in a new sandbox, whose files are those of the manifest."""
        state = State(manifest=self._placed(manifest or Manifest()), snapshot=resolve_snapshot(snapshot, "px"))
        return self._session(state)

    def _placed(self, manifest: Manifest) -> Manifest:
        """With its root in the home; whatever it wants of the host is refused."""
        self._validate_manifest_for_create(manifest)
        if manifest.extra_path_grants:
            raise SandboxError(
                "a manifest with extra_path_grants cannot be had in a px sandbox",
                fix='Bind directories by the sandbox: Sandbox(policy={"bind": ["/data:/data:ro"]}).',
            )
        if manifest.root == Manifest().root:
            return manifest.model_copy(update={"root": HOME})
        return manifest

    def _session(self, state: State) -> SandboxSession:
        return self._wrap_session(Session(state, self._make(), self._timeout))

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Ends its sandbox, if that has not ended yet."""
        await session._inner._shutdown_backend()
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """A new sandbox with the files of the snapshot."""
        if not isinstance(state, State):
            raise TypeError("this is no state of a px sandbox")
        state.assert_path_grants_rebound()
        state.workspace_root_ready = False
        return self._session(state)

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        """What serialize_session_state() made."""
        return self._deserialize_session_state_payload(payload, State)
