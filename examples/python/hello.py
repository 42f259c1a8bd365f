#!/usr/bin/env python3
"""A command in a sandbox, its output, and what it may not do."""

import asyncio

from px import Sandbox


async def main() -> None:
    with Sandbox() as sandbox:
        process = await sandbox.run("echo hello from $(hostname)")
        stdout, _ = await process.communicate(check=True)
        print(stdout.decode(), end="")

        (sandbox.work_dir / "input.txt").write_text("three\nlines\nhere\n")
        process = await sandbox.run("wc -l < input.txt; touch /usr/x")
        async for stream, line in process.stream_lines(include_stream=True):
            print(f"{stream}: {line}", end="")

        process = await sandbox.run("sleep 100", timeout=0.5)
        try:
            await process.wait()
        except TimeoutError as error:
            print(error)


asyncio.run(main())
