"""The plain twin, threads, forks, cancellation, interrupts, and many sandboxes: what must hold, and what must not be left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import tracemalloc

import pytest
from conftest import MANY, PATIENCE_S, descriptors, held, looped, resident, running, until, word

import px
from px import CommandError, SandboxError, SandboxTimeout
from px.sync import Sandbox


# ---- the plain twin ----


def test_sync_commands():
    with Sandbox() as sandbox:
        process = sandbox.run("echo hello; echo err >&2")
        assert process.returncode is None
        assert process.communicate() == (b"hello\n", b"err\n")
        assert process.returncode == 0
        with pytest.raises(CommandError, match="42"):
            sandbox.run("exit 42").wait(check=True)
        assert sandbox.run_script("print('hi')").communicate() == (b"hi\n", b"")
        process = sandbox.run("cat")
        process.send_text("one\n")
        process.close_stdin()
        assert process.communicate() == (b"one\n", b"")
        big = os.urandom(2_000_000)
        assert sandbox.run("cat").communicate(big)[0] == big
        process = sandbox.run("exit 3")
        until(lambda: process.poll() is not None, "the end of the command")
        assert process.returncode == 3


def test_sync_streams():
    with Sandbox() as sandbox:
        found = {"stdout": b"", "stderr": b""}
        for name, data in sandbox.run("printf out; printf err >&2").stream(include_stream=True):
            found[name] += data
        assert found == {"stdout": b"out", "stderr": b"err"}
        assert list(sandbox.run("printf 'a\\nb\\nrest'").stream_lines()) == ["a\n", "b\n", "rest"]
        process = sandbox.run("stty size; read -r x; echo got $x", use_pty=True, timeout=60)
        text = ""
        for piece in process.stream(decode=True):
            if "24 80" not in text and "24 80" in text + piece:
                process.send(b"typed\n")
            text += piece
        assert text.endswith("got typed\r\n")
        assert process.wait() == 0
        process.close_pty()
        process.close_pty()


def test_sync_ends():
    mark = word()
    sandbox = Sandbox()
    with pytest.raises(SandboxTimeout) as caught:
        sandbox.run(f"echo part; sleep {mark}", timeout=0.3).communicate()
    assert caught.value.stdout == b"part\n"
    for how, code in (("kill", -9), ("terminate", -15)):
        process = sandbox.run(f"sleep {mark}")
        getattr(process, how)()
        assert process.wait(timeout=60) == code
    process, flood = sandbox.run(f"sleep {mark}"), sandbox.run("yes")
    sandbox.close()
    sandbox.close()
    assert (process.returncode, flood.returncode) == (-9, -9)
    assert running(mark) == 0
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")


# Children of nobody in sessions of their own, deaf to signals: what a process group does not reach.
ESCAPES = """trap '' TERM HUP INT
(setsid sh -c 'trap "" TERM HUP INT; (setsid sh -c "trap \\"\\" TERM; sleep {0}; :" &); sleep {0}; :' &)
setsid sh -c 'kill -STOP $$; sleep {0}' & echo up; sleep {0}"""


async def begin(sandbox, text, **words):
    process = await sandbox.run(text, **words)
    assert await process.stdout.readline() == b"up\n"
    return process


@looped
async def test_a_kill_ends_all_that_was_started():
    """At once, however it is ended; what other commands run or have left behind stays."""
    left, beside, mark = word(), word(), word()
    with px.Sandbox() as sandbox:
        await (await sandbox.run(f"setsid sleep {left} & (setsid sleep {left} &); sleep {left} &")).wait()
        other = await begin(sandbox, f"(setsid sleep {beside} &); echo up; sleep {beside}; :", timeout=None)
        process = await begin(sandbox, ESCAPES.format(mark), timeout=None)
        process.kill()
        assert await process.wait(timeout=PATIENCE_S) == -9
        assert running(mark) == 0
        process = await begin(sandbox, ESCAPES.format(mark), timeout=None)
        with pytest.raises(SandboxTimeout):
            await process.wait(timeout=0.2)
        assert running(mark) == 0
        process = await begin(sandbox, ESCAPES.format(mark), timeout=None)
        waiter = asyncio.ensure_future(process.wait())
        await asyncio.sleep(0.05)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        until(lambda: running(mark) == 0, "the end of what was cancelled")
        assert (running(left), running(beside)) == (3, 3)
        other.kill()
        await other.wait(timeout=PATIENCE_S)
        assert (running(left), running(beside)) == (3, 0)
    assert running(left) == 0


# ---- threads and forks ----


def test_threads_share_a_sandbox():
    with Sandbox() as sandbox:
        wrong = []

        def work(number):
            for turn in range(10):
                want = f"{number}.{turn}\n".encode()
                try:
                    if sandbox.run(f"echo {number}.{turn}", timeout=120).communicate()[0] != want:
                        wrong.append(want)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_a_loop_in_each_thread():
    async def one(number):
        with px.Sandbox() as sandbox:
            found = [(await (await sandbox.run(f"echo {number}", timeout=120)).communicate())[0] for _ in range(3)]
        return set(found) == {f"{number}\n".encode()}

    results = []
    threads = [threading.Thread(target=lambda n=n: results.append(asyncio.run(one(n)))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6


def test_closed_from_another_thread():
    mark = word()

    async def main():
        sandbox = px.Sandbox()
        process = await sandbox.run(f"sleep {mark}", timeout=PATIENCE_S)
        await asyncio.to_thread(sandbox.close)
        return await process.wait()

    assert asyncio.run(main()) == -9
    assert running(mark) == 0


def test_one_sandbox_in_two_loops():
    sandbox = px.Sandbox()

    async def once(text):
        return await (await sandbox.run(f"echo {text}", timeout=60)).communicate()

    assert asyncio.run(once("one"))[0] == b"one\n"
    assert asyncio.run(once("two"))[0] == b"two\n"
    sandbox.close()


def in_child(function):
    """Runs it in a forked child; its exit status. Exceptions are 1."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if function() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_after_fork():
    mark = word()
    with Sandbox() as sandbox:
        process = sandbox.run(f"sleep {mark}; echo done", timeout=None)

        def use_ours():
            try:
                sandbox.run("true")
            except SandboxError as error:
                return "another process" in error.what
            return False

        def forget_ours():
            nonlocal sandbox, process
            sandbox.close()
            del sandbox, process
            gc.collect()
            return True

        def have_own():
            with Sandbox() as own:
                return own.run("echo own").communicate()[0] == b"own\n"

        assert in_child(use_ours) == 0
        assert in_child(have_own) == 0
        assert in_child(forget_ours) == 0
        assert running(mark) > 0, "a child ended its parent's box"
        assert sandbox.run("echo alive").communicate()[0] == b"alive\n"
        process.kill()
        assert process.wait(timeout=60) == -9


