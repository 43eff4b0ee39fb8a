"""The picture beside a question to a person: what is acted on and a little around it, secrets painted over (spec §6.4).

It is taken as the question is asked, through the same fence as every picture, and under what the asking session may
read. A question is asked without one where none can be had: a picture helps a person, and withholds nothing from them.
"""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Final

from surehand import limits
from surehand.errors import CaptureUnavailable, SurehandError
from surehand.model.scene import Bounds, Capture, Scene
from surehand.runtime.parts import Parts
from surehand.runtime.pictures import crop
from surehand.runtime.resolve import Aim
from surehand.runtime.run import Run
from surehand.runtime.shots import window_shot

_log: Final = logging.getLogger("surehand.approvals")


async def crop_of(parts: Parts, run: Run) -> bytes | None:
    """Return the PNG to show beside a question about this run; None where there is none to be had in time."""
    surface, desk = run.aim.surface, run.session.desk
    if surface is None or not surface.place or desk is None or desk.screen is None:
        return None
    try:
        async with asyncio.timeout(limits.CROP_MS_MAX / 1000):
            scene = await parts.scenes.observe(run.session, surface.surface_id, hand_out=False)
            shot = await window_shot(parts, run.session, desk.screen, scene)
            bounds = _around(run.aim, shot.scenes[surface.surface_id], shot.capture)
            _, data = await crop(shot.capture, shot.png, bounds)
            return await asyncio.to_thread(_shrunk, data)
    except (SurehandError, TimeoutError, OSError) as error:
        _log.info("a question is asked without a picture: %s", getattr(error, "code", type(error).__name__))
        return None


def _around(aim: Aim, scene: Scene, capture: Capture) -> Bounds:
    """Return the place of what is aimed at, with what stands around it; the whole window where it has none."""
    margin = limits.CROP_MARGIN_PX
    place: Bounds | None = None
    if aim.point is not None:
        place = (*aim.point, 1, 1)
    elif aim.node is not None:
        place = next((one.bounds for one in scene.tree.nodes if one.handle == aim.node.handle), None)
    if place is None:
        return (capture.origin_x, capture.origin_y, capture.width, capture.height)
    x, y, width, height = place
    return (x - margin, y - margin, width + 2 * margin, height + 2 * margin)


def _shrunk(data: bytes) -> bytes:
    """Return a picture that a person can be shown at once: of bounded edges and bytes.

    Raises:
        CaptureUnavailable: even small it has too many bytes.
    """
    from PIL import Image  # noqa: PLC0415 - most daemons never need it

    with Image.open(io.BytesIO(data)) as opened:
        image = opened.convert("RGB")
    for edge in (limits.CROP_EDGE_MAX, limits.CROP_EDGE_MAX // 2, limits.CROP_EDGE_MAX // 4):
        image.thumbnail((edge, edge))
        out = io.BytesIO()
        image.save(out, format="PNG", optimize=False)
        if out.tell() <= limits.CROP_BYTES_MAX:
            return out.getvalue()
    raise CaptureUnavailable("the picture has too many bytes", details={"reason": "memory"})
