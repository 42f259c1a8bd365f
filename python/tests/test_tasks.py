"""Rows R1 to R24: tasks. The working directory of each test is one of its own, as the paths of tasks are relative."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE_S, looped, px_program, running, until, word

from px.tasks import (
    SandboxConfig,
    SandboxError,
    WorkspaceError,
    apply_action,
    apply_action_async,
    apply_from,
    checkout,
    cleanup,
    diff,
    export,
    fork,
    list_files,
    prepare_workspace,
    read_file,
    run_tests,
    run_tests_async,
)

WAYS = ("auto", "never")
CONFIG = SandboxConfig(allowed_binaries=["python3", "sh", "cat", "pytest"])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def config(**more):
    return SandboxConfig(allowed_binaries=CONFIG.allowed_binaries, **more)


def prepare(task, files=None, use=CONFIG):
    return prepare_workspace(task, files or {"a": "1"}, config=use)


def python(workspace, code, *words, use=CONFIG, **more):
    return apply_action(workspace, {"command": ["python3", "-c", code, *words]}, config=use, **more)


def shell(workspace, line, use=CONFIG, **more):
    return apply_action(workspace, {"command": ["sh", "-c", line]}, config=use, **more)


def journal(task):
    return [json.loads(line) for line in Path("logs", "sandbox", f"{task}.jsonl").read_text().splitlines()]


def test_R1_prepare():
    workspace = prepare_workspace("task1", {"a/b.txt": "hello\n", "main.py": "print(1)\n"})
    assert workspace == Path(".sandbox/task1")
    assert (workspace / "a" / "b.txt").read_text() == "hello\n"
    assert prepare_workspace("task1", {"main.py": "print(2)\n"}) == workspace
    assert (workspace / "a" / "b.txt").exists()
    assert (workspace / "main.py").read_text() == "print(2)\n"


def test_R2_paths():
    for path in ("/abs", "../x", "a/../b", "", "a/"):
        with pytest.raises(ValueError) as caught:
            prepare_workspace("t", {"good": "1", path: "2"})
        assert isinstance(caught.value, SandboxError)
        assert caught.value.name == "PX402"
        assert path in str(caught.value)
        assert not Path(".sandbox/t").exists()
    with pytest.raises(ValueError):
        prepare_workspace("t", {"nul\0": "2"})
    assert (prepare_workspace("t", {"ok/./f": "1"}) / "ok" / "f").read_text() == "1"


def test_R3_names():
    for name in ("", ".", "..", "../esc", "a/b", "x" * 129, "a b", "a\0b"):
        with pytest.raises(ValueError):
            prepare_workspace(name, {"a": "b"})
    assert not Path("esc").exists()
    with pytest.raises(TypeError):
        prepare_workspace(5, {"a": "b"})
    for place in (".sandbox", "elsewhere/t", "..", ".sandbox/../t", ".sandbox/a b"):
        with pytest.raises(ValueError):
            apply_action(place, {"command": ["python"]})
        with pytest.raises(ValueError):
            cleanup(place)


def test_R4_bytes(tmp_path):
    data = bytes(range(256)) * 3
    workspace = prepare("t", {"b": data, "c": "a\0ü"})
    assert (workspace / "b").read_bytes() == data
    assert (workspace / "c").read_bytes() == "a\0ü".encode()


def test_R5_what_is_listed():
    workspace = prepare("t")
    result = apply_action(workspace, {"command": ["rm", "a"]}, config=CONFIG)
    assert (result.exit_code, result.error, result.cmd) == (126, "not_allowed", ["rm", "a"])
    assert "not allowed" in result.stderr
    assert (workspace / "a").exists()
    assert journal("t")[-1]["error"] == "not_allowed"
    result = apply_action(workspace, {"command": ["python", "-c", "print(1)"]})
    assert (result.exit_code, result.stdout) == (0, "1\n")


def test_R6_bad_commands():
    workspace = prepare("t")
    for action in ({}, *({"command": c} for c in ([], "python3 -c pass", ["python3", 1], None, ["a\0b"], {"a": 1}, ["\ud800"]))):
        result = apply_action(workspace, action, config=CONFIG)
        assert (result.exit_code, result.error, result.stderr) == (127, "invalid_command", "invalid command"), action
        assert (result.cmd, result.diff, result.changed_files) == ([], None, None)
    assert asyncio.run(apply_action_async(workspace, {}, config=CONFIG)).exit_code == 127


def test_R7_timeout():
    mark = word()
    workspace = prepare("t")
    result = shell(workspace, f"(setsid sleep {mark} &); (trap '' TERM; sleep {mark} & wait) & sleep {mark}", timeout_sec=1)
    assert (result.exit_code, result.error, result.stderr) == (124, "timeout", "timeout")
    assert running(mark) == 0
    result = shell(workspace, f"sleep {mark}", use=config(default_timeout_sec=0.5))
    assert (result.exit_code, result.error) == (124, "timeout")


@pytest.mark.parametrize("way", WAYS)
def test_R8_R9_diffs(way):
    use = config(overlay=way)
    workspace = prepare("t", {"file.txt": "line1\n", "other": "x"}, use)
    result = python(workspace, "open('file.txt', 'a').write('line2\\n')", use=use)
    assert result.exit_code == 0
    assert result.diff == "--- a/file.txt\n+++ b/file.txt\n@@ -1 +1,2 @@\n line1\n+line2\n"
    assert result.changed_files == ["file.txt"]
    assert (workspace / "file.txt").read_text() == "line1\nline2\n"
    result = python(workspace, "open('new', 'w').write('x\\n'); open('empty', 'w')", use=use)
    assert result.diff == "--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    assert result.changed_files == ["empty", "new"]
    result = python(workspace, "import os; os.remove('new')", use=use)
    assert result.diff == "--- a/new\n+++ b/new\n@@ -1 +0,0 @@\n-x\n"


def test_R8_discarded():
    workspace = prepare("t")
    result = python(workspace, "open('a', 'w').write('2')", discard=True)
    assert result.changed_files == ["a"]
    assert result.details["applied"] is False
    assert (workspace / "a").read_text() == "1"


def test_R10_binary_files():
    workspace = prepare("t")
    result = python(workspace, "open('bin', 'wb').write(b'a\\0b'); open('big', 'w').write('x\\n' * 2000000)")
    assert result.changed_files == ["big", "bin"]
    assert "Binary files" in result.diff
    assert len(result.diff) < 1000


def test_R11_no_change():
    result = python(prepare("t", {"a": "1\n"}), "open('a', 'w').write('1\\n')")
    assert (result.exit_code, result.diff, result.changed_files) == (0, None, None)
    assert (journal("t")[-1]["changed_files"], journal("t")[-1]["diff_len"]) == ([], 0)


def test_R12_R13_limits():
    use = config(cpu_time_sec=1, mem_limit_mb=128, default_timeout_sec=600)
    workspace = prepare("t", use=use)
    result = python(workspace, "while True: pass", use=use)
    assert (result.exit_code, result.error) == (-9, None)
    result = python(workspace, "x = bytearray(512 << 20); print(len(x))", use=use)
    assert result.exit_code != 0
    assert result.stdout == ""
    result = python(workspace, "x = bytearray(512 << 20); print(len(x))", mem_limit_mb=2048, use=use)
    assert result.stdout == f"{512 << 20}\n"
    result = python(workspace, "while True: pass", cpu_time_sec=1, timeout_sec=600)
    assert result.exit_code == -9


def test_R14_no_core_file():
    workspace = prepare("t")
    result = python(workspace, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (result.exit_code, result.changed_files) == (-11, None)
    assert os.listdir(workspace) == ["a"]


def test_R15_R16_surroundings(monkeypatch):
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SECRET")
    for name in names:
        monkeypatch.setenv(name, "leak")
    code = "import os, json; print(json.dumps([dict(os.environ), os.listdir('.')]))"
    seen, files = json.loads(python(prepare("t"), code).stdout)
    assert not set(names) & set(seen)
    assert seen["NO_PROXY"] == "*"
    assert files == ["a"]


def test_R17_no_way_around(here, monkeypatch):
    evil = here / "evil"
    evil.mkdir()
    (evil / "python3").write_text("#!/bin/sh\necho evil\n")
    (evil / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{evil}:{os.environ['PATH']}")
    workspace = prepare("t", {"python3": "#!/bin/sh\necho evil\n"})
    for path in (str(evil / "python3"), "./python3", "/usr/bin/python3", "../python3"):
        assert apply_action(workspace, {"command": [path, "-c", "print(1)"]}, config=CONFIG).error == "not_allowed"
    assert python(workspace, "print(1)").stdout == "1\n"


def test_R18_tests():
    code = "import unittest\nclass T(unittest.TestCase):\n    def test_no(self): self.assertEqual(1, 2)\n"
    workspace = prepare("t", {"test_a.py": code})
    spec = {"command": ["python3", "-m", "unittest", "test_a"]}
    for result in (run_tests(workspace, spec, config=CONFIG), asyncio.run(run_tests_async(workspace, spec, config=CONFIG))):
        assert result.exit_code == 1
        assert "FAILED" in result.stderr
        assert result.error is None
        assert not hasattr(result, "diff")
    assert journal("t")[-1]["event"] == "apply_action"


def test_R19_R20_cleanup_and_journal():
    workspace = prepare("t", {"ü.txt": "1"})
    python(workspace, "print('SECRET-' + 'OUT'); open('ü.txt', 'w').write('äöü\\n')")
    cleanup(workspace)
    assert not workspace.exists()
    cleanup(workspace)
    text = Path("logs/sandbox/t.jsonl").read_text()
    assert "SECRET-OUT" not in text
    assert "ü.txt" in text
    lines = journal("t")
    assert [line["event"] for line in lines] == ["prepare_workspace", "apply_action", "cleanup", "cleanup"]
    assert all(line["task_id"] == "t" and isinstance(line["timestamp"], float) for line in lines)
    with pytest.raises(SandboxError) as caught:
        python(workspace, "pass")
    assert caught.value.name == "PX403"
    assert not isinstance(caught.value, WorkspaceError)


def test_tools_of_ones_own(here):
    tools = here / "tools"
    tools.mkdir(mode=0o755)
    (tools / "tool").write_text('#!/bin/sh\necho "$WORD $1"\n')
    (tools / "tool").chmod(0o755)
    use = SandboxConfig(allowed_binaries=["tool"], path=["tools"], env=["WORD=said"])
    result = apply_action(prepare("t", use=use), {"command": ["tool", "it"]}, config=use)
    assert (result.cmd[0], result.stdout, result.exit_code) == (str(tools.resolve() / "tool"), "said it\n", 0)
    Path("own.yaml").write_text("path: [tools]\nbinds: [/usr/bin]\nenv: [A=1]\n")
    loaded = SandboxConfig.load("own.yaml")
    assert (loaded.path, loaded.binds, loaded.env) == ((str(tools.resolve()),), (os.path.realpath("/usr/bin"),), ("A=1",))


def test_branches(here):
    base = prepare("base", {"a.txt": "one\n", "d/b.txt": "two\n"})
    branch = fork(base, "b", config=CONFIG)
    assert branch == base.parent / "b" and not branch.exists() and not base.exists()
    python(branch, "import os; os.remove('a.txt'); open('d/n', 'w').write('new\\n'); os.symlink('d', 'l')")
    found = diff(branch, config=CONFIG)
    assert found.changed_files == ["a.txt", "d/n", "l"] and "+new" in found.diff and not found.truncated
    assert ("l", "added", True) in found.changes
    assert diff(base, branch, config=CONFIG) == found
    assert list_files(branch, config=CONFIG) == ["d/", "d/b.txt", "d/n", "l"]
    assert read_file(branch, "d/n", config=CONFIG) == b"new\n"
    with pytest.raises(SandboxError):
        read_file(branch, "l/n", config=CONFIG)
    with pytest.raises(WorkspaceError):
        read_file(branch, "../base/a.txt", config=CONFIG)
    other = fork(base, "c", config=CONFIG)
    assert apply_from(branch, other, config=CONFIG) == found
    assert read_file(other, "d/n", config=CONFIG) == b"new\n"
    assert export(other, here / "out", config=CONFIG) == here / "out"
    assert (here / "out" / "d" / "n").read_text() == "new\n" and not (here / "out" / "a.txt").exists()
    with pytest.raises(SandboxError):
        export(other, here / "out", config=CONFIG)
    assert checkout(branch, config=CONFIG) == branch and (branch / "d" / "n").read_text() == "new\n"
    with pytest.raises(WorkspaceError):
        fork(base, "../x", config=CONFIG)
    for one in (base, branch, other):
        cleanup(one, config=CONFIG)


def test_the_environment_of_a_project(here, monkeypatch):
    """What px sync has made of the project, and an error that says so where it has not."""
    monkeypatch.delenv("CI", raising=False)  # px sync would be --frozen
    place = here / "demo"
    place.mkdir()
    (place / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1.0"\ndependencies = []\n[tool.px.env]\nMODE = "of the project"\n'
    )
    own = config(project=place)
    workspace = prepare("t", use=own)
    with pytest.raises(SandboxError) as caught:
        python(workspace, "", use=own)
    assert caught.value.name in ("PX120", "PX201") and "px sync" in caught.value.fix
    with contextlib.chdir(place):
        made = px_program("sync")["details"]["env"]
    code = "import os; print(os.environ['MODE'], os.environ['PX_PROJECT_ROOT'], os.environ['VIRTUAL_ENV'])"
    found = python(workspace, code, use=own)
    assert found.stdout == f"of the project /workspace {made}\n", found
    assert found.cmd[0] == f"{made}/bin/python3"
    (here / "own.yaml").write_text("project: demo\n")
    assert SandboxConfig.load(here / "own.yaml").project == "demo"


def test_R21_R22_configuration(here):
    assert SandboxConfig.load() == SandboxConfig(allowed_binaries=["ast-grep", "sg", "python", "pytest"])
    Path("configs").mkdir()
    file = Path("configs/sandbox.yaml")
    file.write_text("work_root: w/r\nlogs_dir: l\ndefault_timeout_sec: 1.5\nallowed_binaries: [sh]\nlog_max_mb: 1\n")
    for refused in (SandboxConfig.load, lambda: prepare_workspace("t", {"a": "1"})):  # sh is not in the default list
        with pytest.raises(SandboxError, match="allowed_binaries") as caught:
            refused()
        assert caught.value.name == "PX050"
    found = SandboxConfig.load(file)
    assert (found.work_root, found.logs_dir, found.default_timeout_sec) == ("w/r", "l", 1.5)
    assert (found.allowed_binaries, found.log_max_mb, found.overlay) == (["sh"], 1, "auto")
    workspace = prepare_workspace("t", {"a": "1"}, config=found)
    assert workspace == Path("w/r/t")
    assert apply_action(workspace, {"command": ["sh", "-c", "echo 1"]}, config=found).stdout == "1\n"
    with pytest.raises(WorkspaceError, match="work_root"):
        apply_action(workspace, {"command": ["sh"]}, config=CONFIG)
    file.write_text("work_root: w/r\nlogs_dir: l\nallowed_binaries: [python]\nenable_jail: true\n")
    assert SandboxConfig.load().allowed_binaries == ["python"]  # found, and stricter
    assert apply_action(workspace, {"command": ["sh", "-c", "echo 1"]}).error == "not_allowed"
    file.write_text("enable_jail: false\n")
    with pytest.raises(SandboxError, match="enable_jail") as caught:
        apply_action(workspace, {"command": ["python", "-c", "pass"]})
    assert caught.value.name == "PX050"
    file.write_text("x: [\n")
    with pytest.raises(SandboxError) as caught:
        prepare_workspace("u", {"a": "1"})
    assert caught.value.name == "PX400"
    strange = SandboxConfig(work_root=here / "a: b #'\"ü", allowed_binaries=["sh"])
    assert prepare_workspace("t", {"a": "1"}, config=strange) == strange.work_root / "t"
    for wrong, name in (
        ({"mem_limit_mb": 0}, "PX400"),
        ({"allowed_binaries": ["a/b"]}, "PX400"),
        ({"jailer": "nsjail"}, "PX003"),
    ):
        with pytest.raises(SandboxError, match="SandboxConfig, line") as caught:
            prepare_workspace("u", {"a": "1"}, config=SandboxConfig(**wrong))
        assert caught.value.name == name


def test_R22_the_box_has_no_network():
    code = "import socket; s = socket.socket(); s.settimeout(2); s.connect(('192.0.2.1', 80))"
    result = python(prepare("t"), code)
    assert result.exit_code == 1
    assert "unreachable" in result.stderr


def test_R23_output_before_a_timeout():
    workspace = prepare("t")
    result = shell(workspace, "echo so far; echo more > a; sleep 60", timeout_sec=1)
    assert (result.exit_code, result.stdout, result.changed_files) == (124, "so far\n", ["a"])
    assert (workspace / "a").read_text() == "more\n"
    result = shell(workspace, "echo again > a; sleep 60", timeout_sec=1, discard_on_timeout=True)
    assert result.details["applied"] is False
    assert (workspace / "a").read_text() == "more\n"


def test_R24_no_text():
    result = python(prepare("t"), "import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb\\0c')")
    assert (result.exit_code, result.stdout) == (0, "a\ufffd\ufffdb\0c")


# ---- many, cancelled, interrupted ----


@looped
async def test_many_at_once():
    spaces = [prepare(f"t{n}") for n in range(12)]
    results = await asyncio.gather(
        *(
            apply_action_async(space, {"command": ["sh", "-c", f"echo {n} > a"]}, config=CONFIG)
            for n, space in enumerate(spaces)
        )
    )
    assert [result.changed_files for result in results] == [["a"]] * 12
    assert [(space / "a").read_text() for space in spaces] == [f"{n}\n" for n in range(12)]


@looped
async def test_cancelling():
    mark = word()
    workspace = prepare("t")
    task = asyncio.ensure_future(
        apply_action_async(workspace, {"command": ["sh", "-c", f"echo 2 > a; sleep {mark}"]}, config=CONFIG)
    )
    while running(f"sleep\0{mark}") == 0:
        await asyncio.sleep(0.02)
    with pytest.raises(SandboxError) as caught:
        shell(workspace, "true")
    assert caught.value.name == "PX405"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until(lambda: running(mark) == 0, "the end of what was cancelled")
    assert (workspace / "a").read_text() == "1"
    assert shell(workspace, "cat a").stdout == "1"


PROGRAM = """
import signal, sys
from px.tasks import SandboxConfig, apply_action, prepare_workspace
signal.signal(signal.SIGINT, signal.default_int_handler)
config = SandboxConfig(allowed_binaries=["sh"])
space = prepare_workspace("t", {"a": "1"}, config=config)
apply_action(space, {"command": ["sh", "-c", f"echo 2 > a; sleep {sys.argv[1]}"]}, timeout_sec=600, config=config)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_program(number):
    """Nothing runs on, nothing of the action is kept, and the workspace can be used."""
    mark = word()
    with subprocess.Popen([sys.executable, "-c", PROGRAM, mark], stderr=subprocess.DEVNULL) as program:
        try:
            until(lambda: running(f"sleep\0{mark}") > 0, "the start of the command")
            program.send_signal(number)
            program.wait(timeout=PATIENCE_S)
        finally:
            program.kill()
    until(lambda: running(mark) == 0, "the end of the box")
    assert shell(Path(".sandbox/t"), "cat a").stdout == "1"
