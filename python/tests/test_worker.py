"""Workers: boundaries from a file or a configuration, and the shell tool within them."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import looped, running, until, word

from px.files import FileSandboxToolset, PathNotInSandboxError, PathNotWritableError, SuffixNotAllowedError
from px.worker import Sandbox, SandboxConfig, SandboxError, ShellRule, ToolRule, load_attachment, load_worker, shell, shell_async

FILE = """
sandbox:
  paths:
    portfolio: {root: ./portfolio, mode: rw, suffixes: [.md, .bin], max_file_bytes: 1000}
    pipeline: {root: ./pipeline}
  network: false
  require_os_sandbox: true
shell_rules:
  - {pattern: cat, approval_required: false}
  - {pattern: touch, approval_required: false}
  - {pattern: sleep, approval_required: false}
  - {pattern: python3, approval_required: true}
workers: [child]
"""
CHILD = """
sandbox:
  paths:
    own: {root: ./own, mode: rw}
shell_rules:
  - {pattern: cat, approval_required: false}
  - {pattern: ls, approval_required: false}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    place = tmp_path / "here"
    for name in ("portfolio", "pipeline", "own", "workers"):
        (place / name).mkdir(parents=True)
    (place / "portfolio" / "a.md").write_text("of a\n")
    (place / "portfolio" / "b.bin").write_bytes(b"\0\xff")
    (place / "pipeline" / "p").write_text("of p\n")
    (place / "own" / "o").write_text("of o\n")
    (place / "workers" / "caller.yaml").write_text(FILE)
    (place / "workers" / "child.yaml").write_text(CHILD)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def worker():
    return load_worker("workers/caller.yaml")


def configured(**more):
    rules = more.pop("shell_rules", [ShellRule("cat", approval_required=False)])
    return Sandbox(SandboxConfig({"portfolio": {"root": "portfolio", "mode": "rw"}, "pipeline": {"root": "pipeline"}}, shell_rules=rules, **more))


def test_boundaries_of_a_file(worker, here):
    sandbox = worker.sandbox
    assert (sandbox.readable_roots, sandbox.writable_roots) == (["portfolio", "pipeline"], ["portfolio"])
    assert (sandbox.network_enabled, sandbox.require_os_sandbox) == (False, True)
    assert sandbox.read("portfolio/a.md") == "of a\n"
    assert sandbox.resolve("portfolio/a.md") == here / "portfolio" / "a.md"
    for call, error in (
        (lambda: sandbox.read("/etc/passwd"), PathNotInSandboxError),
        (lambda: sandbox.resolve("../x"), PathNotInSandboxError),
        (lambda: sandbox.write("pipeline/p", "no"), PathNotWritableError),
        (lambda: sandbox.write("portfolio/x.exe", "no"), SuffixNotAllowedError),
    ):
        with pytest.raises(error):
            call()
    found = asyncio.run(FileSandboxToolset(sandbox).call("read_file", {"path": "pipeline/p"}))
    assert found == {"ok": True, "result": "of p\n"}
    assert [rule["pattern"] for rule in sandbox.describe()["shell_rules"]] == [["cat"], ["touch"], ["sleep"], ["python3"]]
    assert [path["suffixes"] for path in sandbox.describe()["paths"]] == [[".md", ".bin"], None]


def test_bad_files(here):
    for text in ("sandbox: [1]\n", "sandbox:\n  unknown: 1\n", "x: [\n"):
        (here / "bad.yaml").write_text(text)
        with pytest.raises(SandboxError) as caught:
            load_worker("bad.yaml")
        assert caught.value.fix or caught.value.why
    with pytest.raises(SandboxError):
        load_worker("none.yaml")
    (here / "base").mkdir()
    (here / "base" / "portfolio").mkdir()
    (here / "base" / "pipeline").mkdir()
    assert load_worker("workers/caller.yaml", here / "base").sandbox.list_files() == []


