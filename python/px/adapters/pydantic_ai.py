"""px for pydantic-ai: toolsets over a file sandbox, over a sandbox and for a worker.

    from px.adapters.pydantic_ai import FileSandboxToolset, SandboxToolset, WorkerToolset

    agent = Agent(model, toolsets=[FileSandboxToolset(files), SandboxToolset(sandbox)])
    agent = Agent(model, toolsets=[WorkerToolset(load_worker("worker.yaml"), approve=ask)])

What is refused is a result of the tool that says what is allowed, not an exception: that would end the run, and a retry
would be counted against the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from .. import Sandbox, SandboxError, files, worker
from . import _run

__all__ = ["FileSandboxToolset", "SandboxToolset", "WorkerToolset"]

Deps = TypeVar("Deps")
SHELL = "Run a line of commands in the sandbox. Roots are directories of the working directory. Some commands need approval."


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
        return await told(super().call_tool(name, tool_args, ctx, tool))


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


class WorkerToolset(FunctionToolset[Deps]):
    """shell, read_file, write_file, list_files and edit_file of a px.worker.Worker; those that its tool_rules block are not there.

    approve: asked for what needs approval, with the whole command line or "write_file PATH"; True approves, nothing else. It may
             be a coroutine function. Without it such a call is deferred, as pydantic-ai does it: the run ends with
             DeferredToolRequests, and goes on with DeferredToolResults.
    timeout: seconds that a command may have at most; a model can ask for less
    """

    def __init__(
        self,
        of: worker.Worker,
        *,
        approve: Callable[[str], bool | Awaitable[bool]] | None = None,
        timeout: int = worker.TIMEOUT,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self.worker, self._approve, self._most = of, approve, timeout
        tools = {name: getattr(files.FileSandboxToolset, name).__doc__ for name in files.FileSandboxToolset.TOOLS}
        for name, words in {"shell": SHELL, **tools}.items():
            if of.sandbox.tool_approval(name) != "blocked":
                self.add_function(getattr(self, name), takes_ctx=True, description=words)

    def _files(self, ctx: RunContext[Deps]) -> files.FileSandboxToolset:
        return files.FileSandboxToolset(self.worker.sandbox, lambda what: self._asked(ctx, what))

    async def _asked(self, ctx: RunContext[Deps], what: str) -> bool:
        """The answer of whoever may approve."""
        if self._approve is None:
            if not ctx.tool_call_approved:
                raise ApprovalRequired(metadata={"asked": what})
            return True
        answer = self._approve(what)
        return (await answer if inspect.isawaitable(answer) else answer) is True

    async def shell(self, ctx: RunContext[Deps], command: str, timeout: int | None = None) -> dict[str, Any]:
        """exit_code, stdout, stderr, truncated, and a note about what failed."""
        seconds = max(1, min(timeout or self._most, self._most))
        result = await worker.shell_async(
            command, self.worker.sandbox, approve=lambda what: self._asked(ctx, what), timeout=seconds
        )
        names = ("exit_code", "stdout", "stderr", "truncated", "note")
        return {name: getattr(result, name) for name in names}

    async def read_file(self, ctx: RunContext[Deps], path: str, max_chars: int = files.MAX_CHARS) -> str:
        """The text of a file."""
        return await self._files(ctx).read_file(ctx, path, max_chars)

    async def write_file(self, ctx: RunContext[Deps], path: str, content: str) -> str:
        """How much was written."""
        return await self._files(ctx).write_file(ctx, path, content)

    async def list_files(self, ctx: RunContext[Deps], path: str = ".", pattern: str = "**/*") -> list[str]:
        """The paths of files."""
        return await self._files(ctx).list_files(ctx, path, pattern)

    async def edit_file(self, ctx: RunContext[Deps], path: str, old_text: str, new_text: str) -> str:
        """How the file changed."""
        return await self._files(ctx).edit_file(ctx, path, old_text, new_text)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Deps], tool: ToolsetTool[Deps]
    ) -> Any:
        """The tool's result, or {"ok": false, "error": {...}}; what the rules refuse is such a result, too."""
        return await told(super().call_tool(name, tool_args, ctx, tool))


async def told(call: Awaitable[Any]) -> Any:
    """A call's result, or what was refused as one."""
    try:
        return await call
    except files.FileSandboxError as error:
        return files.refused(error, error.message, error.retryable)
    except (SandboxError, ValueError) as error:
        return files.refused(error, str(error), True)
