"""The text form of a scene (spec §8.5): what a model reads.

Every element is a line, two spaces per depth:

    [e17] button "Save" value="…" label="…" desc="…" in="…" disabled focused chars=9000 at=10,20,80,24 hidden

and lines that belong together are joined (`packing.py`). The first line is the window, with its application, surface
and generation. What has its default is left out. Promises the same bytes for the same scene; no value of a secret;
names from the screen only inside quotes, where they cannot end the quote, the line, or imitate anything outside; at
most the asked number of elements and tokens, and `RENDER_BYTES_MAX` bytes; and that every element that is worth showing
is shown or counted where it would stand: after an element, or in one last line.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from surehand import limits
from surehand.core.scene.choose import ranked, unseen_in, windowed
from surehand.core.scene.context import contexts_of
from surehand.core.scene.describe import quote, token
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.packing import HIDDEN, OMISSION, Part, join
from surehand.core.scene.prune import Shown, prune, tells_its_row
from surehand.core.scene.rows import ACTIVE_CAPABILITIES, CELL_ROLES, TEXT_ROLES
from surehand.core.scene.tokens import tokens
from surehand.core.scene.tree import Memo
from surehand.errors import TargetNotFound
from surehand.model.record import Record, check_range, check_text
from surehand.model.scene import Node, Provenance, Scene, SceneTarget, Surface, Tree

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
#: Of the budgets between nothing and everything this many are tried.
_STEPS: Final = 64
#: Tokens of the longest count of what is left out.
_GAP_TOKENS: Final = 20
_WORDY: Final = frozenset(["button", "menu", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "togglebutton"])
#: Roles that nobody expects to be enabled.
_PASSIVE: Final = TEXT_ROLES - {"text"} | {"filler", "group", "icon", "image", "pane", "statusbar", "window"}


class RenderOptions(Record, frozen=True, kw_only=True):
    """What of a scene to show: at most `nodes_max` elements, of the element `within` only, with places if `bounds`.

    With `tokens_max` (as `tokens.py` counts them) what matters most is shown and the rest counted. The descriptions of
    named buttons, tabs and menu items, which mostly repeat the name at length, only come with `descriptions`.
    """

    nodes_max: int = limits.RENDER_NODES_DEFAULT
    tokens_max: int | None = None
    bounds: bool = False
    descriptions: bool = False
    within: str | None = None

    def __post_init__(self) -> None:
        check_range("nodes_max", self.nodes_max, 1, limits.RENDER_NODES_MAX)
        if self.tokens_max is not None:
            check_range("tokens_max", self.tokens_max, limits.RENDER_TOKENS_MIN, limits.RENDER_TOKENS_MAX)
        if self.within is not None:
            check_text("within", self.within, limits.IDENTIFIER_CHARS_MAX, empty=False)


DEFAULTS: Final = RenderOptions()


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """A scene in words.

    `text` is what is read. `lines` are the same with a line for each element, and `keys[i]` is the label of `lines[i]`;
    the window's line, which is first, and a last omission marker have the keys "" and "…". `omitted` elements are
    counted and not shown.
    """

    text: str
    lines: tuple[str, ...]
    keys: tuple[str, ...]
    omitted: int


#: What a text depends on beside its tree. Not the scene, which would keep its tree, and so itself, for ever.
_Facts = tuple[tuple[SceneTarget, ...], int, Provenance, Surface]
#: By tree, which every look at an unchanged window shares.
_RENDERINGS: Final[Memo[Tree, dict[tuple[str, RenderOptions], tuple[_Facts, Rendering]]]] = Memo()
MARKER_KEY: Final = "…"


def render(scene: Scene, options: RenderOptions = DEFAULTS) -> Rendering:
    """Return the scene's text form.

    Raises:
        TargetNotFound: `within` is not in the scene.
    """
    known = _RENDERINGS.get(scene.tree, lambda _: {})
    key = (scene.session, options)
    found = known.get(key)
    facts = (scene.targets, scene.generation, scene.provenance, scene.surface)
    if found is None or found[0][0] is not scene.targets or found[0][1:] != facts[1:]:
        found = known[key] = (facts, _render(scene, options))
    return found[1]


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
    writer = _Writer(scene, prune(scene.tree, within), options)
    # The window's own line stands for the top of its tree, and not for the top of a part of it.
    # A part that is asked for is not cut in its turn.
    worth = range(len(writer.shown.places)) if within else windowed(scene, writer.shown)
    chosen = [which for which in worth if which or within]
    if options.tokens_max is not None:
        return writer.within_budget(chosen, options.tokens_max)
    lines_max = options.nodes_max - (0 if within else 1)
    return writer.rendering(writer.fitting(chosen[:lines_max]))


def marker(omitted: int) -> str:
    """Return how the text form says that so many elements are not shown where it stands."""
    return f"{OMISSION}{omitted} more elements: use query or scope"


class _Writer:
    """Writes lines of one scene's shown elements, each once."""

    def __init__(self, scene: Scene, shown: Shown, options: RenderOptions) -> None:
        self.scene = scene
        self.shown = shown
        self._options = options
        self._parts: dict[int, Part] = {}
        self._head = _window_line(scene, options.tokens_max)
        self._seen = frozenset(shown.places)
        #: The first that has a line of its own.
        self._first = 0 if options.within is not None and shown.places[:1] != [0] else 1

    def part(self, which: int) -> Part:
        """Return an element in words, without what is left out after it."""
        found = self._parts.get(which)
        if found is None:
            found = self._parts[which] = _part(self.scene, self.shown, self._seen, which, self._options)
        return found

    def fitting(self, chosen: list[int]) -> list[int]:
        """Return the first of `chosen` that fit into `RENDER_BYTES_MAX` with what has to be counted."""
        # Joining lines makes none longer.
        size = _size(self._head) + 1 + _size(marker(len(self.shown.places)))
        before = self._first - 1
        for count, which in enumerate(chosen):
            size += 1 + _size(self.part(which).line)
            if which != before + 1:
                size += 1 + _size(marker(which - before))
            if size > limits.RENDER_BYTES_MAX:
                return chosen[:count]
            before = which
        return chosen

    def rendering(self, chosen: list[int]) -> Rendering:
        """Return the text that shows these elements and counts the others where they would stand."""
        parts: list[Part] = []
        omitted = 0
        total = len(self.shown.places)
        left = 0
        for at, which in enumerate(chosen):
            part = self.part(which)
            after = chosen[at + 1] if at + 1 < len(chosen) else total
            left = after - which - 1
            if left and after < total:
                part = part._replace(gap=f" {marker(left)}")
            omitted += left
            parts.append(part)
        if not chosen:
            omitted = left = max(0, total - self._first)
        keys = [self.scene.targets[self.shown.places[which]].label for which in chosen]
        ending = [marker(left)] if left else []
        text = "\n".join([self._head, *(packed.text for packed in join(parts)), *ending])
        return Rendering(
            text=text,
            lines=(self._head, *(part.line for part in parts), *ending),
            keys=("", *keys, *([MARKER_KEY] if left else [])),
            omitted=omitted,
        )

    def within_budget(self, chosen: list[int], tokens_max: int) -> Rendering:
        """Return the text of as many elements as a budget allows, the most telling first.

        Tried are the same choices for every budget, each part of the next, up to the first that is too much: so what a
        smaller budget shows, a larger one shows too.
        """
        nodes_max = self._options.nodes_max - self._first
        if len(chosen) <= nodes_max:
            whole = self.rendering(self.fitting(chosen))
            if tokens(whole.text) <= tokens_max:
                return whole
        order = ranked(self.scene, self.shown, chosen)
        step = max(1, len(order) // _STEPS)
        # Below this no choice can be too much: lines only get shorter by being joined.
        bound = tokens(self._head) + _GAP_TOKENS
        best: list[int] = []
        for count in range(1, min(len(order), nodes_max) + 1):
            bound += tokens(self.part(order[count - 1]).line) + 1 + _GAP_TOKENS
            if bound > tokens_max and count % step:
                continue
            some = sorted(order[:count])
            if bound > tokens_max and tokens(self.rendering(some).text) > tokens_max:
                break
            if count % step == 0:
                best = some
        return self.rendering(self.fitting(best))


def _size(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-8"))


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else quote(text)


def _window_line(scene: Scene, tokens_max: int | None) -> str:
    """Return the first line; it ends in the generation, which is all that changes of it in most diffs.

    The application is called by its file name, which finds it as well as its whole identity does.
    """
    nodes = scene.tree.nodes
    # Under a small budget title and application leave room for each other.
    most = limits.RENDER_FIELD_BYTES_MAX if tokens_max is None else min(limits.RENDER_FIELD_BYTES_MAX, tokens_max // 4)
    words = [f"[{scene.targets[0].label}]"] if nodes else []
    node = nodes[0] if nodes else None
    words.append(token(node.role if node is not None else scene.surface.role))
    words.append(quote((node.name if node is not None else "") or scene.surface.title, most))
    app = short_app(scene.provenance.app)
    words += [f"app={app if _WORD.fullmatch(app) and len(app) <= most else quote(app, most)}"]
    words.append(f"surface={_word(scene.surface.surface_id)}")
    if not scene.tree.complete:
        words.append("incomplete")
    words.append(f"generation={scene.generation}")
    return " ".join(words)


def short_app(key: str) -> str:
    """Return the file name of a proven program or script; anything else as it is."""
    kind, _, path = key.partition(":")
    name = path.rpartition("/")[2]
    return name if kind in {"exe", "script"} and name else key


def _name(text: str) -> str:
    """Return a name without the blanks that a toolkit pads it with; queries do not count them either."""
    return text.strip(" ")


def _part(scene: Scene, shown: Shown, seen: frozenset[int], which: int, options: RenderOptions) -> Part:
    place, over = shown.places[which], shown.overs[which]
    node = scene.tree.nodes[place]
    name = _name(node.name)
    fields = ""
    value = None if node.secret else node.value
    if value and value != node.name:
        fields = f" value={quote(value)}"
    label = shown.told.get(place, "")
    if label:
        fields += f" label={quote(label)}"
    if node.description and node.description not in (node.name, value):
        wordy = node.role in _WORDY and node.name and not options.descriptions
        fields += "" if wordy else f" desc={quote(node.description)}"
    about = _about(scene, seen, place, label)
    tail = _states(node)
    if value is not None and node.text_chars is not None and node.text_chars > len(value):
        tail += f" chars={node.text_chars}"
    if options.bounds:
        tail += " at=" + (",".join(map(str, node.bounds)) if node.bounds is not None else "?")
    if _says_hidden(scene.tree, place, over):
        tail += HIDDEN
    return Part(
        depth=shown.depths[which],
        label=scene.targets[place].label,
        role=token(node.role),
        name=f" {quote(name)}" if name else "",
        fields=fields,
        within=quote(about) if about else None,
        tail=tail,
        gap="",
    )


def _about(scene: Scene, seen: frozenset[int], place: int, label: str) -> str:
    """Return what the row of an element is about, where neither it nor something around it says so."""
    contexts = contexts_of(scene.tree)
    row = contexts.contexts[place].row
    if row is None:
        return ""
    node = scene.tree.nodes[place]
    cell = node.role in CELL_ROLES and isinstance(contexts.row_keys[place], tuple)
    if row.owner == place:
        told = cell or tells_its_row(node)
    else:
        owner = scene.tree.nodes[row.owner]
        by_owner = row.owner in seen and (owner.role in CELL_ROLES or tells_its_row(owner))
        told = not by_owner and not node.capabilities.isdisjoint(ACTIVE_CAPABILITIES)
    return "" if not told or row.text in (node.name, label) else _name(row.text)


def _states(node: Node) -> str:
    states = node.states
    words = [""]
    if "enabled" not in states and node.role not in _PASSIVE:
        words.append("disabled")
    if not states.isdisjoint(_STATE_NAMES):
        words += [word for state, word in _STATE_WORDS if state in states]
    if node.secret:
        words.append("secret")
    if node.incomplete:
        words.append("incomplete")
    return " ".join(words)


def _says_hidden(tree: Tree, place: int, over: int) -> bool:
    """Return whether an element is out of sight and nothing around it says so already."""
    unseen = unseen_in(tree)
    if place not in unseen:
        return False
    if over < 0:
        return True
    # What waits in a closed menu or combo box is there to be opened.
    around = tree.nodes[over]
    waits = around.role == "combobox" or (around.role in _MENUS and "visible" in tree.nodes[place].states)
    return over not in unseen and not waits