def test_configurations(here):
    sandbox = configured(require_os_sandbox=True)
    assert (sandbox.network_enabled, sandbox.require_os_sandbox) == (False, True)
    assert sandbox.resolve("portfolio/not/there") == here / "portfolio" / "not" / "there"
    assert configured(network=True).network_enabled
    assert shell("cat pipeline/p", sandbox).stdout == "of p\n"
    with pytest.raises(SandboxError, match="SandboxConfig, line"):
        configured(shell_rules=[{"pattern": "a 'b"}])
    with pytest.raises(ValueError, match="shell_default"):
        configured(shell_default="anything")


def test_approval(worker):
    sandbox = worker.sandbox
    assert sandbox.approval("cat pipeline/p") == "pre_approved"
    assert sandbox.approval("python3 -c pass") == "needs_approval"
    for command in ("rm x", "cat a | sh", "cat a > b", "cat $(id)", "cat a; id", "", "cat 'a"):
        assert sandbox.approval(command) == "blocked", command
        with pytest.raises(SandboxError) as caught:
            shell(command, sandbox, approve=lambda command: True)
        assert caught.value.name == "PX321"
    with pytest.raises(SandboxError, match="needs approval") as caught:
        shell("python3 -c pass", sandbox)
    assert caught.value.name == "PX322"
    asked = []
    with pytest.raises(SandboxError, match="not approved"):
        shell("python3 -c pass", sandbox, approve=asked.append)
    assert asked == ["python3 -c pass"]
    assert shell("python3 -c 'print(6 * 7)'", sandbox, approve=lambda command: True).stdout == "42\n"
    loose = configured(shell_default="pre_approved")
    assert loose.approval("anything at all") == "pre_approved"
    assert configured(shell_default="needs_approval").approval("anything") == "needs_approval"


def random_line(chance):
    """Commands that print their words, with everything between and in them that a line can have and that is not opaque."""
    pieces = ["a", "b c", "'q | r'", '"s\'t;"', "\\ ", "\\'", '\\"', "'$x'", "\\$y", "*", "?", "[a-c]", "é", "%", "-n", "=", "{", "}", "'\n'", "a#", "''"]

    def word():
        return "".join(chance.choice(pieces) for _ in range(chance.randint(1, 4)))

    commands = [
        "printf '<%s>' x" + "".join(f" {word()}" for _ in range(chance.randint(0, 3))) + chance.choice(["", f" > {n}", " 2>&1", f" 2> {n}", f" &> {n}", " >> f"])
        for n in range(chance.randint(1, 4))
    ]
    return "".join(command + chance.choice([" | cat; ", " && ", " || ", "; ", "\n", " | cat && "]) for command in commands) + "true"


