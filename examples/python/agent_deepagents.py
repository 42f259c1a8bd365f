#!/usr/bin/env python3
"""An agent of deepagents that writes a program into a sandbox and runs it there. The model says what it is told to."""

import sys
from typing import Any

from px.sync import Sandbox

try:
    from deepagents import create_deep_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from px.adapters.deepagents import SandboxBackend
except ImportError as error:
    print(f"deepagents is not installed: {error}")
    sys.exit(77)


class Script(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **words: Any) -> Any:
        return self


def call(name: str, **args: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"type": "tool_call", "id": name, "name": name, "args": args}])


steps = [
    call("write_file", file_path="/home/sandbox/answer.py", content="print(6 * 7)\n"),
    call("execute", command="python3 answer.py"),
    AIMessage("It said 42."),
]
with Sandbox() as sandbox:
    agent = create_deep_agent(model=Script(messages=iter(steps)), backend=SandboxBackend(sandbox))
    done = agent.invoke({"messages": [("user", "What is six times seven?")]})
for message in done["messages"]:
    print(f"{message.type}: {message.content}")
assert any("42" in message.content for message in done["messages"] if message.type == "tool")
