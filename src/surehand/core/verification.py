"""Whether what was expected is true now, and what may be said of it (spec §9).

`evaluate` compares an expectation with one reading: it holds, fails, or cannot be told. `judge` adds time: verified as
soon as it holds; contradicted only when the budget is over, the application had acknowledged, and the same reading has
contradicted for `VERIFY_STABLE_MS`; unreadable in every other case, and then the outcome is unknown.

Promises that nothing is verified but what was read back: that something changed verifies nothing; that half a text
never proves what the other half lacks; that an element that cannot be read contradicts nothing; and that the value of
a secret never comes here (the adapter compares it and sends a boolean).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, NamedTuple

import msgspec

from surehand import limits
from surehand.core.scene.identity import hash_texts
from surehand.core.scene.query import check_query, check_states, find
from surehand.core.scene.tree import index_of
from surehand.errors import AmbiguousTarget, InvalidRequest, TargetNotFound
from surehand.model.actions import (
    Action,
    Expand,
    Focus,
    Paste,
    ScrollIntoView,
    SelectOption,
    SelectText,
    SetValue,
    Toggle,
    TypeText,
    Window,
)
from surehand.model.query import Query
from surehand.model.record import tag_of
from surehand.model.scene import Node, Scene
from surehand.model.verification import (
    AllOf,
    AnyOf,
    Appears,
    Disappears,
    NoVerification,
    StateIs,
    TextContains,
    TitleContains,
    UrlContains,
    ValueIs,
    Verification,
)

EVIDENCE_DOMAIN: Final = "surehand/evidence/v1"

Answer = Literal["holds", "fails", "unreadable", "not_asked"]
Judgement = Literal["verified", "contradicted", "unreadable", "pending", "not_asked"]

#: Roles whose value is a number, so that 3, 3.0 and 3.00 are one value.
_NUMBER_ROLES: Final = frozenset({"progressbar", "scrollbar", "slider", "spinbutton", "split"})
#: Toolkits differ in which of the two they give a button that stays down.
_DOWN_ROLES: Final = frozenset({"switch", "togglebutton"})
_EXPANDABLE: Final = frozenset({"collapsed", "expandable", "expanded"})


class OptionSelected(msgspec.Struct, frozen=True, kw_only=True, tag="option_selected", tag_field="kind"):
    """Default of `select_option` with a name: the target shows that option, or holds it selected."""

    option: str


class SelectionIs(msgspec.Struct, frozen=True, kw_only=True, tag="selection", tag_field="kind"):
    """Default of `select_text`: the selection, or the caret for length 0, is where it was asked for."""

    start: int
    length: int


Expectation = Verification | OptionSelected | SelectionIs


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was read at one moment. None means that it was not, or could not be, read.

    Args:
        target: `alive` with `node`; `gone` when proven dead; `unread`; `none` where the action has no element.
        node: The target as read.
        text: The target's whole text, where it was asked for (see `needs_text`).
        selection: The target's selection as (start, length).
        secret_equal: The adapter's answer for a secret target.
        scenes: The application's windows.
        complete: Whether `scenes` are all of them, wholly read; otherwise what is not there proves nothing.
        surface: Whether the target's window is there.
        surface_states: The window's states.
    """

    target: Literal["alive", "gone", "unread", "none"] = "none"
    node: Node | None = None
    text: str | None = None
    selection: tuple[int, int] | None = None
    secret_equal: bool | None = None
    scenes: tuple[Scene, ...] = ()
    complete: bool = False
    surface: Literal["there", "gone", "unread"] = "unread"
    surface_states: frozenset[str] | None = None
    title: str | None = None
    url: str | None = None


