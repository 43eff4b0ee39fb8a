"""The page of what goes on now: each desktop as it changes, its agents, and what stops, pauses or takes it from them.

Guarantees:
- What stops an agent is a plain form: it works without a script, from the keyboard and from the page's first moment.
- A picture is the daemon's, painted there; the newest one is kept in memory only, and replaces the one before.
- One question at a time is open for all desktops of a page, so that watching never keeps a stop from being sent.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.views import console, form, now_ms, render, see, session
from surehand.errors import InvalidRequest, SurehandError

TITLE: Final = "Now"
PATH: Final = "/now"

_FLASH_MS: Final = 10_000

_WHAT: Final = {"paused": "paused", "taken_over": "taken over", "handed_over": "handed over on request"}
_TONES: Final = {
    "succeeded": "good",
    "interrupted": "warn",
    "cancelled": "warn",
    "outcome_unknown": "bad",
    "failed": "bad",
    "withheld": "warn",
}
#: What a form may ask of the daemon, by the name on its button; which of its fields are passed on.
_DEEDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "halt": ("halt", ("desktop", "session")),
    "pause": ("pause", ("desktop",)),
    "resume": ("resume", ("hold_id",)),
    "take": ("take", ("name",)),
    "hand_back": ("hand_back", ("name",)),
    "request_take": ("requests.take", ("request_id",)),
    "request_done": ("requests.done", ("request_id", "note")),
    "request_decline": ("requests.decline", ("request_id", "note")),
}
_SAID: Final = {
    "pause": "Paused. Nothing is done until you resume.",
    "resume": "Resumed.",
    "take": "The desktop is yours until you hand it back.",
    "hand_back": "Handed back.",
    "request_take": "The desktop is yours; the agent waits until you are done.",
    "request_done": "Handed back to the agent.",
    "request_decline": "The agent is told that nobody will do it.",
}


async def shown(request: Request) -> Response:
    """Show everything that goes on."""
    found: dict[str, Any] | None = None
    with contextlib.suppress(SurehandError):
        found = await console(request).daemon.call("watch.now")
    return await render(request, "now.html", flash=_flash_of(request), now=_view(found))


def _flash_of(request: Request) -> dict[str, Any] | None:
    """Return what the last deed came to, for a while: a page that is loaded beside it must not take it away."""
    flash: dict[str, Any] | None = session(request).kept.get(f"{PATH} flash")
    return flash if flash is not None and now_ms() - flash["at_ms"] < _FLASH_MS else None


def _view(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what the template shows of what the daemon says."""
    if found is None:
        return None
    desktops = [_desktop(one) for one in found["desktops"]]
    everywhere = [one for one in found["holds"] if one["desktop"] is None]
    return {
        "desktops": [one for one in desktops if one["attached"]],
        "idle": [one["name"] for one in desktops if not one["attached"]],
        "holds": [_hold(one) for one in everywhere],
        "all_paused": any(_is_of_all(one) for one in everywhere),
        "requests": found["requests"],
    }


def _is_of_all(hold: dict[str, Any]) -> bool:
    return hold["what"] == "paused" and (hold["principal"], hold["session"]) == (None, None)


def _desktop(one: dict[str, Any]) -> dict[str, Any]:
    own = [hold for hold in one["holds"] if hold["desktop"] == one["name"]]
    return {
        **one,
        "id": quote(one["name"], safe=""),
        "operations": [_operation(each) for each in one["operations"]],
        "recent": [_operation(each) for each in reversed(one["recent"])],
        "holds": [_hold(each) for each in own],
        "paused": any(each["what"] == "paused" and each["principal"] is None for each in own),
        "taken": any(each["what"] == "taken_over" for each in own),
    }


def _hold(one: dict[str, Any]) -> dict[str, Any]:
    named = [f"{name} {one[name]}" for name in ("desktop", "principal", "session") if one[name] is not None]
    return {**one, "who": " and ".join(named) or "every agent", "said": _WHAT.get(one["what"], one["what"])}


def _operation(one: dict[str, Any]) -> dict[str, Any]:
    effect = str(one["effect"]).rpartition(".")[2].replace("_", " ") or "something"
    ended = str(one.get("ended", ""))
    return {
        **one,
        "verb": effect,
        "program": str(one["app"]).rpartition("/")[2],
        "tone": _TONES.get(ended, ""),
        "said": ended.replace("_", " "),
    }


# --- pictures -------------------------------------------------------------------------------------------------------


