"""What clients read and follow beside tools: window texts, records of operations, approvals; and a page that teaches.

`surehand://scene/SESSION` (or `…/SESSION/WINDOW`), `surehand://journal/OPERATION` and `surehand://approvals/SESSION`.
SESSION is `current`, or the token where a client has to carry one; another session's name opens nothing. Reading asks
the daemon as a tool would, so policy decides what may be read. Who subscribes is told that something changed, never
what: it reads again. One watch at the daemon serves all subscriptions of a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from surehand import limits
from surehand.errors import SurehandError
from surehand.mcp.sessions import META_KEY, Sessions, turn_of
from surehand.tools.catalog import UsageError
from surehand.tools.context import Context
from surehand.tools.projection import projected
from surehand.tools.skill import SKILL
from surehand.tools.tool import Answer

SCHEME: Final = "surehand://"
CURRENT: Final = "current"

#: The protocol's own code for a resource that is not there.
NOT_FOUND: Final = -32002

_Request = ServerRequestContext[Any, Any]
_Kind = Literal["scene", "journal", "approvals"]
_Notify = Callable[[str], Awaitable[None]]

_TEXT: Final = "text/plain"
_JSON: Final = "application/json"

_LISTED: Final = (
    types.Resource(uri=f"{SCHEME}scene/{CURRENT}", name="scene", title="The windows as text", mime_type=_TEXT),
    types.Resource(uri=f"{SCHEME}approvals/{CURRENT}", name="approvals", title="Open approvals", mime_type=_JSON),
)
_TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template=f"{SCHEME}scene/{{session}}/{{window}}", name="window", title="One window as text", mime_type=_TEXT
    ),
    types.ResourceTemplate(
        uri_template=f"{SCHEME}journal/{{operation}}", name="operation", title="What is recorded", mime_type=_JSON
    ),
)
PROMPT: Final = types.Prompt(
    name="working_with_surehand",
    title="How to work with Surehand",
    description="Looking, acting, and what answers mean.",
)


_log: Final = logging.getLogger("surehand.mcp")


@dataclass(frozen=True, slots=True)
class Address:
    """A resource's address in its parts."""

    kind: _Kind
    of: str
    window: str | None = None


def address_of(uri: str) -> Address:
    """Return an address in its parts.

    Raises:
        MCPError: it is none of ours.
    """
    kind, _, rest = uri.removeprefix(SCHEME).partition("/")
    parts = rest.split("/")
    fits = kind in {"scene", "journal", "approvals"} and len(parts) <= (2 if kind == "scene" else 1) and all(parts)
    if not uri.startswith(SCHEME) or not fits or len(uri) > limits.NAME_CHARS_MAX:
        raise _no_such(uri)
    return Address(kind, parts[0], parts[1] if len(parts) > 1 else None)  # type: ignore[arg-type]


def _no_such(uri: str) -> MCPError:
    return MCPError(NOT_FOUND, "there is no such resource", {"uri": uri[: limits.NAME_CHARS_MAX]})


@dataclass(slots=True)
class _Followed:
    """What a session's subscribers are told of."""

    task: asyncio.Task[None] | None = None
    #: Per address, how each subscriber is told.
    told: dict[str, list[_Notify]] = field(default_factory=dict)


