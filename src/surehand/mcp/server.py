"""One MCP server over sessions' tools: lists them, runs them, and turns answers into results (spec §11.4, §12).

Holds no authority. A refusal is a result with `isError`; only a call that its own schema refuses is a protocol error.
A call that takes longer than a second says so to a client that asked for progress. A cancelled call cancels what it
asked of the daemon, which then dispatches nothing more for it and releases what it held.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from surehand import limits
from surehand.errors import SurehandError
from surehand.mcp.asking import Asking, asked_before
from surehand.mcp.resources import Resources
from surehand.mcp.sessions import ARGUMENT, META_KEY, Found, Sessions, token_of, turn_of
from surehand.tools.catalog import INSTRUCTIONS, UsageError, find_tool
from surehand.tools.context import Progress, silent
from surehand.tools.projection import projected
from surehand.tools.schema import input_schema
from surehand.tools.tool import Answer, Tool, refusal

NAME: Final = "surehand"

_Request = ServerRequestContext[Any, Any]
#: What it is and where it comes from is told with the first answer, once, instead of with every tool.
_CARRIED: Final = {"type": "string"}


def listing(tool: Tool, *, carried: bool = False) -> types.Tool:
    """Return a tool as clients see it; annotations are conservative and decide nothing.

    With the session's token among the arguments the list must not get longer, so the word that says that there are no
    others is left out there; unknown arguments are refused all the same.
    """
    schema = input_schema(tool.args)
    if carried:
        kept = {key: value for key, value in schema.items() if key != "additionalProperties"}
        schema = {**kept, "properties": {**schema.get("properties", {}), ARGUMENT: _CARRIED}}
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema,
        output_schema=dict(tool.output),
        annotations=_hints(tool),
    )


def _hints(tool: Tool) -> types.ToolAnnotations:
    """Return what differs from the protocol's own assumption: that a tool destroys, and not for reading only."""
    if tool.kind == "act":
        return types.ToolAnnotations(destructive_hint=None if tool.destructive else False)
    return types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


def result(answer: Answer, found: Found | None = None) -> types.CallToolResult:
    """Return an answer as a result: text first, then pictures, and the same facts as structured content."""
    text, data, meta = answer.text, answer.data, None
    if found is not None and found.token is not None:
        meta = {META_KEY: found.token}
        if found.fresh:
            data = {**data, ARGUMENT: found.token}
            text = f'{text}\nsession="{found.token}" (hand it back as the argument session with every call)'
    content: list[Any] = [types.TextContent(type="text", text=text)]
    content += [
        types.ImageContent(type="image", data=base64.b64encode(image.data).decode(), mime_type=image.mime)
        for image in answer.images
    ]
    return types.CallToolResult(content=content, structured_content=data, is_error=answer.is_error, _meta=meta)


def build(sessions: Sessions, tools: tuple[Tool, ...], version: str) -> Server[Any]:
    """Return a server of these tools over sessions."""
    key = secrets.token_bytes(limits.SALT_BYTES)
    listed = {
        carried: types.ListToolsResult(tools=[listing(tool, carried=carried) for tool in tools])
        for carried in (False, True)
    }

    async def list_tools(request: _Request, _params: Any) -> types.ListToolsResult:
        return listed[sessions.carried(request)]

    async def call_tool(
        request: _Request, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            tool = find_tool(tools, params.name)
            arguments = dict(params.arguments or {})
            token = token_of(arguments, request.meta) if sessions.carried(request) else None
            before = asked_before(params)
            # A client that was asked before its first answer was not told of its session yet.
            unheard = token is None and before is not None and before.session is not None
            token = before.session if before is not None and token is None else token
            turn = turn_of(request.meta)
            async with sessions.use(request, token) as found, _reporting(request, tool) as progress:
                context = found.context.for_call(request.request_id if found.ids_once else None, progress)
                answer = await Asking(request, context, tool, arguments).answer(params, found.token)
                if not isinstance(answer, Answer):
                    return answer
                found.fresh = found.fresh or unheard
                context.turn.begin(turn, time.monotonic_ns() // 1_000_000)
                return result(projected(answer, context.turn, key), found)
        except UsageError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except SurehandError as error:
            return result(refusal(error))

    server: Server[Any] = Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **Resources(sessions).handlers(),
    )
    # Nothing is traced; and state that a client hands back is refused unless it was sealed here.
    server.middleware[:] = [RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)]
    return server


@contextlib.asynccontextmanager
async def _reporting(request: _Request, tool: Tool) -> AsyncIterator[Progress]:
    """Give what a tool tells its progress to, where the client asked to hear it."""
    if (request.meta or {}).get("progress_token") is None:
        yield silent
        return
    teller = _Teller(request, tool.title)
    task = asyncio.create_task(teller.run())
    try:
        yield teller.tell
    finally:
        task.cancel()


class _Teller:
    """Says once a second how a call goes; what it says only ever grows, as the protocol asks."""

    def __init__(self, request: _Request, what: str) -> None:
        self._request = request
        self._what = what
        self._total_ms: int | None = None
        self._began = time.monotonic()

    async def tell(self, message: str, done_ms: int, total_ms: int) -> None:  # noqa: ARG002 - our own clock counts
        """Remember what is waited for; it is said with the next second."""
        self._what = message
        self._total_ms = total_ms

    async def run(self) -> None:
        """Speak each second until cancelled."""
        while True:
            await asyncio.sleep(limits.MCP_PROGRESS_MS / 1000)
            passed_ms = (time.monotonic() - self._began) * 1000
            total = None if self._total_ms is None else float(max(self._total_ms, passed_ms))
            await self._request.session.report_progress(passed_ms, total, self._what)
