"""px.adapters.smolagents with the framework: the executor by itself, and under an agent with a scripted model."""

from __future__ import annotations

import asyncio

import pytest
from conftest import running, until, word

from px import Sandbox

pytest.importorskip("smolagents", reason="smolagents is not installed")

from smolagents import CodeAgent, Model, PythonExecutor, tool
from smolagents.default_tools import FinalAnswerTool
from smolagents.models import ChatMessage, MessageRole
from smolagents.utils import AgentError

from px.adapters.smolagents import SandboxPythonExecutor


@pytest.fixture
def executor():
    with SandboxPythonExecutor(command_timeout=30) as found:
        yield found


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: the number
    """
    return number * 2


def test_what_a_step_defines_is_there_for_the_next(executor):
    assert isinstance(executor, PythonExecutor)
    first = executor("import os\nx = 6\nprint('hello'); os.system('echo child')")
    assert (first.output, first.logs, first.is_final_answer) == ("0", "hello\nchild\n", False)
    assert executor("x * 7").output == "42"
    assert executor("class A: pass\nimport pickle; pickle.loads(pickle.dumps(A())).__class__ is A").output == "True"
    assert executor("y = 1").output is None


def test_an_error_has_its_line_and_ends_nothing(executor):
    executor("x = 5")
    with pytest.raises(AgentError, match="ZeroDivisionError") as caught:
        executor("print('before')\ndef f():\n    return 1 / 0\nf()")
    assert "before" in str(caught.value)
    assert "return 1 / 0" in str(caught.value)
    for code in ("x +", "raise SystemExit(3)", "import sys; sys.exit()"):
        with pytest.raises(AgentError):
            executor(code)
    assert executor("x").output == "5"


def test_tools_and_variables(executor):
    executor.send_variables({"name": "world", "numbers": [1, (2, 3)]})
    executor.send_tools({"double": double, "final_answer": FinalAnswerTool()})
    assert executor("print('hello', name, double(number=numbers[0]))").logs == "hello world 2\n"
    done = executor("final_answer({'answer': (double(21), b'x')})")
    assert (done.output, done.is_final_answer) == ({"answer": (42, b"x")}, True)


def test_a_step_that_takes_too_long_costs_the_variables_but_not_the_tools(executor):
    seconds = word()
    with SandboxPythonExecutor(command_timeout=2) as short:
        short.send_tools({"double": double})
        short("x = 1")
        with pytest.raises(AgentError, match="longer than 2 seconds"):
            short(f"import os; os.system('sleep {seconds}')")
        until(lambda: not running(seconds), "the command goes on")
        assert short("double(number=4)").output == "8"
        with pytest.raises(AgentError, match="NameError"):
            short("x")


def test_code_cannot_hurt_who_reads_its_answer(executor):
    """It has the descriptors of the protocol, and can say anything: no more than wrong answers come of it."""
    evil = (
        "import os; os._exit(0)",
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'[]\\n')\n    except OSError: pass",
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'x' * (17 << 20))\n    except OSError: pass",
    )
    for code in evil:
        with pytest.raises(AgentError, match="The interpreter has ended"):
            executor(code)
        assert executor("1 + 1").output == "2"
    pickled = "class FinalAnswerException(BaseException):\n    value = 'pickle:gASVAAAA'\nraise FinalAnswerException"
    with pytest.raises(Exception, match="Pickle data rejected"):
        executor(pickled)


def test_output_has_an_end():
    with SandboxPythonExecutor(limit=1000) as executor:
        done = executor("print('x' * 3_000_000)\n'y' * 5000")
        assert len(done.output) == 1000
        assert done.logs.startswith("x" * 500 + "\n[... ")
        assert done.logs.endswith("x\n")
        assert (len(done.logs), "bytes left out ...]\n" in done.logs) == (1000, True)
        with pytest.raises(TypeError):
            SandboxPythonExecutor(allow_pickle=True)


def test_a_sandbox_of_the_caller_stays():
    with Sandbox() as sandbox:
        with SandboxPythonExecutor(sandbox=sandbox) as executor:
            executor("open('f', 'w').write('kept')")
        executor.cleanup()
        assert not sandbox.closed
        assert (sandbox.work_dir / "f").read_text() == "kept"
        with pytest.raises(Exception, match="closed"):
            executor("1")


def test_in_the_event_loop_of_somebody_else(executor):
    async def inside():
        return executor("1 + 1").output

    assert asyncio.run(inside()) == "2"


def test_packages_come_by_pip_in_the_sandbox(tmp_path):
    with Sandbox() as sandbox:
        if asyncio.run(pip(sandbox)) != 0:
            pytest.skip("the sandbox has no pip")
        with SandboxPythonExecutor(sandbox=sandbox) as executor:
            with pytest.raises(AgentError, match="pip cannot install /no-such-package"):
                executor.install_packages(["/no-such-package"])
            executor(WHEEL)
            assert executor.install_packages(["/tmp/tiny-1.0-py3-none-any.whl"])
            assert executor("import tiny; tiny.value").output == "'tiny'"


async def pip(sandbox):
    return await (await sandbox.run("python3 -m pip --version >/dev/null")).wait()


WHEEL = """
import zipfile
with zipfile.ZipFile('/tmp/tiny-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny.py', "value = 'tiny'")
    wheel.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tiny-1.0.dist-info/RECORD', '')
"""


class Script(Model):
    """A model that says what it is told to."""

    def __init__(self, *said):
        super().__init__(model_id="script")
        self.said = list(said)

    def generate(self, messages, **_):
        return ChatMessage(role=MessageRole.ASSISTANT, content=self.said.pop(0))


def test_an_agent_with_the_executor(executor):
    model = Script(
        "Thought: I double it.\n<code>\nx = double(number=20)\nopen('note', 'w').write(str(x))\nprint(x)\n</code>",
        "Thought: a bit more.\n<code>\nfinal_answer(int(open('note').read()) + 2)\n</code>",
    )
    agent = CodeAgent(tools=[double], model=model, executor=executor, verbosity_level=0)
    assert agent.run("go") == 42
