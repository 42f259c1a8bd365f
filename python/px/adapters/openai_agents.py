"""px for the OpenAI Agents SDK: tools over a sandbox and over a file sandbox, a shell, and px mcp as a server.

    from px.adapters.openai_agents import file_tools, mcp_server, sandbox_tools, shell_tool

    agent = Agent(name="worker", tools=[*sandbox_tools(sandbox), *file_tools(files)])
    agent = Agent(name="worker", tools=[shell_tool(sandbox)])                  # the shell tool of OpenAI's models

    async with mcp_server({"project": Root(".", "rw")}) as server:             # files and commands by px mcp
        agent = Agent(name="worker", mcp_servers=[server])
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult, ShellTool
from agents import function_tool as make_tool
from agents.mcp import MCPServerStdio

from .. import Sandbox
from ..files import MAX_CHARS, FileSandboxProtocol, FileSandboxToolset
from . import _run, mcp

__all__ = ["file_tools", "mcp_server", "sandbox_tools", "shell_tool"]


def sandbox_tools(
    sandbox: Sandbox, *, command_timeout: float = _run.TIMEOUT_S, limit: int = _run.LIMIT
) -> list[FunctionTool]:
    """run_command and run_code in the sandbox, which stays yours to close. What they say is JSON.

    command_timeout: seconds that a command may have at most; a model can ask for less
    limit:           bytes of each of its streams that the model sees
    """

    async def run_command(command: str, timeout: float | None = None) -> str:
        done = await _run.run(sandbox, command, _run.bounded(timeout, command_timeout), limit)
        return json.dumps(done.as_dict())

    async def run_code(code: str, timeout: float | None = None) -> str:
        done = await _run.run_code(sandbox, code, _run.bounded(timeout, command_timeout), limit)
        return json.dumps(done.as_dict())

    return [
        make_tool(run_command, description_override=_run.COMMAND),
        make_tool(run_code, description_override=_run.CODE),
    ]


def file_tools(sandbox: FileSandboxProtocol) -> list[FunctionTool]:
    """read_file, write_file, list_files and edit_file; {"ok": true, "result"}, or {"ok": false, "error"} as JSON."""
    toolset = FileSandboxToolset(sandbox)

    async def call(name: str, **words: Any) -> str:
        return json.dumps(await toolset.call(name, words))

    async def read_file(path: str, max_chars: int = MAX_CHARS) -> str:
        return await call("read_file", path=path, max_chars=max_chars)

    async def write_file(path: str, content: str) -> str:
        return await call("write_file", path=path, content=content)

    async def list_files(path: str = ".", pattern: str = "**/*") -> str:
        return await call("list_files", path=path, pattern=pattern)

    async def edit_file(path: str, old_text: str, new_text: str) -> str:
        return await call("edit_file", path=path, old_text=old_text, new_text=new_text)

    made = (read_file, write_file, list_files, edit_file)
    return [make_tool(each, description_override=getattr(toolset, each.__name__).__doc__) for each in made]


def shell_tool(
    sandbox: Sandbox, *, command_timeout: float = _run.TIMEOUT_S, limit: int = _run.LIMIT, **words: Any
) -> ShellTool:
    """The SDK's shell tool, whose commands run in the sandbox one after another. words: other fields of ShellTool."""

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        most = _run.bounded(action.timeout_ms / 1000 if action.timeout_ms else None, command_timeout)
        kept = min(action.max_output_length or limit, limit)
        return ShellResult(
            output=[shell_output(line, await _run.run(sandbox, line, most, kept)) for line in action.commands],
            max_output_length=action.max_output_length,
        )

    return ShellTool(executor=execute, **words)


def shell_output(command: str, done: _run.Outcome) -> ShellCommandOutput:
    """An outcome in the SDK's words."""
    outcome = ShellCallOutcome("timeout") if done.timed_out else ShellCallOutcome("exit", done.exit_code)
    return ShellCommandOutput(done.stdout, done.stderr, outcome, command)


def mcp_server(roots: Mapping[str, mcp.Root | mcp.StrPath], *, name: str = "px", **words: Any) -> MCPServerStdio:
    """px mcp as one of the servers of an agent. words: of px.adapters.mcp.server."""
    entry = mcp.server(roots, **words)
    return MCPServerStdio(params={"command": entry["command"], "args": entry["args"]}, name=name)
