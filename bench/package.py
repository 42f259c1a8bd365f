#!/usr/bin/python3
"""package.py MODE -- COMMAND... - times the Python package from inside one event loop; requests as in bench.h.

    sandbox     a Sandbox, one command in it, its output, and the end of both
    command     one more command in a Sandbox that is there
    executor    one more command of a SandboxExecutor
    spawn       the command as it is, started by asyncio itself: for bubblewrap

The command of the first three is one line for bash, that of the last one whole."""
import asyncio
import sys
import time

PIPES = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}


def sandbox(px, line):
    async def once():
        process = await px.Sandbox().run(line)
        await process.communicate()
        return process.returncode
    return once


def command(px, line):
    place = px.Sandbox()

    async def once():
        process = await place.run(line)
        await process.communicate()
        return process.returncode
    return once


def executor(px, line):
    from px.executor import SandboxConfig, SandboxExecutor
    place = SandboxExecutor(SandboxConfig(limits="try"))

    async def once():
        return (await place.execute(line)).exit_code
    return once


def spawn(_, *words):
    async def once():
        process = await asyncio.create_subprocess_exec(*words, **PIPES)
        await process.communicate()
        return process.returncode
    return once


async def answer(request, once):
    verb, number = request.split()
    start = time.perf_counter_ns()
    if verb == "run":
        for _ in range(int(number)):
            begin = time.perf_counter_ns()
            status = await once()
            print(time.perf_counter_ns() - begin, status)
    else:
        runs = failed = 0
        while time.perf_counter_ns() - start < int(number) * 1000000:
            failed += await once() != 0
            runs += 1
        print(runs, failed, time.perf_counter_ns() - start)
    sys.stdout.flush()


async def main():
    mode, _, *words = sys.argv[1:]
    px = None
    if mode != "spawn":
        import px
    once = {"sandbox": sandbox, "command": command, "executor": executor, "spawn": spawn}[mode](px, *words)
    for request in sys.stdin:       # nothing else goes on while it waits for its turn
        await answer(request, once)


asyncio.run(main())
