"""What happens, as a page hears it: server-sent events, one stream for all tabs of a browser.

Guarantees: a stream ends with its session, and at `CONSOLE_STREAMS_MAX` of one session another is refused; an event
holds no more than its name and the ids that a page needs to know what to load again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from surehand import limits
from surehand.console.daemon import Feed
from surehand.console.views import console, session
from surehand.errors import TooLarge

#: What of an event a page is told; the rest it loads, as a page.
_TOLD: Final = ("event", "approval_id", "request_id", "operation_id", "desktop", "state", "status")


async def events(request: Request) -> Response:
    """Tell what happens until the browser, or its session, goes."""
    who = session(request)
    if who.streams >= limits.CONSOLE_STREAMS_MAX:
        raise TooLarge(f"{who.streams} streams of this browser are open, which is the limit", fix="close a tab")
    shared = console(request)

    async def told() -> AsyncIterator[bytes]:
        who.streams += 1
        try:
            with shared.daemon.heard() as feed:
                # Whatever happened while nobody listened: look again.
                yield _event({"event": "begun" if shared.daemon.fault is None else "daemon.lost"})
                news = await _next(feed)
                while shared.door.stands(who):
                    yield news
                    news = await _next(feed)
        finally:
            who.streams -= 1

    return StreamingResponse(told(), media_type="text/event-stream")


async def _next(feed: Feed) -> bytes:
    try:
        async with asyncio.timeout(limits.CONSOLE_PULSE_MS / 1000):
            return _event(await feed.take())
    except TimeoutError:
        return b":\n\n"  # a comment: the browser then knows that the stream lives


def _event(told: dict[str, Any]) -> bytes:
    facts = {name: told[name] for name in _TOLD if isinstance(told.get(name), str)}
    return f"data: {json.dumps(facts)}\n\n".encode()
