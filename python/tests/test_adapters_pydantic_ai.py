"""px.adapters.pydantic_ai with the framework and a model of its own that calls what it is told to."""

from __future__ import annotations

import pytest
from conftest import cancelled, looped, word

from px import Sandbox
from px.files import FileSandbox, FileSandboxConfig, PathConfig

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset

from px.adapters.pydantic_ai import FileSandboxToolset, SandboxToolset


async def called(toolset, *calls):
    """What a model gets that makes these calls one after another."""
    left, seen = list(calls), {}

    async def model(messages, info):
        seen.update({tool.name: tool for tool in info.function_tools})
        return ModelResponse([ToolCallPart(*left.pop(0))] if left else [TextPart("done")])

    result = await Agent(FunctionModel(model), toolsets=[toolset]).run("go")
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    return [part.content for part in parts], seen


@pytest.fixture
def files(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("héllo\n")
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "notes" / "out").symlink_to(tmp_path / "secret")
    paths = {"notes": PathConfig(tmp_path / "notes", "rw"), "old": PathConfig(tmp_path / "old")}
    return FileSandbox(FileSandboxConfig(paths))


@looped
async def test_files_of_the_sandbox(files, tmp_path):
    toolset = FileSandboxToolset(files, id="files")
    assert isinstance(toolset, AbstractToolset)
    assert toolset.id == "files"
    found, tools = await called(
        toolset,
        ("read_file", {"path": "notes/a.md"}),
        ("read_file", {"path": "notes/a.md", "max_chars": 2}),
        ("write_file", {"path": "notes/b/c.md", "content": "new"}),
        ("edit_file", {"path": "notes/b/c.md", "old_text": "new", "new_text": "newer"}),
        ("list_files", {"path": "notes", "pattern": "**/*.md"}),
    )
    assert found[:3] == ["héllo\n", "hé", "Written 3 characters to notes/b/c.md"]
    assert found[4] == ["notes/a.md", "notes/b/c.md"]
    assert (tmp_path / "notes/b/c.md").read_text() == "newer"
    assert set(tools) == {"read_file", "write_file", "list_files", "edit_file"}
    assert tools["read_file"].description.startswith("Read a text file")
    assert set(tools["read_file"].parameters_json_schema["properties"]) == {"path", "max_chars"}


@looped
async def test_what_is_refused_is_told_and_the_run_goes_on(files):
    found, _ = await called(
        FileSandboxToolset(files),
        ("read_file", {"path": "/etc/passwd"}),
        ("read_file", {"path": "notes/out"}),
        ("read_file", {"path": "notes/none.md"}),
        ("read_file", {"path": "notes/a.md", "max_chars": -1}),
        ("write_file", {"path": "old/a.md", "content": "x"}),
        ("edit_file", {"path": "notes/a.md", "old_text": "none", "new_text": "x"}),
    )
    assert [one["ok"] for one in found] == [False] * 6
    kinds = [one["error"]["class"] for one in found]
    assert kinds == ["PathNotInSandboxError", "PathNotInSandboxError", "FileNotFoundError", "ValueError", "PathNotWritableError", "EditError"]
    assert "Readable paths: notes, old" in found[0]["error"]["message"]
    assert "secret" not in str(found)


@looped
async def test_a_model_that_calls_everything(files):
    result = await Agent(TestModel(), toolsets=[FileSandboxToolset(files)]).run("go")
    assert "read_file" in result.output


@looped
async def test_commands_and_code_in_the_sandbox():
    with Sandbox() as sandbox:
        found, tools = await called(
            SandboxToolset(sandbox, command_timeout=20, limit=1000),
            ("run_command", {"command": "echo hello > f; cat f; exit 3"}),
            ("run_code", {"code": "print(open('f').read() * 2)"}),
            ("run_command", {"command": "cat /etc/shadow /root/x; touch /usr/x"}),
            ("run_command", {"command": f"sleep {word()}", "timeout": 0.5}),
            ("run_command", {"command": "yes | head -c 2000000"}),
        )
    assert found[0] == {"exit_code": 3, "stdout": "hello\n", "stderr": "", "timed_out": False, "truncated": False}
    assert found[1]["stdout"] == "hello\nhello\n\n"
    assert found[2]["exit_code"] != 0
    assert "Read-only" in found[2]["stderr"]
    assert found[3]["timed_out"]
    assert (len(found[4]["stdout"]), found[4]["truncated"]) == (1000, True)
    assert set(tools) == {"run_command", "run_code"}


@looped
async def test_a_run_that_is_cancelled_ends_its_command():
    seconds = word()
    with Sandbox() as sandbox:
        await cancelled(called(SandboxToolset(sandbox), ("run_command", {"command": f"sleep {seconds}"})), seconds)
