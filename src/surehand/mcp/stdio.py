"""`surehand mcp` over standard input and output: one client, one session; ends with its input or with SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from importlib.metadata import version

from surehand import limits
from surehand.mcp.pipe import standard
from surehand.mcp.server import NAME, build
from surehand.mcp.sessions import One
from surehand.tools.catalog import toolset
from surehand.tools.context import Context


async def serve(*, desktop: str | None, tools: str) -> None:
    """Serve until the client closes its end or the process is told to end; both drain within a bound."""
    context = Context(desktop=desktop, client="mcp")
    server = build(One(context), toolset(tools), version(NAME))
    loop = asyncio.get_running_loop()
    try:
        async with standard() as pipe:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, pipe.end)
            await server.run(pipe.inward, pipe.outward, server.create_initialization_options())
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.MCP_CLOSE_MS / 1000):
                await context.close()


def run(*, desktop: str | None = None, tools: str = "all") -> None:
    """Serve in this process."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(desktop=desktop, tools=tools))
    # A thread that still waits for a daemon to start must not keep a process that nobody talks to.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