class _Pictures:
    """The newest picture of each desktop, for one browser."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, bytes]] = {}

    def keep(self, frame: dict[str, Any]) -> None:
        """Take a picture in, where the answer holds one."""
        if "jpeg_base64" in frame:
            self._kept[frame["name"]] = (frame["tag"], base64.b64decode(frame["jpeg_base64"]))
        while len(self._kept) > limits.CONSOLE_DESKTOPS_MAX:
            del self._kept[next(iter(self._kept))]

    def get(self, name: str, tag: str) -> bytes | None:
        """Return a picture, where it still is the newest."""
        known = self._kept.get(name)
        return known[1] if known is not None and known[0] == tag else None


def _pictures(request: Request) -> _Pictures:
    found: _Pictures = session(request).kept.setdefault(f"{PATH} pictures", _Pictures())
    return found


async def picture(request: Request) -> Response:
    """Return a desktop's picture as JPEG: the one named by `tag`, or the one of now."""
    name, pictures = request.path_params["name"], _pictures(request)
    tag = request.query_params.get("tag", "")
    data = pictures.get(name, tag)
    if data is None:
        frame = await console(request).daemon.call("watch.frame", {"name": name})
        pictures.keep(frame)
        data = pictures.get(name, frame["tag"])
    if not data:
        return Response(status_code=204)
    return Response(data, media_type="image/jpeg", headers={"cache-control": "no-store"})


async def following(request: Request) -> Response:
    """Return what is new of the desktops that `d` names, each as NAME, the tag and the state tag that are known.

    Answers once there is anything new, or with nothing when the time is over.
    """
    known = [one.split("\n") for one in request.query_params.getlist("d")]
    if not 1 <= len(known) <= limits.CONSOLE_DESKTOPS_MAX or any(len(one) != 3 for one in known):
        raise InvalidRequest(f"1 to {limits.CONSOLE_DESKTOPS_MAX} desktops can be followed")
    asked = [asyncio.create_task(_next(request, *one)) for one in known]
    try:
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    return JSONResponse([task.result() for task in asked if task in done], headers={"cache-control": "no-store"})


async def _next(request: Request, name: str, tag: str, state_tag: str) -> dict[str, Any]:
    wait_ms = limits.CONSOLE_FOLLOW_MS
    params = {"name": name, "after": tag, "state_after": state_tag, "wait_ms": wait_ms}
    try:
        frame = await console(request).daemon.call("watch.frame", params, wait_ms=wait_ms)
    except SurehandError as error:
        await asyncio.sleep(wait_ms / 1000)
        return {"name": name, "tag": "", "state_tag": "", "error": error.message, "outlines": []}
    _pictures(request).keep(frame)
    outlines = [one["outline"] for one in frame["state"]["operations"] if one["outline"] is not None]
    told = {key: frame[key] for key in ("name", "tag", "state_tag", "width", "height", "scale_milli", "error")}
    return {**told, "outlines": outlines}


# --- deeds ----------------------------------------------------------------------------------------------------------


async def done(request: Request) -> Response:
    """Do what a button says."""
    said = form(request)
    deed = said.get("do", "")
    if deed not in _DEEDS:
        raise InvalidRequest("no button says that")
    method, fields = _DEEDS[deed]
    params = {name: said[name] for name in fields if said.get(name)}
    found = await console(request).daemon.call(method, params, wait_ms=limits.HALT_REPORT_MS_MAX)
    session(request).kept[f"{PATH} flash"] = {**_flash(deed, found), "at_ms": now_ms()}
    return see(PATH)


def _flash(deed: str, found: dict[str, Any]) -> dict[str, str]:
    if found.get("recorded") is False:
        return {"text": "Done, but the journal could not record it.", "tone": "bad"}
    if deed != "halt":
        return {"text": _SAID[deed], "tone": "good"}
    if not found["released"]:
        return {"text": "Stopped, but a desktop did not say that it released everything.", "tone": "bad"}
    ended = [f"{_operation(one)['verb']}: {_operation(one)['said']}" for one in found["operations"]]
    what = f" In flight: {', '.join(ended)}." if ended else " Nothing was in flight."
    return {"text": f"Stopped. Everything was released within {found['released_ms']} ms.{what}", "tone": "good"}


ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route(PATH, shown, methods=["GET"]),
    Route(PATH, done, methods=["POST"]),
    Route(f"{PATH}/next", following),
    Route(f"{PATH}/picture/{{name}}", picture),
)
