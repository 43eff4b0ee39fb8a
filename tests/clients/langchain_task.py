"""The task through LangChain's MCP adapters. Usage: langchain_task.py MODEL_URL PROGRAM [ARGUMENT…]"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


async def main(url: str, program: str, *arguments: str) -> None:
    server = {"transport": "stdio", "command": program, "args": list(arguments), "env": dict(os.environ)}
    client = MultiServerMCPClient({"surehand": server})
    async with client.session("surehand") as session:
        model = ChatOpenAI(model="scripted", base_url=url, api_key="none", use_responses_api=False)
        agent = create_agent(model, await load_mcp_tools(session))
        found = await agent.ainvoke({"messages": [("user", "Fill in the form.")]})
        sys.stdout.write(found["messages"][-1].content)


asyncio.run(main(*sys.argv[1:]))
