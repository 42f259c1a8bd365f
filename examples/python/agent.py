#!/usr/bin/env python3
"""What an agent needs: a shell with hard limits, and files with errors that a model can act on."""

import asyncio
import sys
import tempfile

from px.executor import SandboxConfig, SandboxError, SandboxExecutor
from px.files import FileSandbox, FileSandboxConfig, FileSandboxToolset, PathConfig


async def shell(workspace: str) -> None:
    config = SandboxConfig(timeout=20, workspace_path=workspace, limits="try")
    async with SandboxExecutor(config, environment={"TASK": "demo"}) as executor:
        result = await executor.execute("echo $TASK > report.md && wc -c report.md")
        print(result.stdout, end="")
        result = await executor.execute("sleep 60", timeout=1)
        print(f"timed out: {result.timed_out}, exit code {result.exit_code}")


async def files(workspace: str) -> None:
    sandbox = FileSandbox(FileSandboxConfig(paths={"workspace": PathConfig(root=workspace, suffixes=[".md"])}))
    tools = FileSandboxToolset(sandbox)
    for path in ("workspace/report.md", "/etc/passwd"):
        print(await tools.call("read_file", {"path": path}))


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        try:
            await shell(workspace)
        except SandboxError as error:
            sys.exit(str(error))
        await files(workspace)


asyncio.run(main())
