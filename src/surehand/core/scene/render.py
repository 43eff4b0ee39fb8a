"""The text form of a scene (spec §8.5): what a model reads.

One line per element, two spaces per depth:

    [e17] button "Save" value="…" label="…" desc="…" in="…" disabled focused chars=9000 at=10,20,80,24

The first line is the window, with its application, surface and generation. What has its default is left out. Promises
the same bytes for the same scene; no value of a secret; names from the screen only inside quotes, where they cannot
end the quote, the line, or imitate anything outside; at most the asked number of elements and `RENDER_BYTES_MAX`
bytes, and exactly one last line saying how many elements are not shown if any are not.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from surehand import limits
from surehand.core.scene.context import contexts_of
from surehand.core.scene.describe import quote, token
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.prune import Shown, prune
from surehand.core.scene.rows import ACTIVE_CAPABILITIES, TEXT_ROLES
from surehand.core.scene.tree import Memo
from surehand.errors import TargetNotFound
from surehand.model.record import Record, check_range, check_text
from surehand.model.scene import Node, Scene

OMISSION: Final = "… "
_WORD: Final = re.compile(r"[A-Za-z0-9._:/-]{1,256}")
#: States worth a word, in the order they are written. Absence of the word is the default.
_STATE_WORDS: Final = (
    ("checked", "checked"),
    ("indeterminate", "mixed"),
    ("pressed", "pressed"),
    ("selected", "selected"),
    ("expanded", "expanded"),
    ("collapsed", "collapsed"),
    ("focused", "focused"),
    ("modal", "modal"),
    ("busy", "busy"),
    ("required", "required"),
    ("invalid", "invalid"),
    ("readonly", "readonly"),
)
_STATE_NAMES: Final = frozenset(state for state, _ in _STATE_WORDS)
_MENUS: Final = frozenset({"menu", "menubar", "menuitem"})
_WORDY: Final = frozenset(["button", "menu", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "togglebutton"])
#: Roles that nobody expects to be enabled.
_PASSIVE: Final = TEXT_ROLES - {"text"} | {"filler", "group", "icon", "image", "pane", "statusbar", "window"}


class RenderOptions(Record, frozen=True, kw_only=True):
    """What of a scene to show: at most `nodes_max` elements, of the element `within` only, with places if `bounds`.

    The descriptions of named buttons, tabs and menu items, which mostly repeat the name at length, only come with
    `descriptions`.
    """

    nodes_max: int = limits.RENDER_NODES_DEFAULT
    bounds: bool = False
    descriptions: bool = False
    within: str | None = None

    def __post_init__(self) -> None:
        check_range("nodes_max", self.nodes_max, 1, limits.RENDER_NODES_MAX)
        if self.within is not None:
            check_text("within", self.within, limits.IDENTIFIER_CHARS_MAX, empty=False)


DEFAULTS: Final = RenderOptions()


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """A scene in words.

    `keys[i]` is the label of `lines[i]`; the window's line, which is first, and the omission marker, which is last,
    have the keys "" and "…". `omitted` elements are not shown.
    """

    lines: tuple[str, ...]
    keys: tuple[str, ...]
    omitted: int

    @property
    def text(self) -> str:
        """Return the lines as one text without a final newline."""
        return "\n".join(self.lines)


_RENDERINGS: Final[Memo[Scene, dict[RenderOptions, Rendering]]] = Memo()
MARKER_KEY: Final = "…"


def render(scene: Scene, options: RenderOptions = DEFAULTS) -> Rendering:
    """Return the scene's text form.

    Raises:
        TargetNotFound: `within` is not in the scene.
    """
    known = _RENDERINGS.get(scene, lambda _: {})
    found = known.get(options)
    if found is None:
        found = known[options] = _render(scene, options)
    return found


def render_text(scene: Scene, options: RenderOptions = DEFAULTS) -> str:
    """Return the text of the scene's text form."""
    return render(scene, options).text


