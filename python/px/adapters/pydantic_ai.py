"""px for pydantic-ai: toolsets over a file sandbox and over a sandbox.

    from px.adapters.pydantic_ai import FileSandboxToolset, SandboxToolset

    agent = Agent(model, toolsets=[FileSandboxToolset(files), SandboxToolset(sandbox)])

What is refused is a result of the tool that says what is allowed, not an exception: that would end the run, and a retry
would be counted against the model.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from .. import Sandbox, SandboxError, files
from . import _run

__all__ = ["FileSandboxToolset", "SandboxToolset"]

Deps = TypeVar("Deps")


class FileSandboxToolset(FunctionToolset[Deps]):
    """read_file, write_file, list_files and edit_file over a px.files.FileSandbox."""

    def __init__(self, sandbox: files.FileSandboxProtocol, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.sandbox = sandbox
        self._files = files.FileSandboxToolset(sandbox)
        for name in self._files.TOOLS:
            self.add_function(getattr(self, name), takes_ctx=True, description=getattr(self._files, name).__doc__)

    async def read_file(self, ctx: RunContext[Deps], path: str, max_chars: int = files.MAX_CHARS) -> str:
        """The text of a file."""
        return await self._files.read_file(ctx, path, max_chars)

    async def write_file(self, ctx: RunContext[Deps], path: str, content: str) -> str:
        """How much was written."""
        return await self._files.write_file(ctx, path, content)

    async def list_files(self, ctx: RunContext[Deps], path: str = ".", pattern: str = "**/*") -> list[str]:
        """The paths of files."""
        return await self._files.list_files(ctx, path, pattern)

    async def edit_file(self, ctx: RunContext[Deps], path: str, old_text: str, new_text: str) -> str:
        """How the file changed."""
        return await self._files.edit_file(ctx, path, old_text, new_text)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Deps], tool: ToolsetTool[Deps]
    ) -> Any:
        """The tool's result, or {"ok": false, "error": {...}}."""
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except files.FileSandboxError as error:
            return files.refused(error, error.message, error.retryable)
        except (SandboxError, ValueError) as error:
            return files.refused(error, str(error), True)


class SandboxToolset(FunctionToolset[Deps]):
    """run_command and run_code in a px.Sandbox, which stays yours to close.

    command_timeout: seconds that a command may have at most; a model can ask for less
    limit:           bytes of each of its streams that the model sees
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        command_timeout: float = _run.TIMEOUT_S,
        limit: int = _run.LIMIT,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self.sandbox, self._most, self._limit = sandbox, command_timeout, limit
        self.add_function(self.run_command, takes_ctx=True, description=_run.COMMAND)
        self.add_function(self.run_code, takes_ctx=True, description=_run.CODE)

    async def run_command(self, ctx: RunContext[Deps], command: str, timeout: float | None = None) -> dict[str, Any]:
        """exit_code, stdout, stderr, timed_out, truncated."""
        seconds = _run.bounded(timeout, self._most)
        return (await _run.run(self.sandbox, command, seconds, self._limit)).as_dict()

    async def run_code(self, ctx: RunContext[Deps], code: str, timeout: float | None = None) -> dict[str, Any]:
        """The same for a program of Python's."""
        seconds = _run.bounded(timeout, self._most)
        return (await _run.run_code(self.sandbox, code, seconds, self._limit)).as_dict()