class Resources:
    """The handlers of one server."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._key = secrets.token_bytes(limits.SALT_BYTES)
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=limits.MCP_SUBSCRIPTIONS_MAX)
        self._followed: WeakKeyDictionary[Context, _Followed] = WeakKeyDictionary()

    def handlers(self) -> dict[str, Any]:
        """Return what a server is built with."""
        return {
            "on_list_resources": self.list,
            "on_list_resource_templates": self.templates,
            "on_read_resource": self.read,
            "on_subscribe_resource": self.subscribe,
            "on_unsubscribe_resource": self.unsubscribe,
            "on_subscriptions_listen": self.listen,
            "on_list_prompts": self.prompts,
            "on_get_prompt": self.prompt,
        }

    # --- listing -----------------------------------------------------------------------------------------------------

    async def list(self, _request: _Request, _params: Any) -> types.ListResourcesResult:
        """Return the addresses that are always there; nothing is asked of the daemon, so nothing starts."""
        return types.ListResourcesResult(resources=list(_LISTED))

    async def templates(self, _request: _Request, _params: Any) -> types.ListResourceTemplatesResult:
        """Return how the others are made."""
        return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES))

    async def prompts(self, _request: _Request, _params: Any) -> types.ListPromptsResult:
        """Return the one prompt."""
        return types.ListPromptsResult(prompts=[PROMPT])

    async def prompt(self, _request: _Request, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Return the page that teaches."""
        if params.name != PROMPT.name or params.arguments:
            raise MCPError(types.INVALID_PARAMS, f"there is one prompt, {PROMPT.name}, without arguments")
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=SKILL))
        return types.GetPromptResult(description=PROMPT.description, messages=[message])

    # --- reading -----------------------------------------------------------------------------------------------------

    async def read(self, request: _Request, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Return a resource's text."""
        uri = str(params.uri)
        address = address_of(uri)
        async with self._session(request, address, uri) as context:
            try:
                found = await _READERS[address.kind](context, address)
            except SurehandError as error:
                value = error.to_value()
                raise MCPError(
                    NOT_FOUND, f"{value['code']}: {value['message']}", {"uri": uri, "error": value}
                ) from error
            # It is read by a program, which may show it to its model: what a tool may tell of a turn, and no more.
            context.turn.begin(turn_of(request.meta), time.monotonic_ns() // 1_000_000)
            shown = projected(found, context.turn, self._key)
        text = shown.text or json.dumps(shown.data, ensure_ascii=False, separators=(",", ":"))
        mime = _TEXT if address.kind == "scene" else _JSON
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=mime)])

    @contextlib.asynccontextmanager
    async def _session(self, request: _Request, address: Address, uri: str) -> AsyncIterator[Context]:
        """Hold the session an address belongs to; one that is not this client's is not there."""
        token: str | None = None
        if self._sessions.carried(request):
            held = (request.meta or {}).get(META_KEY)
            token = held if isinstance(held, str) else None
            if address.kind != "journal" and address.of != CURRENT:
                token = address.of
            if token is None and address.kind != "journal":
                raise _no_such(uri)
        elif address.kind != "journal" and address.of != CURRENT:
            raise _no_such(uri)
        try:
            async with self._sessions.use(request, token) as found:
                yield found.context
        except UsageError as error:
            raise _no_such(uri) from error

    # --- following ---------------------------------------------------------------------------------------------------

    async def subscribe(self, request: _Request, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Tell a client with a handshake of each change, until it unsubscribes or goes."""
        uri = str(params.uri)
        async with self._session(request, address_of(uri), uri) as context:
            self._leave(context, uri, None)  # who subscribes twice is told once
            self._follow(context, uri, request.session.send_resource_updated)
        return types.EmptyResult()

    async def unsubscribe(self, request: _Request, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Tell it no more."""
        uri = str(params.uri)
        async with self._session(request, address_of(uri), uri) as context:
            self._leave(context, uri, None)
        return types.EmptyResult()

    async def listen(
        self, request: _Request, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a client without sessions one stream of changes, for as long as it listens."""
        async with contextlib.AsyncExitStack() as stack:
            for uri in dict.fromkeys(map(str, params.notifications.resource_subscriptions or ())):
                address = address_of(uri)
                if self._sessions.carried(request) and address.of == CURRENT:
                    raise _no_such(uri)  # every stream that follows an address is told, so it has to name its session
                context = await stack.enter_async_context(self._session(request, address, uri))
                self._follow(context, uri, self._publish)
                stack.callback(self._leave, context, uri, self._publish)
            return await self._listen(request, params)

    async def _publish(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri))

    def _follow(self, context: Context, uri: str, notify: _Notify) -> None:
        followed = self._followed.setdefault(context, _Followed())
        if uri not in followed.told and len(followed.told) >= limits.MCP_SUBSCRIPTIONS_MAX:
            raise MCPError(types.INVALID_PARAMS, f"a session has at most {limits.MCP_SUBSCRIPTIONS_MAX} subscriptions")
        followed.told.setdefault(uri, []).append(notify)
        if followed.task is None or followed.task.done():
            followed.task = asyncio.create_task(_watch(context, followed))

    def _leave(self, context: Context, uri: str, notify: _Notify | None) -> None:
        followed = self._followed.get(context)
        if followed is None:
            return
        rest = followed.told.pop(uri, [])
        if notify in rest:
            rest.remove(notify)
        if rest and notify is not None:
            followed.told[uri] = rest
        if not followed.told and followed.task is not None:
            followed.task.cancel()
            followed.task = None


async def _watch(context: Context, followed: _Followed) -> None:
    """Hear what the daemon tells of this session, and tell who follows it; begins again when the daemon does."""
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(limits.MCP_EVENTS_MAX)

    def hear(data: dict[str, Any]) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            queue.put_nowait(data)  # who is told too much looks again anyway

    async def telling() -> None:
        while True:
            data = await queue.get()
            concerned = [uri for uri in followed.told if _concerns(address_of(uri), data)]
            told = [_tell(notify, uri) for uri in concerned for notify in dict.fromkeys(followed.told[uri])]
            await asyncio.gather(*told)

    teller = asyncio.create_task(telling())
    try:
        while not context.closed:
            with contextlib.suppress(SurehandError):
                await context.ask("watch", {}, wait_ms=limits.WAIT_MS_MAX, on_event=hear)
            hear({"lost": True})
            await asyncio.sleep(limits.MCP_PROGRESS_MS / 1000)
    finally:
        teller.cancel()


async def _tell(notify: _Notify, uri: str) -> None:
    """Tell one subscriber; one that fails, or takes nothing, keeps nobody else from being told, now or later."""
    try:
        async with asyncio.timeout(limits.MCP_TELL_MS_MAX / 1000):
            await notify(uri)
    except Exception as error:  # noqa: BLE001 - whatever a transport raises for a client that went away
        _log.info("a subscriber was not told: %s", type(error).__name__)


def _concerns(address: Address, data: dict[str, Any]) -> bool:
    """Say whether what was told may have changed what stands at an address."""
    if data.get("lost") or "dropped" in data:
        return True
    if isinstance(scene := data.get("scene"), dict):
        return address.kind == "scene" and address.window in {None, scene.get("surface")}
    if isinstance(approval := data.get("approval"), dict):
        return address.kind == "approvals" or (address.kind == "journal" and address.of == approval.get("operation_id"))
    return address.kind == "approvals" and "human" in data


# --- readers ---------------------------------------------------------------------------------------------------------


async def _scene(context: Context, address: Address) -> Answer:
    if address.window is not None:
        return Answer({}, await _window(context, address.window))
    found = (await context.ask("surfaces", {}))["surfaces"][: limits.WATCH_SURFACES_MAX]
    text = "\n\n".join([await _window(context, one["surface_id"]) for one in found])
    return Answer({}, text or "no window is open")


async def _window(context: Context, surface: str) -> str:
    found = await context.ask("observe", {"surface": surface, "full": True, "aside": True})
    return str(found["text"])


async def _journal(context: Context, address: Address) -> Answer:
    return Answer(await context.ask("status", {"operation_id": address.of}), "")


async def _approvals(context: Context, _: Address) -> Answer:
    return Answer(await context.ask("approval", {}), "")


_READERS: Final[dict[str, Callable[[Context, Address], Awaitable[Answer]]]] = {
    "scene": _scene,
    "journal": _journal,
    "approvals": _approvals,
}
