"""px for deepagents: a sandbox as the backend of an agent.

    from px.adapters.deepagents import SandboxBackend
    from px.sync import Sandbox

    with Sandbox() as sandbox:
        agent = create_deep_agent(model=model, backend=SandboxBackend(sandbox))

Commands, and the files that the agent lists, reads, writes, edits and searches, are those of the sandbox: its home
/home/sandbox and its /tmp can be written. Files go in and out by commands in the sandbox too, so that what a path means
is decided there, whatever links the agent has made.
"""

from __future__ import annotations

import uuid

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .. import SandboxError
from ..sync import Sandbox
from . import _run

__all__ = ["SandboxBackend"]

OUTPUT = 2 << 20  # what the framework's own commands say stays below that


class SandboxBackend(BaseSandbox):
    """A px.sync.Sandbox, which stays yours to close; its root needs python3.

    command_timeout: seconds of a command that names none
    limit:           bytes of its output that are kept
    max_file_bytes:  of a file that is uploaded or downloaded
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        command_timeout: float = _run.TIMEOUT_S,
        limit: int = OUTPUT,
        max_file_bytes: int = _run.FILE_BYTES,
    ) -> None:
        self._sandbox, self._timeout, self._limit, self._most = sandbox, command_timeout, limit, max_file_bytes
        self._id = f"px-{uuid.uuid4().hex[:12]}"

    @property
    def id(self) -> str:
        """A name of this backend."""
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a line of the shell's; both of its streams in one, as on a terminal."""
        seconds = float(timeout) if timeout else self._timeout
        done = _run.run_sync(self._sandbox, ["bash", "-c", f"exec 2>&1\n{command}"], seconds, self._limit)
        late = f"\n[killed after {seconds:g} seconds]" if done.timed_out else ""
        return ExecuteResponse(done.stdout + done.stderr + late, done.exit_code, done.truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files into the sandbox, and makes the directories above them."""
        return [FileUploadResponse(path, self._send(path, data)) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files of the sandbox."""
        return [self._fetch(path) for path in paths]

    def _send(self, path: str, data: bytes) -> str | None:
        if not _run.is_path(path):
            return "invalid_path"
        if len(data) > self._most:
            return f"larger than {self._most} bytes"
        try:
            process = self._sandbox.run(_run.send(path), self._timeout)
            process.communicate(data)
        except SandboxError as error:
            return error.what
        return _run.reason(process.returncode)

    def _fetch(self, path: str) -> FileDownloadResponse:
        if not _run.is_path(path):
            return FileDownloadResponse(path, None, "invalid_path")
        try:
            process = self._sandbox.run(_run.fetch(path, self._most + 1), self._timeout)
            kept = _run.collect_sync(process, self._timeout, self._most + 1)
        except SandboxError as error:
            return FileDownloadResponse(path, None, error.what)
        data, why = kept.read("stdout"), _run.reason(kept.code)
        if why is None and len(data) > self._most:
            why = f"larger than {self._most} bytes"
        return FileDownloadResponse(path, None if why else data, why)
