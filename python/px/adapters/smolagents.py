"""px for smolagents: the Python of a CodeAgent in a sandbox.

    from px.adapters.smolagents import SandboxPythonExecutor

    with SandboxPythonExecutor() as executor:
        agent = CodeAgent(tools=[], model=model, executor=executor)

One interpreter in the sandbox keeps what the steps define. Nothing that comes back is unpickled: that would let code of
the sandbox run here, so there is no allow_pickle.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .. import Sandbox, SandboxedProcess, SandboxError
from . import _run
from ._kernel import KERNEL

__all__ = ["SandboxPythonExecutor"]

T = TypeVar("T")
PACKAGES = "/home/sandbox/.packages"
INSTALL_S = 600.0
# What final_answer imports if it can, and does without; its source has them at its top once more, as if it needed them.
TRIED = ("PIL", "numpy")
IMPORT = re.compile(rf"^import ({'|'.join(TRIED)})$", re.MULTILINE)
REPLY = 16 << 20  # bytes of an answer; who sends more is ended


class Reply:
    """What comes of one step: output on stderr up to a mark, and one line on stdout."""

    def __init__(self, mark: bytes, limit: int) -> None:
        self._mark, self._tail = mark, b""
        self._kept, self._line = _run.Kept(limit), bytearray()
        self._marked = False

    def add(self, name: str, data: bytes) -> None:
        """A piece of either."""
        if name == "stdout":
            self._line += data
            if len(self._line) > REPLY:
                raise ValueError(f"the answer is longer than {REPLY} bytes")
        elif not self._marked:
            before, self._marked, data = self._split(self._tail + data)
            self._kept.add("stderr", before)
            self._tail = data

    def _split(self, data: bytes) -> tuple[bytes, bool, bytes]:
        """(output, whether the mark was there, what may be its beginning)."""
        at = data.find(self._mark)
        if at >= 0:
            return data[:at], True, b""
        cut = max(0, len(data) - len(self._mark) + 1)
        return data[:cut], False, data[cut:]

    def done(self) -> bool:
        """Whether all of it is here."""
        return self._marked and self._line.endswith(b"\n")

    def read(self) -> tuple[Mapping[str, Any], str]:
        """The answer, and the output."""
        found = json.loads(self._line)
        if not isinstance(found, dict):
            raise ValueError("the answer is no object")
        return found, self._kept.outcome().stderr


class Interpreter:
    """A Python in the sandbox that runs one piece of code after another."""

    def __init__(self, process: SandboxedProcess) -> None:
        self._process = process
        self._stream = process.stream(include_stream=True, chunk_size=_run.LIMIT)

    @classmethod
    async def start(cls, sandbox: Sandbox) -> Interpreter:
        """A new one, with nothing defined."""
        words = ["python3", "-c", KERNEL]
        return cls(await sandbox.run(words, None, env={"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}))

    async def step(self, code: str, timeout: float, limit: int) -> tuple[Mapping[str, Any], str]:
        """Runs it. TimeoutError, EOFError and ValueError are the end of the interpreter, too."""
        reply = Reply(secrets.token_hex(16).encode() + b"\n", limit)
        request = json.dumps({"code": code, "mark": reply._mark.decode(), "limit": limit})
        try:
            async with asyncio.timeout(timeout):
                await self._process.send(request.encode() + b"\n")
                while not reply.done():
                    reply.add(*await anext(self._stream))
            return reply.read()
        except (StopAsyncIteration, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise EOFError("it has ended") from error

    async def close(self) -> None:
        """Ends it, and returns when it is gone."""
        self._process.kill()
        await asyncio.sleep(0)  # who was cancelled hears of it in the loop's next turn
        async for _ in self._stream:
            pass
        await self._process.communicate(timeout=_run.TIMEOUT_S)


class SandboxPythonExecutor(RemotePythonExecutor):
    """Runs an agent's code in a sandbox: in that which is given, or in one of its own.

    additional_imports: packages that pip installs in the sandbox, which then needs a way out (enable_outbound)
    sandbox:            a px.Sandbox, which stays yours to close
    command_timeout:    seconds of a step; one that takes longer ends the interpreter, and the next has a new one with
                        the tools and variables that were sent
    limit:              bytes of its output that are kept
    """

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: Any = None,
        *,
        sandbox: Sandbox | None = None,
        command_timeout: float = _run.TIMEOUT_S,
        limit: int = _run.LIMIT,
    ) -> None:
        super().__init__(list(additional_imports), logger or AgentLogger(LogLevel.ERROR), allow_pickle=False)
        self._own = sandbox is None
        self._sandbox = Sandbox() if sandbox is None else sandbox
        self._timeout, self._limit = command_timeout, limit
        self._interpreter: Interpreter | None = None
        self._sent: dict[str, None] = {}  # code that a new interpreter has to run first, in its order
        self._sending = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="px-smolagents", daemon=True)
        self._thread.start()
        try:
            self.installed_packages = self.install_packages(list(additional_imports))
        except BaseException:
            self.cleanup()
            raise

    # ---- one step ----

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs the code; an exception of its own is an AgentError with its traceback."""
        if self._sending:
            code = IMPORT.sub(r"try:\n    import \1\nexcept ImportError:\n    pass", code)
        answer, logs = self._wait(self._step(code))
        if self._sending:
            self._sent[code] = None
        if "final" in answer:
            value = self._deserialize_final_answer(str(answer["final"]), False)
            return CodeOutput(output=value, logs=logs, is_final_answer=True)
        if "error" in answer:
            raise AgentError(f"{logs}{answer['error']}", self.logger)
        return CodeOutput(output=answer.get("value"), logs=logs, is_final_answer=False)

    async def _step(self, code: str) -> tuple[Mapping[str, Any], str]:
        try:
            if self._interpreter is None:
                self._interpreter = await Interpreter.start(self._sandbox)
                for sent in self._sent:
                    await self._interpreter.step(sent, self._timeout, self._limit)
            return await self._interpreter.step(code, self._timeout, self._limit)
        except TimeoutError:
            why = f"The code ran longer than {self._timeout:g} seconds and was killed."
        except (EOFError, ValueError, SandboxError) as error:
            why = f"The interpreter has ended: {error}."
        await self._drop()
        return {"error": f"{why} Variables of earlier steps are lost."}, ""

    async def _drop(self) -> None:
        interpreter, self._interpreter = self._interpreter, None
        if interpreter is not None:
            await interpreter.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """In the loop of our own: the caller may be in another one."""
        if not self._thread.is_alive():
            work.close()
            raise SandboxError("the executor is closed", fix="Make another one.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # ---- what is there before the first ----

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Defines them in the sandbox; what they need besides is installed there."""
        others = [found for name, found in tools.items() if name != "final_answer"]
        needed = {package for found in others for package in found.to_dict()["requirements"]}
        self.installed_packages += [package for package in TRIED if package not in needed]
        with self._setting_up():
            super().send_tools(tools)

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Sets them in the sandbox; as JSON."""
        with self._setting_up():
            super().send_variables(variables)

    @contextlib.contextmanager
    def _setting_up(self) -> Iterator[None]:
        """Code that is run meanwhile is run once more in an interpreter that replaces this one."""
        self._sending = True
        try:
            yield
        finally:
            self._sending = False

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """By pip in the sandbox, for the sandbox."""
        if additional_imports:
            pip = ["python3", "-m", "pip", "install", "--quiet", "--no-input", "--target", PACKAGES, "--"]
            done = self._wait(_run.run(self._sandbox, [*pip, *additional_imports], INSTALL_S, self._limit))
            if done.exit_code != 0:
                raise AgentError(f"pip cannot install {', '.join(additional_imports)}:\n{done.as_text()}", self.logger)
        return additional_imports

    # ---- the end ----

    def cleanup(self) -> None:
        """Ends the interpreter, and the sandbox if it is our own. May be called again."""
        if not self._thread.is_alive():
            return
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        await self._drop()
        if self._own:
            self._sandbox.close()

    def __enter__(self) -> SandboxPythonExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()
