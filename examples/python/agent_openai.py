#!/usr/bin/env python3
"""An agent of the OpenAI Agents SDK whose commands run in a sandbox. The model is the SDK's own for tests."""

import asyncio
import sys

from px import Sandbox

try:
    from agents import Agent, Runner, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message, function_call

    from px.adapters.openai_agents import sandbox_tools
except ImportError as error:
    print(f"openai-agents is not installed: {error}")
    sys.exit(77)


async def main() -> None:
    set_tracing_disabled(True)
    ask = function_call("run_command", {"command": "echo $((6 * 7))", "timeout": None}, call_id="1")
    model = ScriptedModel([[ask], [assistant_message("It said 42.")]])
    with Sandbox() as sandbox:
        agent = Agent(name="shell", model=model, tools=list(sandbox_tools(sandbox)))
        result = await Runner.run(agent, "What is six times seven?")
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    print(*outputs, result.final_output, sep="\n")
    assert '"stdout": "42\\n"' in outputs[0]


asyncio.run(main())
