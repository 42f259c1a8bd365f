"""sandbox.commands, sandbox.files and sandbox.pty: the same calls through an event loop and without one."""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest
from conftest import PATIENCE_S, running, until, word

import px
import px.sync
from px import CommandError, PtySize, SandboxTimeout
from px.files import FileSandboxError, FileTooLargeError


class Waited:
    """An object whose coroutines are waited for in a loop of the test's."""

    def __init__(self, inner, runner):
        self._inner, self._runner = inner, runner

    def __getattr__(self, name):
        return self._wrapped(getattr(self._inner, name))

    def _wrapped(self, found):
        if callable(found):
            return lambda *args, **words: self._wrapped(self._done(found(*args, **words)))
        plain = found is None or isinstance(found, (str, bytes, int, float, list, os.PathLike))
        return found if plain or type(found).__name__ in ("CommandResult", "EntryInfo") else Waited(found, self._runner)

    def _done(self, found):
        async def whole():
            return await found

        return self._runner.run(whole()) if inspect.isawaitable(found) else found


@pytest.fixture(params=["async", "sync"])
def place(request):
    with asyncio.Runner() as runner, (px.Sandbox if request.param == "async" else px.sync.Sandbox)() as sandbox:
        yield Waited(sandbox, runner) if request.param == "async" else sandbox


def test_commands(place):
    commands = place.commands
    result = commands.run("echo $WHO; pwd; echo err >&2; cat; exit 3", envs={"WHO": "me"}, cwd="/tmp")
    assert (result.stdout, result.stderr, result.exit_code) == ("me\n/tmp\n", "err\n", 3)
    assert commands.run(["printf", "%s|", "a b", "$(id)"]).stdout == "a b|$(id)|"
    with pytest.raises(CommandError, match="exit code 3") as caught:
        commands.run("echo out; exit 3", check=True)
    assert caught.value.stdout == b"out\n"
    heard = {"stdout": "", "stderr": ""}

    def listener(name):
        def hear(text):
            heard[name] += text

        return hear

    commands.run("printf 'ä\\n'; echo e >&2", on_stdout=listener("stdout"), on_stderr=listener("stderr"))
    assert heard == {"stdout": "ä\n", "stderr": "e\n"}
    mark = word()
    with pytest.raises(SandboxTimeout):
        commands.run(f"sleep {mark} & sleep {mark}", timeout=0.3)
    until(lambda: running(mark) == 0, "the end of what was killed")
    with pytest.raises(TypeError, match="user"):
        commands.run("true", user="root")


def test_background(place):
    commands = place.commands
    handle = commands.run("read -r x; echo got $x; exit 5", background=True, timeout=PATIENCE_S)
    assert handle.exit_code is None
    commands.send_stdin(handle.pid, "one\n")
    assert handle.wait().exit_code == 5
    assert (handle.stdout, handle.exit_code) == ("got one\n", 5)
    mark = word()
    handle = commands.run(f"sleep {mark}", background=True, timeout=None)
    assert commands.kill(handle.pid)
    assert handle.wait().exit_code == -9
    assert not commands.kill(handle.pid)
    assert not handle.kill()
    with pytest.raises(px.SandboxError, match="pid"):
        commands.send_stdin(handle.pid, "late")
    assert running(mark) == 0


def test_terminals(place):
    pty = place.pty
    heard = []
    handle = pty.create(PtySize(30, 100), heard.append, envs={"PS1": "$ "}, timeout=PATIENCE_S)
    pty.send_stdin(handle.pid, "stty size; echo $TERM; exit 4\n")
    result = handle.wait()
    assert result.exit_code == 4
    assert "30 100\r\n" in result.stdout
    assert "xterm-256color\r\n" in result.stdout
    assert "".join(heard) == result.stdout
    handle = pty.create(timeout=PATIENCE_S)
    pty.resize(handle.pid, PtySize(40, 120))
    handle.send_stdin("stty size; exit\n")
    assert "40 120\r\n" in handle.wait().stdout
    handle = pty.create(timeout=PATIENCE_S)
    assert pty.kill(handle.pid)
    assert handle.wait().exit_code == -9


def test_files(place):
    files = place.files
    data = os.urandom(300_000)
    written = files.write("a/b/c.bin", data)
    assert (written.name, written.path, written.type, written.size) == ("c.bin", "/home/sandbox/a/b/c.bin", "file", 300_000)
    assert files.read("a/b/c.bin", "bytes") == data
    assert (place.work_dir / "a/b/c.bin").read_bytes() == data
    files.write("/tmp/-n odd\nname $(id)", "ä")
    assert files.read("/tmp/-n odd\nname $(id)") == "ä"
    assert "-n odd\nname $(id)" in [entry.name for entry in files.list("/tmp")]
    files.write("empty", b"")
    assert files.read("empty") == ""
    assert files.make_dir("new/dir")
    assert not files.make_dir("new/dir")
    assert [(entry.name, entry.type) for entry in files.list(".")] == [("a", "dir"), ("empty", "file"), ("new", "dir")]
    deep = ["/home/sandbox/" + name for name in ("a", "a/b", "a/b/c.bin", "empty", "new", "new/dir")]
    assert [entry.path for entry in files.list("/home/sandbox", depth=3)] == deep
    assert files.rename("empty", "new/full").path == "/home/sandbox/new/full"
    assert (files.exists("empty"), files.exists("new/full")) == (False, True)
    files.remove("new")
    assert not files.exists("new")
    assert files.get_info("a").type == "dir"
    assert abs(files.get_info("a").modified - (place.work_dir / "a").stat().st_mtime) < 0.001


def test_files_that_cannot_be(place):
    files = place.files
    for ask in (files.read, files.list, files.remove, files.get_info, lambda path: files.rename(path, "x")):
        with pytest.raises(FileNotFoundError, match="missing"):
            ask("missing")
    for ask in (files.read, lambda path: files.write(path, "x")):
        with pytest.raises(FileSandboxError, match="/tmp"):
            ask("/tmp")
    files.write("file", "x")
    for wrong in (
        lambda: files.list("file"),
        lambda: files.make_dir("file/below"),
        lambda: files.write("/etc/x", ""),
        lambda: files.rename("file", "/etc/x"),
        lambda: files.remove("/etc/passwd"),
    ):
        with pytest.raises(FileSandboxError):
            wrong()
    for wrong in (lambda: files.read(""), lambda: files.read("a\0b"), lambda: files.read("file", "base64")):
        with pytest.raises(ValueError, match=r"empty|null|base64"):
            wrong()


def test_links_lead_nowhere_else(place, tmp_path):
    """What the box makes of its own files cannot lead the host's side out of it, and cannot fill it."""
    secret, commands, files = tmp_path / "secret", place.commands, place.files
    secret.write_text("of the host")
    secret.chmod(0o666)
    tmp_path.chmod(0o777)
    assert commands.run(["ln", "-s", str(secret), "link"]).exit_code == 0
    with pytest.raises(FileSandboxError):
        files.read("link")
    with pytest.raises(FileSandboxError):
        files.write("link", "changed")
    assert files.get_info("link").type == "link"
    files.remove("link")
    assert secret.read_text() == "of the host"
    assert not files.exists("link")
    commands.run("ln -s target link; echo inside > target; truncate -s 100G huge; mkfifo pipe")
    assert files.read("link") == "inside\n"
    assert files.get_info("pipe").type == "other"
    with pytest.raises(FileTooLargeError):
        files.read("huge", max_bytes=1 << 20)
    assert len(files.read("target", max_bytes=7)) == 7