def test_lines_mean_what_a_shell_makes_of_them(here, tmp_path):
    """What px runs in the place of a line prints the same, ends the same and leaves the same files."""
    sandbox = configured(shell_default="pre_approved")
    chance = random.Random(5)
    for number in range(100):
        line = random_line(chance)
        _, words = sandbox._worker.judge(line)
        assert words[0] == "/bin/sh" and words[-1] != line
        found = []
        for argv in (["bash", "-c", line], words, ["bash", *words[1:]]):
            place = tmp_path / f"{number}-{len(found)}"
            place.mkdir()
            done = subprocess.run(argv, cwd=place, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            found.append((done.returncode, done.stdout, {file.name: file.read_bytes() for file in place.iterdir()}))
        assert found[0] == found[1] == found[2], line


def test_words_are_those_of_shlex(worker):
    chance = random.Random(6)
    pieces = ["a", " ", "'b c|d'", '"e;f"', "\\ ", "\\'", "g&h".replace("&", "\\&"), "\t", '"\\""', "''", "é"]
    for _ in range(300):
        line = "cat " + "".join(chance.choice(pieces) for _ in range(chance.randint(1, 8)))
        assert worker.sandbox._worker.judge(line) == ("pre_approved", shlex.split(line)), line
        assert worker.sandbox._worker.judge(shlex.join(["cat", line, "$x", "`"]))[1] == ["cat", line, "$x", "`"]


def test_lines(worker, here):
    sandbox = worker.sandbox
    result = shell("cat pipeline/p | cat - portfolio/a.md > portfolio/c && cat 'portfolio/c'", sandbox)
    assert (result.ok, result.stdout, (here / "portfolio" / "c").read_text()) == (True, "of p\nof a\n", "of p\nof a\n")
    result = shell("cd portfolio && cat *.md || cat none; touch 'x|y'", sandbox)
    assert (result.stdout, (here / "portfolio" / "x|y").exists()) == ("of a\n", True)
    assert shell("cat none 2>/dev/null; exit 7", sandbox).exit_code == 7
    asked = []
    with pytest.raises(SandboxError, match="not approved"):
        shell("cat pipeline/p; python3 -c 'print(1)'", sandbox, approve=asked.append)
    assert asked == ["cat pipeline/p; python3 -c 'print(1)'"]
    loose = configured(shell_default="pre_approved")
    assert shell("for x in 1 2; do echo $x; done", loose).stdout == "1\n2\n"


def test_only_true_approves(here):
    sandbox = configured(shell_rules=[], shell_default="needs_approval")
    marks = here / "portfolio"

    async def yes(command):
        await asyncio.sleep(0)
        return True

    async def no(command):
        return False

    async def text(command):
        return "no"

    def refused(run):
        with pytest.raises(SandboxError, match="not approved") as caught:
            run()
        assert caught.value.name == "PX322"

    def in_loop(approve):
        return asyncio.run(shell_async("touch portfolio/mark", sandbox, approve=approve))

    for answer in ("no", "yes", 1, [0], object(), None, False, 0):
        refused(lambda answer=answer: shell("touch portfolio/mark", sandbox, approve=lambda command: answer))
        refused(lambda answer=answer: in_loop(lambda command: answer))
    for approve in (no, text):
        refused(lambda approve=approve: in_loop(approve))
    for approve in (yes, no):
        with pytest.raises(TypeError, match="shell_async"):
            shell("touch portfolio/mark", sandbox, approve=approve)
    assert not (marks / "mark").exists()
    assert in_loop(yes).ok
    assert (marks / "mark").exists()
    assert in_loop(lambda command: True).ok
    assert shell("cat portfolio/a.md", sandbox, approve=lambda command: True).ok


def test_git_directories(here):
    (here / "portfolio" / ".git").mkdir()
    for writable in (False, True):
        sandbox = configured(shell_default="pre_approved", git_writable=writable)
        assert sandbox.can_write("portfolio/.git/config") is writable
        assert shell("touch portfolio/.git/mark", sandbox).ok is writable


def test_the_shell_tool(worker, here):
    sandbox = worker.sandbox
    result = shell("cat portfolio/a.md pipeline/p", sandbox)
    assert (result.ok, result.stdout, result.stderr, result.exit_code) == (True, "of a\nof p\n", "", 0)
    assert (result.truncated, result.note) == (False, None)
    (here / "pipeline" / "long").write_text("".join(f"{n}\n" for n in range(1, 100001)))
    result = shell("cat pipeline/long", sandbox)
    assert result.truncated
    assert "\n[... 537695 bytes left out ...]\n" in result.stdout
    assert len(result.details["stdout"]) == 51200
    assert shell("touch portfolio/new.md", sandbox).ok
    assert (here / "portfolio" / "new.md").exists()
    result = shell("touch pipeline/new", sandbox)
    assert not result.ok
    assert "portfolio" in result.note
    assert result.note in result.stderr
    assert not (here / "pipeline" / "new").exists()
    result = shell(f"cat {here / 'own' / 'o'}", sandbox)
    assert not result.ok
    result = shell("python3 -c '__import__(\"socket\").create_connection((\"192.0.2.1\", 80))'", sandbox, approve=lambda command: True)
    assert "Network access is disabled" in result.stderr
    assert result.details["isolation"]["tier"] == "full"


def test_programs_that_cannot_run(worker, here):
    loose = configured(shell_default="pre_approved")
    (here / "portfolio" / "plain").write_text("#!/bin/sh\n")
    for command, status in (("px-no-such-program a", 127), ("portfolio/plain", 126), ("px-no-such-program | cat; px-no-such-program", 127)):
        result = shell(command, loose)
        assert (result.ok, result.exit_code, result.stdout) == (False, status, ""), command
        assert command.split()[0] in result.stderr
        assert asyncio.run(shell_async(command, loose)).exit_code == status


def test_new_files_of_a_file(worker, here):
    sandbox = worker.sandbox
    assert sandbox.resolve("portfolio/new/x.md") == here / "portfolio" / "new" / "x.md"
    assert sandbox.resolve("pipeline") == here / "pipeline"
    with pytest.raises(PathNotInSandboxError):
        sandbox.resolve("own/o")
    child = sandbox.derive(allow_write=["portfolio/out/task"])
    assert child.resolve("portfolio/out/task/y") == here / "portfolio" / "out" / "task" / "y"


def test_a_directory_that_is_not_there(here):
    """One to write is made, one to read is not: its name is wrong."""
    (here / "missing.yaml").write_text("sandbox:\n  paths:\n    typo: {root: ./pipelin}\n")
    for call in (lambda: load_worker("missing.yaml"), lambda: Sandbox(SandboxConfig({"typo": {"root": "pipelin"}}))):
        with pytest.raises(SandboxError, match="typo") as caught:
            call()
        assert caught.value.name == "PX310"
    assert not (here / "pipelin").exists()
    assert Sandbox(SandboxConfig({"out": {"root": "out", "mode": "rw"}})).writable_roots == ["out"]
    assert (here / "out").is_dir()


def test_settings_of_the_box(here):
    sandbox = configured(
        network={"allow": ["good.test"]}, env={"GREETING": "hello you"}, base="host", memory="512m", shell_default="pre_approved"
    )
    found = sandbox.describe()
    assert (found["network_allow"], found["memory"], found["env"], found["base"]) == (["good.test"], "512m", ["GREETING"], "host")
    assert sandbox.network_enabled
    for bad in ({"memory": "lots"}, {"env": {"A=B": "c"}}, {"base": "./x"}, {"network": {"open": ["a"]}}, {"tool_rules": {"shel": {}}}):
        with pytest.raises(SandboxError, match="SandboxConfig, line"):
            configured(**bad)
    assert shell("printenv GREETING", configured(env={"GREETING": "hello you"}, shell_default="pre_approved")).stdout == "hello you\n"


def test_tool_rules(here):
    rules = {"write_file": ToolRule(approval_required=True), "list_files": {"allowed": False}, "worker_call": {"allowed": False}}
    sandbox = configured(tool_rules=rules, shell_default="pre_approved")
    for less in (sandbox, sandbox.derive(inherit=True)):
        tools = ("read_file", "write_file", "list_files", "shell", "nonsense")
        assert [less.tool_approval(tool) for tool in tools] == ["pre_approved", "needs_approval", "blocked", "pre_approved", "blocked"]
        asked = []

        async def yes(what, asked=asked):
            asked.append(what)
            return True

        def call(name, approve=None, less=less, **arguments):
            return asyncio.run(FileSandboxToolset(less, approve).call(name, arguments))

        assert call("read_file", path="pipeline/p")["result"] == "of p\n"
        assert "does not have the tool" in call("list_files")["error"]["message"]
        for approve in (None, lambda what: "yes", lambda what: False):
            assert "needs approval" in call("write_file", approve, path="portfolio/n", content="x")["error"]["message"]
        assert not (here / "portfolio" / "n").exists()
        assert call("write_file", yes, path="portfolio/n", content="x")["ok"]
        assert asked == ["write_file portfolio/n"]
        (here / "portfolio" / "n").unlink()
    assert sandbox.approval("echo a > portfolio/n") == "needs_approval"
    assert configured(tool_rules={"shell": {"allowed": False}}).approval("cat pipeline/p") == "blocked"
    (here / "workers" / "caller.yaml").write_text(FILE + "tool_rules: {worker_call: {approval_required: true}}\n")
    worker = load_worker("workers/caller.yaml")
    with pytest.raises(SandboxError, match="needs approval"):
        worker.call("child", "cat own/o")
    assert worker.call("child", "cat own/o", approve=lambda what: what == "worker_call child").stdout == "of o\n"


CLOSED = (
    "unshare", "--user", "--map-user=1300", "--map-group=1300", "--keep-caps", "bash", "-c",
    'echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"', "sh",
)  # fmt: skip
WARNED = """
import sys, warnings
from px.worker import Sandbox, SandboxConfig, SandboxError, shell
config = {"portfolio": {"root": "portfolio", "mode": "rw"}}
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    result = shell("cat portfolio/a.md", Sandbox(SandboxConfig(config, shell_default="pre_approved")))
    print([str(item.message).split(":")[0] for item in found], result.stdout.strip(), result.details["isolation"]["tier"])
try:
    shell("cat portfolio/a.md", Sandbox(SandboxConfig(config, shell_default="pre_approved", require_os_sandbox=True)))
except SandboxError as error:
    print(error.name, error.what)
"""


def test_a_host_without_an_os_sandbox(here):
    """In a user namespace that allows no more of them."""
    if subprocess.run([*CLOSED, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces cannot be closed here")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([*CLOSED, sys.executable, "-c", WARNED], capture_output=True, text=True, check=False, env=env)
    assert done.stdout == "['OS sandbox unavailable'] of a landlock\nPX323 OS sandbox required but unavailable\n", done.stderr


def test_time(worker):
    mark = word()
    result = shell(f"sleep {mark}", worker.sandbox, timeout=1)
    assert result.exit_code == -1
    assert "timed out after 1 seconds" in result.stderr
    assert running(mark) == 0
    for timeout in (0, 301, -1):
        with pytest.raises(ValueError, match="timeout"):
            shell("sleep 1", worker.sandbox, timeout=timeout)


@looped
async def test_event_loops():
    sandbox = load_worker("workers/caller.yaml").sandbox
    results = await asyncio.gather(*(shell_async("cat pipeline/p", sandbox) for _ in range(10)))
    assert {result.stdout for result in results} == {"of p\n"}
    mark = word()
    task = asyncio.ensure_future(shell_async(f"sleep {mark}", sandbox, timeout=300))
    while running(f"sleep\0{mark}") == 0:
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until(lambda: running(mark) == 0, "the end of what was cancelled")


def test_attachments(worker):
    found = load_attachment("portfolio/b.bin", worker.sandbox)
    assert (found.path, found.data, found.size) == ("portfolio/b.bin", b"\0\xff", 2)
    for path in ("own/o", "/etc/passwd", "../own/o", "portfolio/\0", "portfolio/none.md"):
        with pytest.raises(SandboxError):
            load_attachment(path, worker.sandbox)


def test_delegation(worker, here):
    """The other worker has its own boundaries, and of the caller's files those that were attached."""
    assert worker.call("child", "cat own/o").stdout == "of o\n"
    assert not worker.call("child", "cat portfolio/a.md").ok
    assert worker.call("child", "cat /attachments/a.md", ["portfolio/a.md"]).stdout == "of a\n"
    for path in ("own/o", "/etc/passwd"):
        with pytest.raises(SandboxError):
            worker.call("child", "cat own/o", [path])
    for name in ("stranger", "../caller", "caller"):
        with pytest.raises(SandboxError) as caught:
            worker.call(name, "cat own/o")
        assert caught.value.name == "PX320"
    assert worker.child("child").sandbox.readable_roots == ["own"]
    assert Path("own/o").read_text() == "of o\n"
    assert os.listdir("own") == ["o"]