class Check(NamedTuple):
    """One comparison: what kind, its answer, and what was seen (observed data; never of a secret)."""

    kind: str
    answer: Answer
    seen: str | None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one reading, its comparisons, and a hash of what was seen that tells no content."""

    answer: Answer
    checks: tuple[Check, ...]
    evidence: str


# --- what is expected ------------------------------------------------------------------------------------------------


def default_expectation(action: Action, node: Node | None) -> Expectation:
    """Return what an action naturally leads to on a target; `NoVerification` where nothing natural can be read back.

    `invoke`, `perform`, `click` and the other input actions have no natural effect of their own: what they lead to is
    the caller's knowledge, and that something changed is no proof.
    """
    build = _DEFAULTS.get(type(action))
    return NoVerification() if build is None else build(action, node)


def _set(action: SetValue, node: Node | None) -> Expectation:
    # What a secret field holds is compared only with an enrolled secret: an answer about any other text would be an
    # answer to a guess. So a plain text is set there, and not read back.
    return ValueIs() if action.secret_ref is not None or node is None or not node.secret else NoVerification()


def _toggled(action: Toggle, node: Node | None) -> Expectation:
    to = action.to
    if node is None or node.role not in _DOWN_ROLES:
        return StateIs(states={"checked": to})
    if to:
        return AnyOf(parts=(StateIs(states={"checked": True}), StateIs(states={"pressed": True})))
    return StateIs(states={"checked": False, "pressed": False})


def _typed(action: TypeText | Paste, node: Node | None) -> Expectation:
    if isinstance(action, TypeText) and action.secret_ref is not None:
        # Compared whole, where the field holds nothing else; what is in it does not come here.
        return ValueIs() if action.clear and not action.submit else NoVerification()
    # A field that is sent off is empty or gone afterwards; a secret can only be compared whole; a canvas tells nothing.
    if node is None or node.secret or (node.value is None and node.text_chars is None):
        return NoVerification()
    if isinstance(action, TypeText):
        if action.submit:
            return NoVerification()
        if not action.text:
            return ValueIs(equals="") if action.clear else NoVerification()
    return TextContains(contains=action.text) if action.text else NoVerification()


def _expanded(action: Expand, node: Node | None) -> Expectation:
    # Some toolkits never say whether a thing is open; then nothing can be read back.
    tells = node is None or not node.states.isdisjoint(_EXPANDABLE)
    return StateIs(states={"expanded": action.to}) if tells else NoVerification()


def _selected(action: SelectOption, _: Node | None) -> Expectation:
    return StateIs(states={"selected": True}) if action.option is None else OptionSelected(option=action.option)


def _window(action: Window, _: Node | None) -> Expectation:
    if action.op == "close":
        return Disappears()
    if action.op == "minimize":
        return StateIs(states={"iconified": True})
    return StateIs(states={"active": True}) if action.op == "focus" else NoVerification()


_DEFAULTS: Final[dict[type, Callable[[Any, Node | None], Expectation]]] = {
    SetValue: _set,
    Toggle: _toggled,
    Expand: _expanded,
    SelectOption: _selected,
    SelectText: lambda action, _: SelectionIs(start=action.start, length=action.length),
    Focus: lambda _, __: StateIs(states={"focused": True}),
    ScrollIntoView: lambda _, __: StateIs(states={"showing": True}),
    TypeText: _typed,
    Paste: _typed,
    Window: _window,
}


def check_expectation(expectation: Verification) -> None:
    """Refuse an expectation that could never be evaluated; called before anything is done.

    Raises:
        InvalidRequest, TooLarge: an unknown state or role, or a pattern RE2 does not take.
    """
    if isinstance(expectation, AllOf | AnyOf):
        for part in expectation.parts:
            check_expectation(part)
    elif isinstance(expectation, StateIs):
        check_states(expectation.states)
    elif isinstance(expectation, Appears | Disappears) and expectation.query is not None:
        check_query(expectation.query)


def needs_text(expectation: Expectation, node: Node | None) -> bool:
    """Return whether the target's whole text must be read, its value being only the beginning of it."""
    if isinstance(expectation, AllOf | AnyOf):
        return any(needs_text(part, node) for part in expectation.parts)
    return isinstance(expectation, ValueIs | TextContains) and node is not None and not node.secret and _is_cut(node)


def needs_scenes(expectation: Expectation) -> bool:
    """Return whether the application's windows must be read, and not the target alone."""
    if isinstance(expectation, AllOf | AnyOf):
        return any(map(needs_scenes, expectation.parts))
    return isinstance(expectation, Appears | OptionSelected) or (
        isinstance(expectation, Disappears) and expectation.query is not None
    )


def needs_target(expectation: Expectation) -> bool:
    """Return whether the target itself must be read, or only what the application's windows show."""
    if isinstance(expectation, AllOf | AnyOf):
        return any(map(needs_target, expectation.parts))
    return not isinstance(expectation, Appears | Disappears | TitleContains) or (
        isinstance(expectation, Disappears) and expectation.query is None
    )


def _is_cut(node: Node) -> bool:
    if node.text_chars is not None:
        return node.text_chars > len(node.value or "")
    return node.value is not None and len(node.value.encode("utf-8", "replace")) >= limits.FIELD_BYTES_STORED_MAX


# --- one reading -----------------------------------------------------------------------------------------------------


def evaluate(
    expectation: Expectation, action: Action, reading: Reading, *, target: str = "", salt: str = ""
) -> Verdict:
    """Return whether the expectation holds on what was read.

    Args:
        expectation: What the caller or the default expects.
        action: The action, for `ValueIs` without a value.
        reading: What was read.
        target: The target's handle, for expectations about what is around it.
        salt: Secret bytes in hex for the evidence hash, so that a short value cannot be guessed back.
    """
    checks = _Evaluation(action, reading, target)
    answer = checks.of(expectation)
    seen: list[object] = [salt, *([check.kind, check.answer, check.seen] for check in checks.made)]
    return Verdict(
        answer=answer,
        checks=tuple(check._replace(seen=_short(check.seen)) for check in checks.made),
        evidence=hash_texts(EVIDENCE_DOMAIN, seen),
    )


