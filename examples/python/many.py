#!/usr/bin/env python3
"""Fifty sandboxes at once, each with a command of its own."""

import asyncio

from px import Sandbox


async def square(number: int) -> int:
    with Sandbox(enable_network=False) as sandbox:
        process = await sandbox.run_script(f"print({number} ** 2)", timeout=60)
        stdout, _ = await process.communicate(check=True)
        return int(stdout)


async def main() -> None:
    found = await asyncio.gather(*(square(number) for number in range(50)))
    assert found == [number**2 for number in range(50)]
    print(f"{len(found)} sandboxes, the largest answer is {max(found)}")


asyncio.run(main())
