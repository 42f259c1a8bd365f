"""Sandboxes under every library that runs coroutines: asyncio with its own loop and with uvloop, trio, anyio over both."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from conftest import PATIENCE_S, descriptors, running, until, word

from px import Sandbox, SandboxError, SandboxTimeout
from px.executor import SandboxConfig, SandboxExecutor
from px.tasks import SandboxConfig as TasksConfig
from px.tasks import apply_action_async, prepare_workspace
from px.worker import Sandbox as WorkerSandbox
from px.worker import SandboxConfig as WorkerConfig
from px.worker import shell_async


class Asyncio:
    """run() a coroutine function; within: together() several, and stop() one after a while."""

    def __init__(self, _, factory=None):
        self._factory = factory

    def run(self, function):
        with asyncio.Runner(loop_factory=self._factory) as runner:
            return runner.run(asyncio.wait_for(function(), PATIENCE_S * 3))

    async def together(self, *functions):
        return await asyncio.gather(*(function() for function in functions))

    async def stop(self, seconds, function):
        task = asyncio.ensure_future(function())
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class Trio:
    def __init__(self, trio):
        self._library = trio

    def run(self, function):
        async def bounded():
            with self._library.fail_after(PATIENCE_S * 3):
                return await function()

        return self._begin(bounded)

    def _begin(self, function):
        return self._library.run(function)

    def _group(self):
        return self._library.open_nursery()

    async def together(self, *functions):
        found = [None] * len(functions)

        async def one(number):
            found[number] = await functions[number]()

        async with self._group() as group:
            for number in range(len(functions)):
                group.start_soon(one, number)
        return found

    async def stop(self, seconds, function):
        with self._library.move_on_after(seconds) as scope:
            await function()
        assert scope.cancel_called


class Anyio(Trio):
    def __init__(self, anyio, backend):
        super().__init__(anyio)
        self._backend = backend

    def _begin(self, function):
        return self._library.run(function, backend=self._backend)

    def _group(self):
        return self._library.create_task_group()


def need(name):
    return pytest.importorskip(name, reason=f"python3-{name} is not installed")


LIBRARIES = {
    "asyncio": lambda: Asyncio(None),
    "uvloop": lambda: Asyncio(None, need("uvloop").new_event_loop),
    "trio": lambda: Trio(need("trio")),
    "anyio-asyncio": lambda: Anyio(need("anyio"), "asyncio"),
    "anyio-trio": lambda: need("trio") and Anyio(need("anyio"), "trio"),
}


async def nothing():
    pass


def chosen(request):
    found = LIBRARIES[request.param]()
    found.run(nothing)  # what it opens once for the whole process
    return found


library = pytest.fixture(scope="module", params=["asyncio", "uvloop", "trio"])(chosen)
# anyio runs one of those, but cancels in its own way: again and again until it was heard.
any_library = pytest.fixture(scope="module", params=LIBRARIES)(chosen)


def test_commands(any_library):
    async def main():
        async with Sandbox() as sandbox:
            process = await sandbox.run("echo out; echo err >&2; exit 3")
            assert process.returncode is None
            assert await process.communicate() == (b"out\n", b"err\n")
            assert process.returncode == 3
            big = os.urandom(3_000_000)
            assert (await (await sandbox.run("cat", timeout=PATIENCE_S)).communicate(big))[0] == big
            process = await sandbox.run_script("print(input())")
            await process.send_text("typed\n")
            assert await process.stdout.read() == b"typed\n"
            assert await process.wait(check=True) == 0
            process = await sandbox.run("echo unread; exit 4")
            assert await process.wait(timeout=PATIENCE_S) == 4
            assert await process.stdout.read() == b"unread\n"
        with pytest.raises(SandboxError, match="closed"):
            await sandbox.run("true")

    any_library.run(main)


def test_streams(library):
    async def main():
        with Sandbox() as sandbox:
            process = await sandbox.run("printf out; printf err >&2")
            found = {"stdout": b"", "stderr": b""}
            async for name, data in process.stream(include_stream=True, chunk_size=2):
                assert len(data) <= 2
                found[name] += data
            assert found == {"stdout": b"out", "stderr": b"err"}
            process = await sandbox.run("seq 50000; printf rest", timeout=PATIENCE_S)
            lines = [line async for line in process.stream_lines()]
            assert lines == [f"{n}\n" for n in range(1, 50001)] + ["rest"]
            process = await sandbox.run("yes", timeout=PATIENCE_S)
            async for _ in process.stream():
                break
            assert await (await sandbox.run("sleep 0.3")).wait() == 0  # meanwhile every pipe on the way is full
            process.kill()
            assert await process.wait() == -9

    library.run(main)


def test_readers(library):
    async def main():
        with Sandbox() as sandbox:
            process = await sandbox.run("echo one; printf 'two;12345'; seq 3; cat", timeout=PATIENCE_S)
            out = process.stdout
            assert await out.readline() == b"one\n"
            assert await out.readuntil(b";") == b"two;"
            assert await out.readexactly(5) == b"12345"
            assert await anext(out) == b"1\n"
            assert await out.read(1) == b"2"
            assert not out.at_eof()
            process.stdin.write(b"x" * 200_000)
            process.stdin.close()
            assert await out.readexactly(3) == b"\n3\n"
            with pytest.raises(ValueError, match="separator"):  # nobody has to keep a line without an end
                await out.readline()
            assert len(await out.readexactly(150_000)) == 150_000
            with pytest.raises(asyncio.IncompleteReadError) as caught:
                await out.readexactly(50_001)
            assert len(caught.value.partial) == 50_000
            assert (await out.read(), await out.readline(), out.at_eof()) == (b"", b"", True)
            assert [line async for line in process.stderr] == []
            await process.stdin.wait_closed()
            process = await sandbox.run("exec cat >&- 2>&-; echo never", timeout=PATIENCE_S)
            process.stdin.write(b"x" * 1_000_000)  # what it still reads is not cut by the end of what it says
            assert await process.stdout.read() == b""

    library.run(main)


def test_a_reader_that_was_stopped(library):
    async def main():
        with Sandbox() as sandbox:
            process = await sandbox.run("echo first; read -r x; echo $x; sleep 1000", timeout=PATIENCE_S)
            await library.stop(0.2, process.stdout.read)
            assert await process.stdout.readline() == b"first\n"
            await process.send(b"second\n")
            assert await process.stdout.readline() == b"second\n"
            assert process.returncode is None

    library.run(main)


def test_commands_that_nobody_keeps(library):
    """Descriptors that are used again are never those of a command that was forgotten while it was read."""

    async def main():
        with Sandbox() as sandbox:
            for number in range(10):
                process = await sandbox.run(f"echo first; seq {number * 1000}", timeout=PATIENCE_S)
                assert await process.stdout.readline() == b"first\n"
                del process
                assert (await (await sandbox.run("echo next")).communicate())[0] == b"next\n"

    library.run(main)


def test_timeouts(library):
    mark = word()

    async def main():
        with Sandbox() as sandbox:
            process = await sandbox.run(f"echo part; sleep {mark} & sleep {mark}", timeout=0.4)
            with pytest.raises(SandboxTimeout, match="exceeded 0.4 seconds") as caught:
                await process.communicate()
            assert (caught.value.stdout, process.returncode) == (b"part\n", -9)
            process = await sandbox.run(f"echo part; sleep {mark}", timeout=0.4)
            with pytest.raises(TimeoutError):
                async for _ in process.stream():
                    pass
            assert process.returncode == -9
            process = await sandbox.run(f"echo part; sleep {mark}", timeout=None)
            with pytest.raises(TimeoutError) as caught:
                await process.wait(timeout=0.4)
            assert (caught.value.stdout, process.returncode) == (b"part\n", -9)
            until(lambda: running(mark) == 0, "the end of what was killed")
            assert (await (await sandbox.run("echo alive")).communicate())[0] == b"alive\n"

    library.run(main)


def test_cancelling(any_library):
    """Whoever is cancelled returns when the command is gone, also one that has said more than anybody reads."""
    mark = word()

    async def listen(process):
        async for _ in process.stream():
            pass

    async def main():
        with Sandbox() as sandbox:
            for wait in (lambda p: p.wait(), lambda p: p.communicate(), listen):
                for line in (f"sleep {mark} & sleep {mark}", f"yes {mark}"):
                    process = await sandbox.run(line, timeout=None)
                    await any_library.stop(0.1, lambda wait=wait, process=process: wait(process))
                    assert process.returncode == -9
                    until(lambda: running(mark) == 0, "the end of what was cancelled")
            assert (await (await sandbox.run("echo alive")).communicate())[0] == b"alive\n"

    any_library.run(main)


def test_terminals(library):
    async def main():
        with Sandbox() as sandbox:
            process = await sandbox.run("stty size; read -r x; stty size; echo got $x", timeout=60, use_pty=True)
            text = ""
            async for piece in process.stream(decode=True):
                if "24 80\r\n" not in text and "24 80\r\n" in text + piece:
                    process.set_terminal_size(40, 120)
                    await process.send(b"abc\n")
                text += piece
            assert "40 120\r\n" in text
            assert text.endswith("got abc\r\n")
            assert await process.wait() == 0
            process.close_pty()
            process = await sandbox.run("cat", timeout=60, use_pty=True)
            process.close_pty()  # with nobody at the terminal it hangs up
            process.kill()
            assert await process.wait() == -9

    library.run(main)


def test_many_at_once(library):
    async def one(number):
        with Sandbox() as sandbox:
            process = await sandbox.run(f"echo {number}", timeout=PATIENCE_S)
            return (await process.communicate())[0]

    async def main():
        found = await library.together(*(lambda n=n: one(n) for n in range(10)))
        assert found == [f"{n}\n".encode() for n in range(10)]
        with Sandbox() as sandbox:

            async def again(number):
                return (await (await sandbox.run(f"echo {number}", timeout=PATIENCE_S)).communicate())[0]

            found = await library.together(*(lambda n=n: again(n) for n in range(10)))
            assert found == [f"{n}\n".encode() for n in range(10)]

    library.run(main)


def test_lives(library):
    """A sandbox outlives a run of the library; another thread can close it; one that nobody keeps goes with its command."""
    mark = word()
    sandbox = Sandbox()

    async def once(text):
        return (await (await sandbox.run(f"echo {text}", timeout=PATIENCE_S)).communicate())[0]

    async def forgotten():
        await sandbox.run(f"sleep {mark}", timeout=None)
        for number in range(10):
            assert await (await Sandbox().run(f"echo {number}")).communicate() == (f"{number}\n".encode(), b"")

    async def closed_elsewhere():
        process = await sandbox.run(f"sleep {mark}", timeout=PATIENCE_S)
        thread = threading.Thread(target=sandbox.close)
        thread.start()
        assert await process.wait() == -9
        thread.join()

    before = descriptors()
    for text in ("one", "two"):
        assert library.run(lambda text=text: once(text)) == f"{text}\n".encode()
    assert descriptors() == before
    library.run(forgotten)
    library.run(closed_elsewhere)
    assert running(mark) == 0
    sandbox.close()


def test_the_rest_of_the_package(any_library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("of a worker\n")
    tasks = TasksConfig(work_root=tmp_path / "tasks", logs_dir=tmp_path / "logs", allowed_binaries=["cat", "sleep"])
    files = {"root": {"root": str(tmp_path / "root")}}
    rules = [{"pattern": "cat", "approval_required": False}, {"pattern": "sleep", "approval_required": False}]
    mark = word()

    async def main():
        async with SandboxExecutor(SandboxConfig(limits="try")) as executor:
            assert (await executor.execute("echo executor")).stdout == "executor\n"
            await any_library.stop(0.2, lambda: executor.execute(f"sleep {mark}"))
        workspace = prepare_workspace("one", {"file": "of a task\n"}, config=tasks)
        done = await apply_action_async(workspace, {"command": ["cat", "file"]}, config=tasks)
        assert done.stdout == "of a task\n"
        assert (await apply_action_async(workspace, {}, config=tasks)).exit_code == 127
        await any_library.stop(0.2, lambda: apply_action_async(workspace, {"command": ["sleep", mark]}, config=tasks))
        worker = WorkerSandbox(WorkerConfig(files, shell_rules=rules))
        assert (await shell_async("cat root/file", worker)).stdout == "of a worker\n"
        await any_library.stop(0.2, lambda: shell_async(f"sleep {mark}", worker))
        until(lambda: running(mark) == 0, "the end of what was cancelled")

    any_library.run(main)


def test_nobody_runs_it():
    """Without any of them there is an error before there is a command."""
    with Sandbox() as sandbox:
        work = sandbox.run("true")
        with pytest.raises(RuntimeError, match="no running event loop"):
            work.send(None)


def test_trio_as_a_guest():
    """Both in one thread: each caller gets the one that runs it."""
    trio = need("trio")

    async def said(sandbox, text):
        return (await (await sandbox.run(f"echo {text}", timeout=PATIENCE_S)).communicate())[0]

    async def main():
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        with Sandbox() as one, Sandbox() as two:

            async def guest():
                return [await said(two, n) for n in range(5)]

            outcome = []
            trio.lowlevel.start_guest_run(
                guest,
                run_sync_soon_threadsafe=loop.call_soon_threadsafe,
                done_callback=lambda result: (outcome.append(result), ended.set()),
            )
            assert [await said(one, n) for n in range(5)] == [b"%d\n" % n for n in range(5)]
            await asyncio.wait_for(ended.wait(), PATIENCE_S)
            assert outcome[0].unwrap() == [b"%d\n" % n for n in range(5)]

    asyncio.run(main())
