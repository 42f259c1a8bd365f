#!/usr/bin/env python3
"""An agent of pydantic-ai whose commands and files are those of a sandbox. The model is the framework's own for tests."""

import asyncio
import sys
import tempfile

from px import Sandbox
from px.files import FileSandbox, FileSandboxConfig, PathConfig

try:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from px.adapters.pydantic_ai import FileSandboxToolset, SandboxToolset
except ImportError as error:
    print(f"pydantic-ai is not installed: {error}")
    sys.exit(77)


async def main() -> None:
    with tempfile.TemporaryDirectory() as notes, Sandbox() as sandbox:
        files = FileSandbox(FileSandboxConfig(paths={"notes": PathConfig(notes, "rw")}))
        agent = Agent(TestModel(), toolsets=[FileSandboxToolset(files), SandboxToolset(sandbox)])
        result = await agent.run("Call each of your tools once.")
        print(result.output)
        assert "run_command" in result.output
        assert "outside sandbox" in result.output


asyncio.run(main())
