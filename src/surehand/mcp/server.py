"""One MCP server over one session's tools: lists them, runs them, and turns answers into results (spec §11.4, §12).

Holds no authority. A refusal is a result with `isError`; only a call that its own schema refuses is a protocol error.
"""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from surehand.tools.catalog import INSTRUCTIONS, UsageError, call, find_tool
from surehand.tools.context import Context
from surehand.tools.schema import input_schema
from surehand.tools.tool import Answer, Tool

NAME: Final = "surehand"


def listing(tool: Tool) -> types.Tool:
    """Return a tool as clients see it; annotations are conservative and decide nothing."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.args),
        output_schema=dict(tool.output),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.kind != "act",
            destructive_hint=tool.destructive,
            idempotent_hint=tool.kind == "read",
            open_world_hint=tool.kind == "act",
        ),
    )


def result(answer: Answer) -> types.CallToolResult:
    """Return an answer as a result: text first, then pictures, and the same facts as structured content."""
    import base64  # noqa: PLC0415

    content: list[Any] = [types.TextContent(type="text", text=answer.text)]
    content += [
        types.ImageContent(type="image", data=base64.b64encode(image.data).decode(), mime_type=image.mime)
        for image in answer.images
    ]
    return types.CallToolResult(content=content, structured_content=answer.data, is_error=answer.is_error)


def build(context: Context, tools: tuple[Tool, ...], version: str) -> Server[Any]:
    """Return a server of these tools over one session."""
    listed = types.ListToolsResult(tools=[listing(tool) for tool in tools])

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tool = find_tool(tools, params.name)
            return result(await call(context, tool, params.arguments or {}))
        except UsageError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    return Server(NAME, version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)
