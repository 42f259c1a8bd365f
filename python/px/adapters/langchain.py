"""px for LangChain: tools over a sandbox and over a file sandbox.

    from px.adapters.langchain import file_tools, sandbox_tools

    tools = [*sandbox_tools(sandbox), *file_tools(files)]

The text of a tool's answer is for the model; its artifact is the whole outcome.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from langchain_core.tools import BaseTool, StructuredTool

from .. import Sandbox, sync
from ..files import MAX_CHARS, FileSandboxProtocol, FileSandboxToolset
from . import _run

__all__ = ["file_tools", "sandbox_tools"]

Answer: TypeAlias = tuple[str, dict[str, Any]]


def answer(outcome: _run.Outcome) -> Answer:
    """What a model reads, and what a program reads."""
    return outcome.as_text(), outcome.as_dict()


def tool(
    name: str, about: str, now: Callable[..., Answer] | None, later: Callable[..., Awaitable[Answer]] | None
) -> BaseTool:
    """One of them, by functions whose parameters are the tool's."""
    return StructuredTool.from_function(
        func=now, coroutine=later, name=name, description=about, response_format="content_and_artifact"
    )


def sandbox_tools(
    sandbox: Sandbox | sync.Sandbox, *, command_timeout: float = _run.TIMEOUT_S, limit: int = _run.LIMIT
) -> list[BaseTool]:
    """run_command and run_code in the sandbox, which stays yours to close.

    Those over a px.Sandbox are for ainvoke() alone, and who cancels that ends the command. Those over a px.sync.Sandbox
    are for both; ainvoke() then waits in a thread.

    command_timeout: seconds that a command may have at most; a model can ask for less
    limit:           bytes of each of its streams that the model sees
    """
    make = of_sync if isinstance(sandbox, sync.Sandbox) else of_async
    return make(sandbox, command_timeout, limit)


def of_async(sandbox: Any, most: float, limit: int) -> list[BaseTool]:
    """Over a px.Sandbox."""

    async def run_command(command: str, timeout: float | None = None) -> Answer:
        return answer(await _run.run(sandbox, command, _run.bounded(timeout, most), limit))

    async def run_code(code: str, timeout: float | None = None) -> Answer:
        return answer(await _run.run_code(sandbox, code, _run.bounded(timeout, most), limit))

    return [tool("run_command", _run.COMMAND, None, run_command), tool("run_code", _run.CODE, None, run_code)]


def of_sync(sandbox: Any, most: float, limit: int) -> list[BaseTool]:
    """Over a px.sync.Sandbox."""

    def run_command(command: str, timeout: float | None = None) -> Answer:
        return answer(_run.run_sync(sandbox, command, _run.bounded(timeout, most), limit))

    def run_code(code: str, timeout: float | None = None) -> Answer:
        return answer(_run.run_code_sync(sandbox, code, _run.bounded(timeout, most), limit))

    async def run_command_later(command: str, timeout: float | None = None) -> Answer:
        return await asyncio.to_thread(run_command, command, timeout)

    async def run_code_later(code: str, timeout: float | None = None) -> Answer:
        return await asyncio.to_thread(run_code, code, timeout)

    return [
        tool("run_command", _run.COMMAND, run_command, run_command_later),
        tool("run_code", _run.CODE, run_code, run_code_later),
    ]


# ---- files ----


def at_once(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a coroutine returns that never waits: the file tools are such."""
    try:
        work.send(None)
    except StopIteration as end:
        found: dict[str, Any] = end.value
        return found
    work.close()
    raise RuntimeError("a file tool that waits")


def file_tools(sandbox: FileSandboxProtocol) -> list[BaseTool]:
    """read_file, write_file, list_files and edit_file; what is refused is an answer that says what is allowed."""
    toolset = FileSandboxToolset(sandbox)

    def call(name: str, **words: Any) -> Answer:
        found = at_once(toolset.call(name, words))
        said = found["result"] if found["ok"] else found["error"]["message"]
        return said if isinstance(said, str) else json.dumps(said), found

    def read_file(path: str, max_chars: int = MAX_CHARS) -> Answer:
        return call("read_file", path=path, max_chars=max_chars)

    def write_file(path: str, content: str) -> Answer:
        return call("write_file", path=path, content=content)

    def list_files(path: str = ".", pattern: str = "**/*") -> Answer:
        return call("list_files", path=path, pattern=pattern)

    def edit_file(path: str, old_text: str, new_text: str) -> Answer:
        return call("edit_file", path=path, old_text=old_text, new_text=new_text)

    made: tuple[Callable[..., Any], ...] = (read_file, write_file, list_files, edit_file)
    return [tool(each.__name__, getattr(toolset, each.__name__).__doc__, each, None) for each in made]
