"""`surehand mcp` over stdin and stdout: one client, one session; ends with its input. stdout is protocol only."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from mcp.server.stdio import stdio_server

from surehand.mcp.server import build
from surehand.tools.catalog import toolset
from surehand.tools.context import Context


async def serve(*, desktop: str | None, tools: str) -> None:
    """Serve until the client closes its end."""
    context = Context(desktop=desktop, client="mcp")
    server = build(context, toolset(tools), version("surehand"))
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await context.close()


def run(*, desktop: str | None = None, tools: str = "all") -> None:
    """Serve in this process."""
    asyncio.run(serve(desktop=desktop, tools=tools))
