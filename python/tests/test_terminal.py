"""A session on a terminal as a person would see it, drawn by an emulator (python3-pyte)."""

from __future__ import annotations

import asyncio

import pytest
from conftest import PATIENCE_S, looped

from px import Sandbox

pyte = pytest.importorskip("pyte", reason="python3-pyte is not installed")


class Person:
    """Looks at the screen and types."""

    def __init__(self, process):
        self.process = process
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self._output = process.stream()

    def text(self):
        return "\n".join(self.screen.display)

    async def see(self, wanted):
        """Until the screen shows it."""
        async with asyncio.timeout(PATIENCE_S):
            while wanted not in self.text():
                try:
                    self._stream.feed(await anext(self._output))
                except StopAsyncIteration:
                    pytest.fail(f"it ended without '{wanted}':\n{self.text()}")

    async def type(self, text):
        await self.process.send(text.encode())

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.process.set_terminal_size(rows, columns)


@looped
async def test_a_session_of_python():
    with Sandbox() as sandbox:
        person = Person(await sandbox.run("python3 -q", use_pty=True, timeout=None, env={"TERM": "xterm-256color"}))
        await person.see(">>> ")
        await person.type("import os, time; print('col' 'umns', os.get_terminal_size().columns)\n")
        await person.see("columns 80")
        person.resize(40, 120)
        await person.type("print('now', *os.get_terminal_size())\n")
        await person.see("now 120 40")
        await person.type("import signal; _ = signal.signal(signal.SIGWINCH, lambda *_: print('si' 'ze', *os.get_terminal_size()))\n")
        await person.type("print('list' 'ening')\n")
        await person.see("listening")
        person.resize(30, 100)
        await person.type("time.sleep(0.01)\n")  # a handler runs when the interpreter does
        await person.see("size 100 30")
        await person.type("print('\\x1b[31;1m' + 'r' + 'ed' + '\\x1b[0m')\n")
        await person.see("\nred")
        row = next(y for y, line in enumerate(person.screen.display) if line.startswith("red"))
        cell = person.screen.buffer[row][0]
        assert (cell.data, cell.fg, cell.bold) == ("r", "red", True)
        await person.type("print('sle' 'eping'); time.sleep(1000)\n")
        await person.see("sleeping")
        await person.type("\x03")
        await person.see("KeyboardInterrupt")
        await person.type("print(6 * 7)\n")
        await person.see("\n42")
        await person.type("exit(5)\n")
        assert await person.process.wait(timeout=PATIENCE_S) == 5
        await person._output.aclose()
        person.process.close_pty()


@looped
async def test_jobs_of_a_shell():
    with Sandbox() as sandbox:
        person = Person(await sandbox.run("PS1='ready> ' bash --norc -i", use_pty=True, timeout=None))
        await person.see("ready> ")
        await person.type("sleep 1000\n")
        await person.see("ready> sleep 1000")
        await asyncio.sleep(0.3)
        await person.type("\x1a")
        await person.see("Stopped")
        await person.type("jobs; kill %1; echo $((40 + 2))\n")
        await person.see("\n42")
        person.process.close_stdin()
        await person.process.wait(timeout=PATIENCE_S)
        assert person.process.returncode is not None
        await person._output.aclose()
        person.process.close_pty()
