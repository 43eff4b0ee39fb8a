"""What stands at a place of a picture, so that a click there can reach the element instead of the pixels (spec §3.3).

Promises that the element it names is the one that the picture showed at that place, that it is there now, and means
what it meant then. It says nothing of what a click would do, and nothing is done.
"""

from __future__ import annotations

from typing import Any, Final

from surehand.core.scene.covering import covering
from surehand.core.scene.tree import index_of
from surehand.errors import CaptureUnavailable
from surehand.model.scene import Scene
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.shown import Meaning, still_means
from surehand.runtime.sights import check_same, check_window, element_at, inside
from surehand.runtime.views import target_value

#: What a press does is all that a plain click on it could do. A click on a text, list or slider means its place too.
PRESSABLE: Final = frozenset(
    [
        "button",
        "checkbox",
        "link",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "radio",
        "switch",
        "tab",
        "togglebutton",
    ]
)
#: What may lie on a pressable element without being anything of its own.
_FACE: Final = frozenset(["filler", "group", "icon", "image", "label", "pane", "unknown"])


async def at(parts: Parts, session: Session, args: p.At) -> dict[str, Any]:
    """Return the window and the element at a place of a picture; `pressable` says whether invoking it is a click.

    Raises:
        StaleTarget: the picture is old, its window moved, or something else is there now.
        TargetNotFound: no window that can be read is there.
    """
    sight = session.sights.find(args.point.capture_id, parts.clock.monotonic_ms())
    place = sight.place(args.point)
    surface_id, stood = sight.window_at(place)
    seen = sight.scenes[surface_id]
    screen = desk_of(session).screen
    if screen is None:
        raise CaptureUnavailable("this desktop gives no pictures", fix="surehand doctor")
    check_window(stood, await screen.place(seen.surface))
    now = await parts.scenes.observe(session, surface_id)
    check_same(seen, now, place)
    value: dict[str, Any] = {"surface": surface_id}
    smallest = element_at(seen, place)
    if not smallest:
        return value  # the window itself, or nothing that says what it is
    index, pressable = _pressed(seen, smallest, place)
    meaning = Meaning(surface_id, seen.tree.nodes[index], seen.targets[index])
    value["element"] = target_value(now, still_means(meaning, now))
    value["pressable"] = pressable
    session.shown.match(now, index_of(now.tree).by_handle[meaning.node.handle])
    return value


def _pressed(scene: Scene, index: int, place: tuple[int, int]) -> tuple[int, bool]:
    """Return what a click at the place presses: the element, or what it is the face of; and whether that is certain."""
    at_first = index
    if covering(scene.tree, index, place) is not None:
        return at_first, False  # a click reaches what is on top, whatever that is
    while index > 0:
        node = scene.tree.nodes[index]
        if node.role in PRESSABLE and "invoke" in node.capabilities:
            fits = node.bounds is not None and inside(node.bounds, place)
            return (index, True) if fits else (at_first, False)
        if node.role not in _FACE:
            break
        index = scene.tree.parents[index]
    return at_first, False
