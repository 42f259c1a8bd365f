"""px.adapters.pydantic_ai with the framework and a model of its own that calls what it is told to."""

from __future__ import annotations

import pytest
from conftest import cancelled, looped, word

from px import Sandbox
from px.files import FileSandbox, FileSandboxConfig, PathConfig
from px.worker import load_worker

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset

from px.adapters.pydantic_ai import FileSandboxToolset, SandboxToolset, WorkerToolset


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
    (tmp_path / "old").mkdir()
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


WORKER = """
sandbox:
  paths:
    repo: {root: repo, mode: rw}
tool_rules:
  edit_file: {allowed: false}
  write_file: {approval_required: true}
shell_rules:
  - {pattern: "cat ", approval_required: false}
  - {pattern: "touch ", approval_required: true}
"""


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a").write_text("one\n")
    (tmp_path / "w.yaml").write_text(WORKER)
    return load_worker(tmp_path / "w.yaml", tmp_path)


@looped
async def test_a_worker_with_an_approver(worker, tmp_path):
    asked = []

    async def ask(what):
        asked.append(what)
        return "no" not in what

    found, tools = await called(
        WorkerToolset(worker, approve=ask, id="w"),
        ("shell", {"command": "cat repo/a | cat"}),
        ("shell", {"command": "touch repo/b && cat repo/a"}),
        ("shell", {"command": "touch repo/no"}),
        ("shell", {"command": "rm repo/a"}),
        ("read_file", {"path": "repo/a"}),
        ("write_file", {"path": "repo/c", "content": "new"}),
        ("write_file", {"path": "repo/no", "content": "new"}),
    )
    assert set(tools) == {"shell", "read_file", "write_file", "list_files"}
    assert [one["stdout"] for one in found[:2]] == ["one\n", "one\n"]
    assert [one["ok"] for one in (found[2], found[3], found[6])] == [False] * 3
    assert found[4:6] == ["one\n", "Written 3 characters to repo/c"]
    assert asked == ["touch repo/b && cat repo/a", "touch repo/no", "write_file repo/c", "write_file repo/no"]
    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == ["a", "b", "c"]


@looped
async def test_a_worker_whose_calls_are_deferred(worker, tmp_path):
    left = [("shell", {"command": "touch repo/b"}, "1"), ("shell", {"command": "touch repo/d"}, "2")]

    async def model(messages, info):
        return ModelResponse([ToolCallPart(*left.pop(0))] if left else [TextPart("done")])

    agent = Agent(FunctionModel(model), toolsets=[WorkerToolset(worker)], output_type=[str, DeferredToolRequests])
    result = await agent.run("go")
    for number, answer in (("1", True), ("2", False)):
        assert [call.tool_call_id for call in result.output.approvals] == [number]
        result = await agent.run(
            message_history=result.all_messages(), deferred_tool_results=DeferredToolResults(approvals={number: answer})
        )
    assert result.output == "done"
    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == ["a", "b"]
