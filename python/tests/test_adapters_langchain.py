"""px.adapters.langchain with the framework and its own scripted model."""

from __future__ import annotations

import asyncio
import json

import pytest
from conftest import cancelled, looped, word

import px.sync
from px import Sandbox
from px.files import FileSandbox, FileSandboxConfig, PathConfig

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from px.adapters.langchain import file_tools, sandbox_tools


def named(tools):
    assert all(isinstance(tool, BaseTool) for tool in tools)
    return {tool.name: tool for tool in tools}


def call(name, **args):
    return {"type": "tool_call", "id": "1", "name": name, "args": args}


def test_commands_that_a_model_asks_for():
    model = GenericFakeChatModel(messages=iter([AIMessage("", tool_calls=[call("run_command", command="echo $((6 * 7))")])]))
    with px.sync.Sandbox() as sandbox:
        tools = named(sandbox_tools(sandbox))
        (asked,) = model.invoke("go").tool_calls
        said = tools[asked["name"]].invoke(asked)
    assert isinstance(said, ToolMessage)
    assert said.content == "42\n".strip()
    assert said.artifact["exit_code"] == 0


def test_commands_and_code_of_a_plain_sandbox():
    with px.sync.Sandbox() as sandbox:
        tools = named(sandbox_tools(sandbox, command_timeout=20, limit=1000))
        said = tools["run_code"].invoke({"code": "print(open('/etc/hostname').read(), 'x' * 5000, 'end')"})
        assert ("bytes left out ...]\n" in said, said[-5:]) == (True, "x end")
        assert "Read-only" in tools["run_command"].invoke({"command": "touch /usr/x"})
        said = tools["run_command"].invoke(call("run_command", command=f"sleep {word()}", timeout=0.5))
        assert said.artifact["timed_out"]
        assert asyncio.run(tools["run_command"].ainvoke({"command": "exit 3"})) == "[exit code 3]"
    assert set(tools["run_command"].args) == {"command", "timeout"}
    assert "bash" in tools["run_command"].description


@looped
async def test_commands_of_an_event_loop_and_their_end():
    seconds = word()
    with Sandbox() as sandbox:
        tools = named(sandbox_tools(sandbox))
        assert await tools["run_code"].ainvoke({"code": "print(1 + 1)"}) == "2"
        await cancelled(tools["run_command"].ainvoke({"command": f"sleep {seconds}"}), seconds)
        with pytest.raises(NotImplementedError):
            tools["run_command"].invoke({"command": "true"})


def test_files_of_the_sandbox(tmp_path):
    (tmp_path / "secret").write_text("secret")
    paths = {"notes": PathConfig(tmp_path / "notes", "rw")}
    tools = named(file_tools(FileSandbox(FileSandboxConfig(paths))))
    assert tools["write_file"].invoke({"path": "notes/a.md", "content": "hello"}) == "Written 5 characters to notes/a.md"
    assert "+bye" in tools["edit_file"].invoke({"path": "notes/a.md", "old_text": "hello", "new_text": "bye"})
    assert tools["read_file"].invoke({"path": "notes/a.md", "max_chars": 2}) == "by"
    assert json.loads(tools["list_files"].invoke({})) == ["notes/a.md"]
    assert asyncio.run(tools["read_file"].ainvoke({"path": "notes/a.md"})) == "bye"
    (tmp_path / "notes" / "out").symlink_to(tmp_path / "secret")
    for path in ("../secret", "/etc/passwd", "notes/out"):
        said = tools["read_file"].invoke(call("read_file", path=path))
        assert said.content.endswith("Readable paths: notes")
        assert said.artifact["error"]["class"] == "PathNotInSandboxError"
