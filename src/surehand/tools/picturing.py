"""Pictures for a model: of a window, a part of one, an element, or the desktop, on request with marks to act on."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest, SurehandError, WindowNotFound
from surehand.tools.context import Context
from surehand.tools.encoding import MIME, Delivered, Format, Wish, deliver
from surehand.tools.places import Element, Where
from surehand.tools.pointing import delivered_id
from surehand.tools.reading import named
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Image, Tool

#: Labels that a text lists; the rest is in the picture.
_LISTED_MAX: Final = 100
_OUTSIDE_LISTED_MAX: Final = 10


class Screenshot(Where, frozen=True, kw_only=True):
    """A picture."""

    target: Annotated[Element | None, brief("only this: label or {role,name,…}", "string", "object")] = None
    region: Annotated[
        tuple[int, int, int, int] | None, brief("x, y, width, height in the window, or the desktop", "array")
    ] = None
    desktop: Annotated[bool, Meta(description="everything")] = False
    monitor: Annotated[str | None, Meta(description="one of the desktop's")] = None
    marks: Annotated[bool, Meta(description="draw labels into it")] = False
    format: Format = "jpeg"
    quality: Annotated[int, Meta(ge=1, le=100)] = 75
    max_edge: Annotated[int, Meta(ge=limits.PICTURE_EDGE_MIN, le=limits.DESKTOP_SIDE_MAX)] = limits.PICTURE_EDGE_DEFAULT
    max_bytes: Annotated[int, Meta(ge=limits.PICTURE_BYTES_MIN, le=limits.PICTURE_BYTES_MAX)] = (
        limits.PICTURE_BYTES_DEFAULT
    )


async def screenshot(context: Context, args: Screenshot) -> Answer:
    """Return a picture."""
    found = await context.ask("screenshot", await _wanted(context, args))
    if (window := found.get("window")) is not None:
        context.window = window["surface"]
    data, image = await _delivered(found, args)
    lines = _lines(data)
    if args.marks:
        drawn = tuple(found.get("marks", ()))
        data["marks"] = [mark["label"] for mark in drawn]
        lines += _legend(found, drawn)
    return Answer(data, "\n".join(lines), images=(image,))


async def with_picture(context: Context, answer: Answer, window: str | None) -> Answer:
    """Return an action's answer with a picture of a window once it is at rest, as `screenshot` gives it unasked.

    A picture that cannot be had takes no result away; the answer says why it is not there.
    """
    try:
        if window is None:
            raise WindowNotFound("no window of it is open now")
        params = {"surface": window, "settle": True}
        found = await context.ask("screenshot", params, wait_ms=limits.APP_READ_MS_MAX + limits.SETTLE_BUSY_CAP_MS)
        data, image = await _delivered(found, Screenshot())
    except SurehandError as error:
        said = {"code": error.code, "message": error.message}
        lines = [answer.text, f"no picture: {error.code}: {error.message}"]
        return replace(answer, data={**answer.data, "image": {"error": said}}, text="\n".join(lines))
    lines = [answer.text, *_lines(data)]
    return replace(answer, data={**answer.data, "image": data}, text="\n".join(lines), images=(image,))


async def _delivered(found: dict[str, Any], args: Screenshot) -> tuple[dict[str, Any], Image]:
    """Return what a picture's places mean, and the picture as it was wished."""
    png, marks = base64.b64decode(found["png_base64"]), tuple(found.get("marks", ()))
    wish = Wish(args.format, args.quality, args.max_edge, args.max_bytes)
    picture = await asyncio.to_thread(_deliver, png, wish, marks)
    return _facts(found, picture, args.format), Image(picture.data, MIME[args.format])


async def _wanted(context: Context, args: Screenshot) -> dict[str, Any]:
    if args.desktop or args.monitor is not None:
        if args.target is not None or args.window is not None or args.app is not None:
            raise InvalidRequest("desktop and monitor go with no window and no target")
        params: dict[str, Any] = {} if args.monitor is None else {"monitor": args.monitor}
    else:
        params = named(context, args.target, args)
        if not params:
            windows = (await context.ask("surfaces", {}))["surfaces"]
            active = [one for one in windows if "active" in one["states"]]
            chosen = active if len(active) == 1 else windows
            if len(chosen) != 1:
                raise InvalidRequest(
                    f"{len(chosen)} windows are meant", fix="name one with window or app, or take the desktop"
                )
            params = {"surface": chosen[0]["surface_id"]}
    if args.region is not None:
        params["region"] = list(args.region)
    if args.marks:
        params["marks"] = True
    return params


