"""What the adapters for frameworks share, and that which needs none."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess

import pytest
from conftest import looped, running, until, word

import px.sync
from px import Sandbox
from px.adapters import _run, mcp

FRAMEWORKS = ("pydantic_ai", "langchain", "deepagents", "smolagents", "openai_agents", "openai_sandbox")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_adapter_without_its_framework_is_an_import_error(name, tmp_path):
    needs = {"langchain": "langchain_core", "openai_agents": "agents", "openai_sandbox": "agents"}.get(name, name)
    code = f"import sys; sys.modules[{needs!r}] = None; import px.adapters, px.adapters.mcp\ntry: import px.adapters.{name}\nexcept ImportError: print('needs it')"
    done = subprocess.run([shutil.which("python3", path="/usr/bin"), "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("needs it\n", "")


# ---- one command ----


def both(command, timeout=20.0, limit=_run.LIMIT):
    """The same by both kinds of sandboxes."""

    async def later():
        with Sandbox() as sandbox:
            return await _run.run(sandbox, command, timeout, limit)

    with px.sync.Sandbox() as sandbox:
        now = _run.run_sync(sandbox, command, timeout, limit)
    assert looped(later)() == now
    return now


def test_a_command_and_what_it_said():
    done = both("echo out; echo err >&2; exit 7")
    assert done == _run.Outcome(7, "out\n", "err\n")
    assert done.as_text() == "out\nstderr:\nerr\n[exit code 7]"
    assert both("true").as_text() == "[no output]"


def test_input_is_at_its_end():
    assert both("cat").exit_code == 0


def test_more_than_is_kept_is_dropped_and_said():
    done = both("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2", limit=1000)
    assert (len(done.stdout), done.stderr, done.exit_code, done.truncated) == (1000, "end\n", 0, True)
    assert not both("head -c 1000 /dev/zero", limit=1000).truncated


def test_a_long_output_has_its_beginning_and_its_end():
    done = both("seq 1 100000; seq 1 100000 >&2; exit 3", limit=1000)
    for text in (done.stdout, done.stderr):
        head, mark, tail = text.partition(" bytes left out ...]\n")
        assert (head[:4], mark != "", tail[-8:], len(text)) == ("1\n2\n", True, "\n100000\n", 1000)
        assert head.splitlines()[-1].startswith("[... 5879")
    assert done.as_text().count("bytes left out") == 2


@pytest.mark.parametrize("limit", [0, 1, 2, 40, 60, 61, 62, 63, 64, 65, 100, 999, 1000])
def test_what_is_shown_is_the_beginning_and_the_end_of_what_was_said(limit):
    for total in (0, limit - 1, limit, limit + 1, limit + 9, 10 * limit + 100, 1_000_000):
        said = bytes(97 + n % 26 if n % 7 else 10 for n in range(max(0, total)))
        for step in (1 << 20, 7) if total < 5000 else (1 << 20,):
            stream = _run.Stream(limit)
            for at in range(0, len(said), step):
                stream.add(said[at : at + step])
            shown = stream.text()
            assert stream.truncated() == (len(said) > limit) and len(shown) == min(limit, len(said))
            if b"left out" in shown:
                head, _, rest = shown.partition(b"[... ")
                count, _, tail = rest.partition(b" bytes left out ...]\n")
                head = head if said.startswith(head) else head[:-1]
                assert (said.startswith(head), said.endswith(tail), tail != b"") == (True, True, True)
                assert len(head) + int(count) + len(tail) == len(said)
            else:
                assert said.startswith(shown)


def test_a_command_that_takes_too_long_is_killed():
    seconds = word()
    done = both(f"echo before; sleep {seconds}", timeout=1.0)
    assert (done.stdout, done.timed_out, done.exit_code) == ("before\n", True, 124)
    until(lambda: not running(seconds), "the command goes on")


def test_the_time_is_for_all_of_it():
    done = both(f"exec >&- 2>&-; sleep {word()}", timeout=1.0)
    assert done.timed_out


def test_what_cannot_be_started_is_a_value():
    assert "was not found in the box" in both(["/no/such/program"]).stderr
    assert both("a\0b").exit_code == 125
    with px.sync.Sandbox() as sandbox:
        pass
    assert "closed" in _run.run_sync(sandbox, "true", 5.0).stderr


@pytest.mark.parametrize(("asked", "given"), [(None, 10.0), (3, 3), (99, 10.0), (0, 10.0), (-1, 10.0), (float("nan"), 10.0)])
def test_a_model_can_have_less_time_but_not_more(asked, given):
    assert _run.bounded(asked, 10.0) == given


def test_code_is_a_program_of_any_length():
    code = "x = '" + "y" * 300_000 + "'\nprint(len(x))\nraise SystemExit(3)\n"
    with px.sync.Sandbox() as sandbox:
        assert _run.run_code_sync(sandbox, code, 20.0) == _run.Outcome(3, "300000\n", "")
        assert _run.run_code_sync(sandbox, "'\ud800'", 20.0).exit_code == 125


# ---- entries of clients ----


def test_an_entry_has_the_boundaries_on_its_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = mcp.server(
        {"notes": "notes", "out": mcp.Root(tmp_path / "out", "rw", [".md", ".txt"], 1000)},
        read_only=True, execute=False, git_writable=True, options=["--memory", "2g"], px="/opt/px",
    )  # fmt: skip
    assert entry == {
        "command": "/opt/px",
        "args": ["mcp", "--root", f"notes={tmp_path}/notes:ro", "--root", f"out={tmp_path}/out:rw:suffixes=.md,.txt:max=1000",
                 "--read-only", "--no-execute", "--git-writable", "--memory", "2g"],
    }  # fmt: skip
    assert json.loads(json.dumps(mcp.config({"px": entry}))) == {"mcpServers": {"px": entry}}
    assert mcp.config({"px": entry}, "servers") == {"servers": {"px": entry}}


@pytest.mark.parametrize("roots", [{}, {"a:rw": "x"}, {"a=b": "x"}, {"a": "/x:rw"}, {"a": mcp.Root("x", "ro", [".md:rw"])}, {"a": "x\ny"}])
def test_a_root_that_would_say_something_else_is_refused(roots):
    with pytest.raises(ValueError, match="root"):
        mcp.server(roots)


def test_a_server_that_an_entry_starts(tmp_path):
    program = os.environ.get("PX")
    if not program:
        pytest.skip("PX does not name px")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("text of a note\n")
    entry = mcp.server({"notes": tmp_path / "notes"}, execute=False, px=program)
    ask = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "read_text_file", "arguments": {"path": "notes/a.md"}}},
        {"id": 3, "method": "tools/call", "params": {"name": "read_text_file", "arguments": {"path": "/etc/passwd"}}},
    ]  # fmt: skip
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in ask)
    done = subprocess.run([entry["command"], *entry["args"]], input=lines, capture_output=True, text=True, check=False, timeout=120)
    answers = {found["id"]: found for found in map(json.loads, done.stdout.splitlines()) if "id" in found}
    assert "text of a note" in json.dumps(answers[2]), done
    assert answers[3]["result"]["isError"], done


def test_every_adapter_says_what_it_is():
    for name in ("", "._run", "._kernel", ".mcp"):
        assert importlib.import_module(f"px.adapters{name}").__doc__
