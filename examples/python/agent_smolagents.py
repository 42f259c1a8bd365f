#!/usr/bin/env python3
"""A CodeAgent of smolagents whose Python runs in a sandbox. The model says what it is told to."""

import sys
from typing import Any

try:
    from smolagents import CodeAgent, Model
    from smolagents.models import ChatMessage, MessageRole

    from px.adapters.smolagents import SandboxPythonExecutor
except ImportError as error:
    print(f"smolagents is not installed: {error}")
    sys.exit(77)

STEPS = [
    "Thought: a file of the home is for the next step.\n<code>\nopen('n', 'w').write(str(6 * 7))\n</code>",
    "Thought: that is it.\n<code>\nfinal_answer(int(open('n').read()))\n</code>",
]


class Script(Model):
    def generate(self, messages: Any, **words: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=STEPS.pop(0))


with SandboxPythonExecutor() as executor:
    agent = CodeAgent(tools=[], model=Script(), executor=executor, verbosity_level=0)
    answer = agent.run("What is six times seven?")
print(answer)
assert answer == 42
