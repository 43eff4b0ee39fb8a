"""The task through the OpenAI Agents SDK. Usage: agents_task.py MODEL_URL PROGRAM [ARGUMENT…]"""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI


async def main(url: str, program: str, *arguments: str) -> None:
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=url, api_key="none"))
    params = {"command": program, "args": list(arguments), "env": dict(os.environ)}
    async with MCPServerStdio(params, client_session_timeout_seconds=30) as server:
        agent = Agent(name="clerk", instructions="Fill in the form.", mcp_servers=[server], model=model)
        sys.stdout.write((await Runner.run(agent, "Do it.")).final_output)


asyncio.run(main(*sys.argv[1:]))