def _short(seen: str | None) -> str | None:
    return (
        seen
        if seen is None or len(seen) <= limits.VERIFY_SEEN_CHARS_MAX
        else seen[: limits.VERIFY_SEEN_CHARS_MAX - 1] + "…"
    )


def texts_equal(node: Node, seen: str, expected: str) -> bool:
    """Return whether a value is the expected one: exactly, or as a number where the element holds a number."""
    if seen == expected:
        return True
    if node.role not in _NUMBER_ROLES:
        return False
    one, other = _number(seen), _number(expected)
    return one is not None and one == other


def _number(text: str) -> Decimal | None:
    if len(text) > 64:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


class _Evaluation:
    """Walks one expectation and keeps what it compared."""

    def __init__(self, action: Action, reading: Reading, target: str) -> None:
        self.made: list[Check] = []
        self._action = action
        self._reading = reading
        self._target = target

    def of(self, expectation: Expectation) -> Answer:
        if isinstance(expectation, NoVerification):
            return "not_asked"
        if isinstance(expectation, AllOf | AnyOf):
            answers = {self.of(part) for part in expectation.parts} - {"not_asked"}
            if not answers:
                return "not_asked"
            order = (
                ("fails", "unreadable", "holds") if isinstance(expectation, AllOf) else ("holds", "unreadable", "fails")
            )
            return next(answer for answer in order if answer in answers)
        answer, seen = self._ask(expectation)
        self.made.append(Check(tag_of(type(expectation)), answer, seen))
        return answer

    def _ask(self, expectation: Expectation) -> tuple[Answer, str | None]:
        ask = self._ASK.get(type(expectation))
        if ask is None:
            raise InvalidRequest(f"no such verification: {type(expectation).__name__}")
        return ask(self, expectation)

    def _alive(self) -> Node | None:
        return self._reading.node if self._reading.target == "alive" else None

    def _value(self, expectation: ValueIs) -> tuple[Answer, str | None]:
        node = self._alive()
        if node is None:
            return "unreadable", None
        expected = expectation.equals
        if expected is None and isinstance(self._action, SetValue):
            expected = self._action.value
        if node.secret or expected is None:
            equal = self._reading.secret_equal
            return ("unreadable" if equal is None else "holds" if equal else "fails"), None
        if self._reading.text is not None:
            seen, whole = self._reading.text, True
        elif node.value is not None:
            seen, whole = node.value, not _is_cut(node)
        else:
            return "unreadable", None
        if not whole:
            # The beginning can contradict; it cannot prove.
            return ("unreadable" if expected.startswith(seen) else "fails"), seen
        return ("holds" if texts_equal(node, seen, expected) else "fails"), seen

    def _text(self, expectation: TextContains) -> tuple[Answer, str | None]:
        node = self._alive()
        if node is None or node.secret:
            return "unreadable", None
        seen = self._reading.text if self._reading.text is not None else node.value
        if seen is None:
            # The name of a field says what goes into it, not what is in it.
            if "editable" in node.states or node.text_chars:
                return "unreadable", None
            seen = node.name
        elif expectation.contains not in seen and self._reading.text is None and _is_cut(node):
            return "unreadable", seen
        return ("holds" if expectation.contains in seen else "fails"), seen

    def _states(self, expectation: StateIs) -> tuple[Answer, str | None]:
        states = expectation.states
        node = self._alive()
        present = node.states if node is not None else None
        if self._reading.target == "none":
            present = self._reading.surface_states
        if present is None:
            return "unreadable", None
        seen = " ".join(name if name in present else f"not-{name}" for name in sorted(states))
        return ("holds" if all((name in present) == wanted for name, wanted in states.items()) else "fails"), seen

    def _presence(self, expectation: Appears | Disappears) -> tuple[Answer, str | None]:
        if expectation.query is None:
            return self._target_gone()
        count, certain = self._count(expectation.query)
        if isinstance(expectation, Appears):
            return ("holds" if count else "fails" if certain else "unreadable"), str(count)
        return ("fails" if count else "holds" if certain else "unreadable"), str(count)

    def _target_gone(self) -> tuple[Answer, str | None]:
        reading = self._reading
        # Its window being gone takes the element with it.
        if reading.surface == "gone" or reading.target == "gone":
            return "holds", "gone"
        if reading.target == "alive" and reading.node is not None:
            hidden = reading.node.states.isdisjoint({"showing", "visible"})
            return ("holds", "hidden") if hidden else ("fails", "there")
        if reading.target == "none" and reading.surface == "there":
            return "fails", "there"
        return "unreadable", None

    def _count(self, query: Query) -> tuple[int, bool]:
        """Return how many elements match, and whether there are certainly no others."""
        count, certain = 0, self._reading.complete and all(scene.tree.complete for scene in self._reading.scenes)
        for scene in self._reading.scenes:
            try:
                count += len(find(scene, query).indexes)
            except TargetNotFound as error:
                # Without the one element the query relates to, nothing relates to it; a label says nothing elsewhere.
                certain = certain and "element" not in error.details
            except AmbiguousTarget:
                certain = False
        return count, certain

    def _option(self, expectation: OptionSelected) -> tuple[Answer, str | None]:
        option = expectation.option
        node = self._alive()
        if node is None or node.secret:
            return "unreadable", None
        shown = node.value if node.value is not None else node.name
        if option in (node.value, node.name):
            return "holds", option
        for scene in self._reading.scenes:
            tree = index_of(scene.tree)
            place = tree.by_handle.get(self._target)
            if place is None:
                continue
            for child in range(place + 1, tree.ends[place]):
                chosen = not tree.nodes[child].states.isdisjoint({"selected", "checked"})
                if chosen and _is_called(tree.nodes[child : tree.ends[child]], option):
                    return "holds", option
            return "fails", shown
        return "unreadable", shown

    def _selection(self, expectation: SelectionIs) -> tuple[Answer, str | None]:
        selection = self._reading.selection
        if selection is None:
            return "unreadable", None
        wanted = (expectation.start, expectation.length)
        return ("holds" if selection == wanted else "fails"), f"{selection[0]}+{selection[1]}"

    def _title(self, expectation: TitleContains) -> tuple[Answer, str | None]:
        return _contains(expectation.contains, self._reading.title)

    def _url(self, expectation: UrlContains) -> tuple[Answer, str | None]:
        return _contains(expectation.contains, self._reading.url)

    _ASK: Final[dict[type, Callable[[Any, Any], tuple[Answer, str | None]]]] = {
        ValueIs: _value,
        TextContains: _text,
        StateIs: _states,
        Appears: _presence,
        Disappears: _presence,
        OptionSelected: _option,
        SelectionIs: _selection,
        TitleContains: _title,
        UrlContains: _url,
    }


