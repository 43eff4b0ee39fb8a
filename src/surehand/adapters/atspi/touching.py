"""Whether a click at an element's place would reach it, or what lies on it in the same window (case C30).

Chromium knows what its page shows at a place and is asked. GTK 3 and Qt answer that question with whichever child
comes first, so there, and in GTK 4, what is painted later and takes clicks counts as being on top. It only refuses.
"""

from __future__ import annotations

from typing import Final

from surehand import limits
from surehand.adapters.atspi import calls
from surehand.adapters.atspi.acting_plan import Sight, profile_for
from surehand.adapters.atspi.calls import ROOT_PATH, Channel
from surehand.core.scene.covering import TAKES_CLICKS, covering
from surehand.core.scene.tree import index_of
from surehand.errors import StaleTarget
from surehand.model.scene import Node
from surehand.ports import Attempt

_SCREEN: Final = 0


async def refuse_covered(sight: Sight, attempt: Attempt) -> None:
    """Refuse an element on which something else lies at the place of a click.

    Raises:
        StaleTarget: naming what lies there.
    """
    if attempt.node is None or attempt.point is None or attempt.surface.native_window is not None:
        return  # a window of which only the window system tells has nothing in it
    if profile_for(attempt.surface).family == "chromium":
        over = await _told(sight, attempt.node, attempt.point)
    else:
        over = await _painted(sight, attempt.surface.surface_id, attempt.node.handle, attempt.point)
    if over is not None:
        raise StaleTarget(
            "something else in the window lies on the element",
            fix="close what covers it or scroll, or use an action that needs no place",
            details={"what": "covered"},
            observed={"covered_by": over[: limits.NAME_CHARS_MAX]},
        )


async def _painted(sight: Sight, surface_id: str, handle: str, place: tuple[int, int]) -> str | None:
    tree = await sight.read(surface_id)
    index = index_of(tree).by_handle.get(handle)
    # What is gone is the fence's to refuse.
    over = None if index is None else covering(tree, index, place, TAKES_CLICKS)
    return None if over is None else f"{over.role} {over.name}"


async def _told(sight: Sight, node: Node, place: tuple[int, int]) -> str | None:
    """Ask what is at a place: the element or something in it.

    An answer that names what the element is in means something there that has no object of its own, such as an empty
    layer of a page. Text and pictures may be a part of what they are in.
    """
    connection, destination, path = sight.object_of(node.handle)
    channel = Channel(connection, destination)
    above = await _chain(channel, path)
    if not above:
        return None  # gone; the fence knows
    question = channel.ask(above[-1], calls.COMPONENT, "GetAccessibleAtPoint", "iiu", *place, _SCREEN)
    found = calls.reference((await channel.call_many([question]))[0])
    if found is None or path in await _chain(channel, found[1]):
        return None
    if found[1] in above and node.role not in TAKES_CLICKS:
        return None
    names = [channel.get(found[1], calls.ACCESSIBLE, "Name"), channel.ask(found[1], calls.ACCESSIBLE, "GetRoleName")]
    name, role = map(calls.string, await channel.call_many(names))
    return f"{role or ''} {name or ''}".strip()


async def _chain(channel: Channel, path: str) -> list[str]:
    """Return an object and what it is in, up to its window."""
    chain: list[str] = []
    while len(chain) < limits.SCENE_DEPTH_MAX and path not in chain:
        parent = calls.reference((await channel.call_many([channel.get(path, calls.ACCESSIBLE, "Parent")]))[0])
        if parent is None or parent[1] == ROOT_PATH:
            return chain if parent is None else [*chain, path]
        chain.append(path)
        path = parent[1]
    return chain