def _render(scene: Scene, options: RenderOptions) -> Rendering:
    within = 0
    if options.within is not None:
        found = index_of_label(scene, options.within)
        if found is None:
            raise TargetNotFound(
                f"{options.within} is not in this scene",
                fix="observe again and use a label of that scene",
                details={"element": options.within},
            )
        within = found
    shown = prune(scene.tree, within)
    # The window's own line stands for the top of its tree, and not for the top of a part of it.
    first = 0 if within else 1
    lines_max = options.nodes_max + 1 - first
    lines = [_window_line(scene)]
    keys = [""]
    size = _size(lines[0])
    for which in range(first, len(shown.places)):
        if len(lines) == lines_max:
            break
        line = _line(scene, shown, which, options)
        size += 1 + _size(line)
        if size > limits.RENDER_BYTES_MAX:
            break
        lines.append(line)
        keys.append(scene.targets[shown.places[which]].label)
    omitted = max(0, len(shown.places) - first) - len(lines) + 1
    if omitted:
        omitted = _mark(lines, keys, omitted)
    return Rendering(lines=tuple(lines), keys=tuple(keys), omitted=omitted)


def _mark(lines: list[str], keys: list[str], omitted: int) -> int:
    """End with the omission marker, leaving out more elements until it fits; return how many are."""
    size = sum(map(_size, lines)) + len(lines) - 1
    while True:
        marker = f"{OMISSION}{omitted} more elements"
        if size + 1 + _size(marker) <= limits.RENDER_BYTES_MAX or len(lines) == 1:
            break
        size -= 1 + _size(lines.pop())
        keys.pop()
        omitted += 1
    lines.append(marker)
    keys.append(MARKER_KEY)
    return omitted


def _size(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-8"))


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else quote(text)


def _window_line(scene: Scene) -> str:
    """Return the first line; it ends in the generation, which is all that changes of it in most diffs."""
    nodes = scene.tree.nodes
    words = [f"[{scene.targets[0].label}]"] if nodes else []
    node = nodes[0] if nodes else None
    words.append(token(node.role if node is not None else scene.surface.role))
    words.append(quote((node.name if node is not None else "") or scene.surface.title))
    words += [f"app={_word(scene.provenance.app)}", f"surface={_word(scene.surface.surface_id)}"]
    if not scene.tree.complete:
        words.append("incomplete")
    words.append(f"generation={scene.generation}")
    return " ".join(words)


def _line(scene: Scene, shown: Shown, which: int, options: RenderOptions) -> str:
    place, over = shown.places[which], shown.overs[which]
    node = scene.tree.nodes[place]
    words = [f"{'  ' * shown.depths[which]}[{scene.targets[place].label}] {token(node.role)}"]
    if node.name:
        words.append(quote(node.name))
    value = None if node.secret else node.value
    if value and value != node.name:
        words.append(f"value={quote(value)}")
    label = shown.told.get(place, "")
    if label:
        words.append(f"label={quote(label)}")
    wordy = node.role in _WORDY and node.name and not options.descriptions
    if node.description and node.description != node.name and not wordy:
        words.append(f"desc={quote(node.description)}")
    if not node.capabilities.isdisjoint(ACTIVE_CAPABILITIES):
        row = contexts_of(scene.tree).contexts[place].row
        if row is not None and row.text not in (node.name, label):
            words.append(f"in={quote(row.text)}")
    words += _states(node, scene.tree.nodes[over] if over >= 0 else None)
    if value is not None and node.text_chars is not None and node.text_chars > len(value):
        words.append(f"chars={node.text_chars}")
    if options.bounds:
        words.append("at=" + (",".join(map(str, node.bounds)) if node.bounds is not None else "?"))
    return " ".join(words)


def _states(node: Node, over: Node | None) -> list[str]:
    states = node.states
    words: list[str] = []
    if "enabled" not in states and node.role not in _PASSIVE:
        words.append("disabled")
    # What is inside something hidden, or waits in a closed menu, is hidden too and need not say so.
    waits = over is not None and over.role in _MENUS and "visible" in states
    if "showing" not in states and (over is None or "showing" in over.states) and not waits:
        words.append("hidden")
    if not states.isdisjoint(_STATE_NAMES):
        words += [word for state, word in _STATE_WORDS if state in states]
    if node.secret:
        words.append("secret")
    if node.incomplete:
        words.append("incomplete")
    return words
