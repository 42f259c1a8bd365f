"""px.adapters.deepagents with the framework: the backend by itself, and under an agent with a scripted model."""

from __future__ import annotations

import asyncio

import pytest
from conftest import running, until, word

from px.sync import Sandbox

pytest.importorskip("deepagents", reason="deepagents is not installed")

from deepagents import create_deep_agent
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from px.adapters.deepagents import SandboxBackend

HOME = "/home/sandbox"


@pytest.fixture
def sandbox():
    with Sandbox() as found:
        yield found


@pytest.fixture
def backend(sandbox):
    return SandboxBackend(sandbox, command_timeout=30)


def test_commands(backend):
    assert isinstance(backend, SandboxBackendProtocol)
    assert backend.id
    done = backend.execute("echo out; echo err >&2; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("out\nerr\n", 3, False)
    assert "Read-only" in backend.execute("touch /usr/x").output
    seconds = word()
    done = backend.execute(f"sleep {seconds}", timeout=1)
    assert done.exit_code == 124
    assert "killed after 1 seconds" in done.output
    until(lambda: not running(seconds), "the command goes on")
    assert asyncio.run(backend.aexecute("echo later")).output == "later\n"


def test_output_has_an_end(sandbox):
    done = SandboxBackend(sandbox, limit=1000).execute("yes | head -c 3000000")
    assert (len(done.output), done.truncated, done.exit_code) == (1000, True, 0)


def test_files(backend):
    assert backend.write(f"{HOME}/src/a.py", "import os\nprint('needle')\n").error is None
    assert backend.write(f"{HOME}/src/deep/b.txt", "needle ü\n").error is None
    assert [entry["path"] for entry in backend.ls(f"{HOME}/src").entries or []] != []
    assert "needle" in backend.read(f"{HOME}/src/a.py").file_data["content"]
    assert {match["path"] for match in backend.grep("needle", HOME).matches} == {f"{HOME}/src/a.py", f"{HOME}/src/deep/b.txt"}
    assert [match["path"] for match in backend.glob("**/*.txt", HOME).matches] == [f"{HOME}/src/deep/b.txt"]
    assert backend.edit(f"{HOME}/src/a.py", "needle", "pin").occurrences == 1
    assert backend.download_files([f"{HOME}/src/a.py"])[0].content == b"import os\nprint('pin')\n"
    assert backend.edit(f"{HOME}/src/a.py", "none", "x").error
    assert backend.read(f"{HOME}/none").error
    assert backend.delete(f"{HOME}/src").error is None
    assert backend.ls(f"{HOME}/src").entries in (None, [])


def test_files_in_and_out(backend):
    data = bytes(range(256)) * 5000
    answers = backend.upload_files([(f"{HOME}/x/y.bin", data), ("/usr/x", b""), ("relative", b""), (HOME, b""), ("/tmp/-e", b"dash"), ("/tmp/a\0b", b"")])
    assert [answer.error for answer in answers] == [None, "permission_denied", "invalid_path", "is_directory", None, "invalid_path"]
    answers = backend.download_files([f"{HOME}/x/y.bin", "/tmp/-e", f"{HOME}/none", HOME, "relative", "/root/x"])
    assert [answer.content for answer in answers] == [data, b"dash", None, None, None, None]
    assert [answer.error for answer in answers[2:]] == ["file_not_found", "is_directory", "invalid_path", "file_not_found"]


def test_links_of_the_sandbox_lead_nowhere_else(sandbox, tmp_path):
    """Files are fetched where the links mean what they mean in the sandbox."""
    backend, secret = SandboxBackend(sandbox, max_file_bytes=1000), tmp_path / "secret"
    secret.write_text("secret")
    backend.execute(f"ln -s {secret} leak; ln -s {tmp_path} dir; mkfifo pipe; truncate -s 1T large; touch closed; chmod 0 closed; ln -s /etc/hosts hosts")
    paths = [f"{HOME}/{name}" for name in ("leak", "dir/secret", "pipe", "large", "closed", "hosts")]
    found = backend.download_files(paths)
    assert [one.error for one in found] == ["file_not_found", "file_not_found", "invalid_path", "larger than 1000 bytes", "permission_denied", None]
    assert [one.content for one in found[:5]] == [None] * 5
    backend.upload_files([(f"{HOME}/leak", b"evil"), (f"{HOME}/dir/new", b"evil")])
    assert secret.read_text() == "secret"
    assert not (tmp_path / "new").exists()
    assert backend.upload_files([(f"{HOME}/big", b"x" * 1001)])[0].error == "larger than 1000 bytes"


class Script(GenericFakeChatModel):
    """A model that calls what it is told to; it takes any tools."""

    def bind_tools(self, tools, **_):
        return self


def test_an_agent_with_the_backend(backend):
    def calls(name, **args):
        return AIMessage("", tool_calls=[{"type": "tool_call", "id": name, "name": name, "args": args}])

    model = Script(messages=iter([
        calls("write_file", file_path=f"{HOME}/hello.py", content="print(6 * 7)\n"),
        calls("execute", command="python3 hello.py"),
        calls("read_file", file_path=f"{HOME}/hello.py"),
        AIMessage("done"),
    ]))  # fmt: skip
    done = create_deep_agent(model=model, backend=backend).invoke({"messages": [("user", "go")]})
    said = {message.name: message.content for message in done["messages"] if isinstance(message, ToolMessage)}
    assert "42" in said["execute"]
    assert "print(6 * 7)" in said["read_file"]
    assert done["messages"][-1].content == "done"