def _deliver(png: bytes, wish: Wish, marks: tuple[dict[str, Any], ...]) -> Delivered:
    from surehand.tools.drawing import Drawn  # noqa: PLC0415 - goes with Pillow

    return deliver(png, wish, [Drawn(mark["label"], tuple(mark["box"]), mark.get("cut", False)) for mark in marks])


def _facts(found: dict[str, Any], picture: Delivered, kind: Format) -> dict[str, Any]:
    """Return what a place in the picture means: desktop = origin + place ÷ scale, for both sides."""
    capture = found["capture"]
    taken, size = (capture["width"], capture["height"]), (picture.width, picture.height)
    data: dict[str, Any] = {
        "capture_id": delivered_id(capture["capture_id"], taken, size),
        "width": size[0],
        "height": size[1],
        "format": kind,
        "bytes": len(picture.data),
        "scale": [round(d * capture["scale_milli"] / t / 1000, 6) for d, t in zip(size, taken, strict=True)],
        "origin": [capture["origin_x"], capture["origin_y"]],
    }
    if (window := found.get("window")) is not None:
        x, y, width, height = window["bounds"]
        data["window"] = window["surface"]
        data["window_bounds"] = [x, y, width, height]
    if "monitors" in found:
        data["monitors"] = found["monitors"]
    return data


def _lines(data: dict[str, Any]) -> list[str]:
    what = f"window {data['window']}" if "window" in data else "the desktop"
    lines = [f"{what}: {data['width']} x {data['height']} {data['format']}, capture_id {data['capture_id']}"]
    if "window_bounds" in data:
        left, top = (data["origin"][side] - data["window_bounds"][side] for side in (0, 1))
        if (left, top) != (0, 0):
            lines.append(f"its corner is at {left}, {top} of the window")
    elif data["origin"] != [0, 0]:
        lines.append("its corner is at {}, {} of the desktop".format(*data["origin"]))
    lines += [
        "monitor {} at {}, {}: {} x {}".format(_quoted(one["name"]), *one["bounds"])
        for one in data.get("monitors", ())
        if len(data["monitors"]) > 1
    ]
    return lines


def _legend(found: dict[str, Any], marks: tuple[dict[str, Any], ...]) -> list[str]:
    lines = []
    for mark in marks[:_LISTED_MAX]:
        line = f"[{mark['label']}] {mark['role']}"
        if mark["name"]:
            line += f" {_quoted(mark['name'])}"
        if mark.get("context"):
            line += f" in={_quoted(mark['context'])}"
        lines.append(line + (" cut off at the edge" if mark.get("cut") else ""))
    if len(marks) > _LISTED_MAX:
        lines.append(f"… {len(marks) - _LISTED_MAX} more in the picture")
    if unmarked := found.get("unmarked"):
        lines.append(f"{unmarked} elements have no mark; take a region")
    if outside := found.get("outside"):
        shown = ", ".join(outside[:_OUTSIDE_LISTED_MAX])
        more = f" and {len(outside) - _OUTSIDE_LISTED_MAX} more" if len(outside) > _OUTSIDE_LISTED_MAX else ""
        lines.append(f"not in the picture: {shown}{more}")
    return lines


def _quoted(text: str) -> str:
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - not needed by every call

    return quote(text)


TOOLS: Final = (
    Tool(
        name="screenshot",
        title="Take a picture",
        description=(
            "A picture of a window (covered or not), an element, a region or the desktop, where text does not say "
            "enough; act by label, or by x, y with its capture_id. Passwords are painted over."
        ),
        kind="read",
        args=Screenshot,
        output={"type": "object", "properties": {"capture_id": {"type": "string"}}},
        handler=screenshot,
        core=True,
    ),
)
