"""px.adapters.openai_agents with the framework and its own scripted model."""

from __future__ import annotations

import json
import os

import pytest
from conftest import looped, running, until, word

from px import Sandbox
from px.adapters.mcp import Root
from px.files import FileSandbox, FileSandboxConfig, PathConfig

pytest.importorskip("agents", reason="openai-agents is not installed")
testing = pytest.importorskip("agents.testing", reason="this openai-agents has no scripted model")

from agents import Agent, Runner, ShellActionRequest, ShellCallData, ShellCommandRequest, ShellTool, set_tracing_disabled
from agents.run_context import RunContextWrapper

from px.adapters.openai_agents import file_tools, mcp_server, sandbox_tools, shell_tool

set_tracing_disabled(True)


async def called(calls, **words):
    """What the tools say to a model that makes these calls one after another."""
    steps = [[testing.function_call(name, args, call_id=str(number))] for number, (name, args) in enumerate(calls)]
    model = testing.ScriptedModel([*steps, [testing.assistant_message("done")]])
    result = await Runner.run(Agent(name="a", model=model, **words), "go", max_turns=20)
    assert result.final_output == "done"
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


@looped
async def test_commands_and_code_in_the_sandbox():
    with Sandbox() as sandbox:
        found = await called(
            [
                ("run_command", {"command": "echo hello > f; cat f; exit 3", "timeout": None}),
                ("run_code", {"code": "print(open('f').read() * 2)", "timeout": None}),
                ("run_command", {"command": "touch /usr/x", "timeout": None}),
                ("run_command", {"command": f"sleep {word()}", "timeout": 0.5}),
            ],
            tools=sandbox_tools(sandbox, command_timeout=20),
        )
    said = [json.loads(one) for one in found]
    assert said[0] == {"exit_code": 3, "stdout": "hello\n", "stderr": "", "timed_out": False, "truncated": False}
    assert said[1]["stdout"] == "hello\nhello\n\n"
    assert "Read-only" in said[2]["stderr"]
    assert said[3]["timed_out"]


@looped
async def test_files_of_the_sandbox(tmp_path):
    (tmp_path / "secret").write_text("secret")
    files = FileSandbox(FileSandboxConfig({"notes": PathConfig(tmp_path / "notes", "rw")}))
    (tmp_path / "notes" / "out").symlink_to(tmp_path / "secret")
    found = await called(
        [
            ("write_file", {"path": "notes/a.md", "content": "hello"}),
            ("edit_file", {"path": "notes/a.md", "old_text": "hello", "new_text": "bye"}),
            ("read_file", {"path": "notes/a.md", "max_chars": 100}),
            ("list_files", {"path": ".", "pattern": "**/*.md"}),
            ("read_file", {"path": "notes/out", "max_chars": 100}),
            ("read_file", {"path": "/etc/passwd", "max_chars": 100}),
        ],
        tools=file_tools(files),
    )
    said = [json.loads(one) for one in found]
    assert [one["ok"] for one in said] == [True, True, True, True, False, False]
    assert said[2]["result"] == "bye"
    assert said[3]["result"] == ["notes/a.md"]
    assert {one["error"]["class"] for one in said[4:]} == {"PathNotInSandboxError"}


@looped
async def test_the_shell_of_the_sdk():
    seconds = word()
    with Sandbox() as sandbox:
        tool = shell_tool(sandbox, command_timeout=20)
        assert isinstance(tool, ShellTool)

        async def ask(*commands, **words):
            action = ShellActionRequest(commands=list(commands), **words)
            return await tool.executor(ShellCommandRequest(RunContextWrapper(None), ShellCallData("1", action)))

        first, second = (await ask("echo hello; exit 3", "touch /usr/x")).output
        assert (first.stdout, first.exit_code, first.status) == ("hello\n", 3, "completed")
        assert "Read-only" in second.stderr
        (late,) = (await ask(f"sleep {seconds}", timeout_ms=500)).output
        assert late.status == "timeout"
        until(lambda: not running(seconds), "the command goes on")
        (long,) = (await ask("yes | head -c 100000", max_output_length=100)).output
        assert len(long.stdout) == 100


@looped
async def test_px_mcp_as_a_server_of_an_agent(tmp_path):
    program = os.environ.get("PX")
    if not program:
        pytest.skip("PX does not name px")
    (tmp_path / "project").mkdir()
    async with mcp_server({"project": Root(tmp_path / "project", "rw")}, px=program) as server:
        names = {tool.name for tool in await server.list_tools()}
        assert {"read_text_file", "write_file", "execute"} <= names
        found = await called(
            [
                ("write_file", {"path": "project/a.txt", "content": "hello"}),
                ("execute", {"command": "cat project/a.txt; cat /etc/shadow"}),
                ("read_text_file", {"path": "/etc/passwd"}),
            ],
            mcp_servers=[server],
        )
    assert (tmp_path / "project" / "a.txt").read_text() == "hello"
    assert "hello" in str(found[1])
    assert "outside" in str(found[2])