# ---- cancellation and interrupts ----


@looped
async def test_cancelling_ends_the_command():
    mark = word()

    async def listen(process):
        async for _ in process.stream():
            pass

    with px.Sandbox() as sandbox:
        for wait in (lambda p: p.wait(), lambda p: p.communicate(), listen):
            process = await sandbox.run(f"sleep {mark} & sleep {mark}", timeout=None)
            task = asyncio.ensure_future(wait(process))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await process.wait(timeout=60) == -9
            until(lambda: running(mark) == 0, "the end of what was cancelled")
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await (await sandbox.run(f"sleep {mark}")).wait()
        until(lambda: running(mark) == 0, "the end of what ran too long")


PROGRAM = """
import asyncio, os, signal, sys
import px, px.sync
signal.signal(signal.SIGINT, signal.default_int_handler)    # what runs in the background ignores it
kind, mark = sys.argv[1:]
if kind == "sync":
    process = px.sync.Sandbox().run(f"sleep {mark}", timeout=None)
    print("ready", flush=True)
    process.wait()
else:
    async def main():
        sandbox = px.Sandbox()
        process = await sandbox.run(f"setsid sleep {mark} & sleep {mark}", timeout=None)
        print("ready", flush=True)
        await process.wait()
    if kind == "trio":
        import trio
        trio.run(main)
    else:
        asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sync", "async", "trio"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_program(kind, number, tmp_path):
    """Ctrl-C leaves nothing. After SIGTERM and SIGKILL nobody is there to remove directories: the next program does it."""
    if kind == "trio":
        pytest.importorskip("trio", reason="python3-trio is not installed")
    mark = word()
    temporary = tmp_path / "their-tmp"
    temporary.mkdir()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind, mark],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with program:
        try:
            assert program.stdout.readline() == b"ready\n"
            until(lambda: running(f"sleep\0{mark}") > 0, "the start of the command")
            program.send_signal(number)
            program.wait(timeout=PATIENCE_S)
        finally:
            program.kill()
    until(lambda: running(mark) == 0, "the end of the box")
    if number != signal.SIGINT:
        left = [folder for homes in temporary.iterdir() for folder in homes.iterdir() if folder.is_dir()]
        assert left
        code = "from px.sync import Sandbox\nwith Sandbox() as s: assert not __import__('os').path.exists(__import__('sys').argv[1])"
        words = [sys.executable, "-c", code, str(left[0])]
        subprocess.run(words, check=True, timeout=PATIENCE_S, env={**os.environ, "TMPDIR": str(temporary)})
    assert list(temporary.iterdir()) == []


def test_a_program_that_just_ends(tmp_path):
    """Objects that are alive at exit, also in a forked child that exits the long way."""
    temporary = tmp_path / "their-tmp"
    temporary.mkdir()
    code = (
        "import os, sys\nfrom px.sync import Sandbox\ns = Sandbox()\np = s.run('sleep 1000', timeout=None)\n"
        "pid = os.fork()\nif pid == 0: sys.exit(0)\nassert os.waitpid(pid, 0)[1] == 0\n"
        "assert s.run('echo alive').communicate()[0] == b'alive\\n'\nassert s.work_dir.is_dir()\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=PATIENCE_S, env={**os.environ, "TMPDIR": str(temporary)}
    )
    assert list(temporary.iterdir()) == []


# ---- many ----


async def one_of_many(number):
    with px.Sandbox() as sandbox:
        process = await sandbox.run(["echo", str(number)], timeout=120)
        assert (await process.communicate())[0] == f"{number}\n".encode()


@looped
async def test_many_in_a_row(orphans):
    """No descriptor (so no namespace: nothing else could hold one), process, thread, mount or memory stays of them."""
    for number in range(100):
        await one_of_many(number)
    gc.collect()
    before, pages = held(), resident()
    tracemalloc.start()
    objects = tracemalloc.get_traced_memory()[0]
    for number in range(MANY):
        await one_of_many(number)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - objects
    tracemalloc.stop()
    more = resident() - pages
    print(f"{MANY} sandboxes: {grown} bytes of objects, {more} bytes of memory more")
    assert held() == before
    # What Python sets aside once is within the first part; of a sandbox not even one small object may stay.
    assert grown < 8192 + 8 * MANY, f"{grown} bytes more after {MANY} sandboxes"
    assert more < (4 << 20) + 128 * MANY, f"{more} bytes of memory more after {MANY} sandboxes"


@looped
async def test_B34_a_hundred_at_once(orphans):
    await asyncio.gather(*(one_of_many(n) for n in range(10)))
    gc.collect()
    before = held()
    await asyncio.gather(*(one_of_many(n) for n in range(100)))
    gc.collect()
    assert held() == before


@looped
async def test_close_lets_go_at_once():
    """Not only when the collector of garbage comes by."""
    await one_of_many(0)
    gc.collect()
    gc.disable()
    try:
        before = descriptors()
        for number in range(3):
            await one_of_many(number)
        assert descriptors() == before
    finally:
        gc.enable()


@looped
async def test_many_commands_in_one():
    with px.Sandbox() as sandbox:
        fds = None
        for number in range(300):
            process = await sandbox.run(["echo", str(number)], timeout=120)
            assert (await process.communicate())[0] == f"{number}\n".encode()
            del process
            if number == 10:
                fds = descriptors()
        assert descriptors() == fds


def test_the_engine_keeps_no_memory():
    with Sandbox() as sandbox:
        for _ in range(50):
            sandbox.run(["true"]).wait(timeout=60)
        before = resident()
        for _ in range(500):
            sandbox.run(["true"]).wait(timeout=60)
        assert resident() - before < 4 << 20


def test_a_reader_that_goes_away():
    """The command is told by the pipe, as anywhere, and the rest goes on."""
    with Sandbox() as sandbox:
        process = sandbox.run("yes", timeout=PATIENCE_S)
        next(process.stream())
        process._pipes.close()
        assert process.wait() == 128 + signal.SIGPIPE
        assert sandbox.run("echo next").communicate()[0] == b"next\n"


def test_objects_of_the_engine():
    """The C half by itself: what cannot be is an exception, never a crash."""
    from px import _px

    with pytest.raises(TypeError):
        _px.Box()
    with pytest.raises(TypeError):
        _px.start(None, ["true"])
    policy = _px.Policy("default")
    with pytest.raises(TypeError):
        _px.start(policy, "true")
    with pytest.raises(ValueError, match="command"):
        _px.start(policy, [])
    with pytest.raises(SandboxError):
        policy.set("timeout", "never")
    box = _px.start(policy, ["echo", "kept"])
    with pytest.raises(ValueError, match="stays"):
        box.exec(policy, ["true"])
    until(lambda: not box.step(), "the end of the box")
    assert box.result()[4] == b"kept\n"
    box.close()
    box.close()
    for use in (box.step, box.kill, box.fileno, box.pid, box.json, box.result):
        with pytest.raises(SandboxError, match="closed"):
            use()
    home = _px.stay(policy)
    command = home.exec(policy, ["sleep", "1000"])
    with pytest.raises(SandboxError, match="commands"):
        home.close()
    del home  # the command has it
    command.kill()
    until(lambda: not command.step(), "the end of the command")
    names = {row[0] for row in _px.fields()}
    assert {"memory", "timeout", "bind"} <= names
    assert "session" in _px.presets()
    assert _px.explain(99999) is None