def _is_called(item: Sequence[Node], option: str) -> bool:
    """Return whether an item, given with what is in it, is this option.

    GTK names no list item, and gives tabs the name of their kind: there the first text inside is what it is called.
    Elsewhere a text inside may belong to another item.
    """
    if item[0].name == option:
        return True
    if item[0].name and item[0].role != "tab":
        return False
    return next((node.name for node in item[1:] if node.name), None) == option


def _contains(wanted: str, text: str | None) -> tuple[Answer, str | None]:
    if text is None:
        return "unreadable", None
    return ("holds" if wanted in text else "fails"), text


# --- over time -------------------------------------------------------------------------------------------------------


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """A verification under way: since when, and since when it has been contradicted by one and the same reading."""

    started_ms: int
    contradicted_since_ms: int | None = None
    evidence: str = ""


def judge(
    watch: Watch, verdict: Verdict, *, now_ms: int, budget_ms: int, acknowledged: bool
) -> tuple[Watch, Judgement]:
    """Return the watch from here on, and what may be said now.

    Args:
        watch: The state so far; `Watch(started_ms=now)` at the start.
        verdict: What the newest reading gave.
        now_ms: When it was read.
        budget_ms: How long to look; at least the time within which the toolkit runs the handler.
        acknowledged: Whether the application answered that it is done. A handler that may still run is never failed.
    """
    if verdict.answer == "not_asked":
        return watch, "not_asked"
    if verdict.answer == "holds":
        return watch, "verified"
    since = None
    if verdict.answer == "fails":
        same = watch.contradicted_since_ms is not None and watch.evidence == verdict.evidence
        since = watch.contradicted_since_ms if same else now_ms
    watch = Watch(started_ms=watch.started_ms, contradicted_since_ms=since, evidence=verdict.evidence)
    if now_ms - watch.started_ms < budget_ms:
        return watch, "pending"
    if since is not None and acknowledged and now_ms - since >= limits.VERIFY_STABLE_MS:
        return watch, "contradicted"
    return watch, "unreadable"


def describe_checks(verdict: Verdict) -> list[dict[str, Any]]:
    """Return the comparisons as observed data for an error or a receipt's companion."""
    return [
        {"kind": check.kind, "answer": check.answer, **({"seen": check.seen} if check.seen is not None else {})}
        for check in verdict.checks
    ]
