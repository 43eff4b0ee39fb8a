"""Rules proposed from what people approved: said as a rule file that a person reads before it holds.

Nothing here opens anything. What is consequential, what anybody ever refused and what was approved too seldom is told
in comments, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from surehand.core.policy.evaluate import is_interpreter
from surehand.model.events import Event
from surehand.model.record import Record

CLAIMED: Final = "operation.claimed.v1"
REFUSED: Final = "operation.refused.v1"
_SAID_NO: Final = "approval_denied"
#: The default that asks for each change on a shared desktop; the others ask for reasons that a rule should not undo.
_MUTATION: Final = "default.shared-mutation"
_CONSEQUENTIAL: Final = "default.consequential"
_BUILT_IN: Final = "default."


class Habit(Record, frozen=True, kw_only=True):
    """What was approved again and again: one principal, one application, one place, for one reason."""

    principal: str
    app: str
    place: str
    asked_by: str
    actions: tuple[str, ...]
    approved: int
    refused: int

    @property
    def why_not(self) -> str:
        """Why no rule is proposed; empty where one is."""
        if self.refused:
            return f"a person said no {self.refused} times"
        if not self.app:
            return "it is about no application that could be named"
        if is_interpreter(self.app):
            return "its application is an interpreter, which could be anything"
        return _why_asked(self.asked_by)


def _why_asked(rule: str) -> str:
    """Return why a habit does not spare the question of this rule; empty where it may."""
    if rule == _MUTATION:
        return ""
    if rule == _CONSEQUENTIAL:
        return "it has consequences, about which a person is asked each time"
    if rule.startswith(_BUILT_IN):
        return f"{rule} asks for a reason that a habit does not take away"
    return f"your rule {rule} asks, and an allowance takes no question away: narrow that rule"


def habits_of(events: Iterable[Event], *, least: int) -> list[Habit]:
    """Return what was approved at least so often, the commonest first."""
    counts: dict[tuple[str, str, str, str], dict[str, int]] = {}
    refused: dict[tuple[str, str, str], int] = {}
    for event in events:
        payload: dict[str, Any] = event.payload
        where = (event.actor, str(payload.get("app", "")), str(payload.get("place", "")))
        if event.type == REFUSED and payload.get("code") == _SAID_NO:
            refused[where] = refused.get(where, 0) + 1
        elif event.type == CLAIMED and payload.get("approval_id"):
            asked_by = str(payload.get("decision", {}).get("rule", ""))
            actions = counts.setdefault((*where, asked_by), {})
            effect = str(payload.get("effect", ""))
            actions[effect] = actions.get(effect, 0) + 1
    found = [
        Habit(
            principal=principal,
            app=app,
            place=place,
            asked_by=asked_by,
            actions=tuple(sorted(actions)),
            approved=sum(actions.values()),
            refused=refused.get((principal, app, place), 0),
        )
        for (principal, app, place, asked_by), actions in counts.items()
    ]
    return sorted(
        (one for one in found if one.approved >= least), key=lambda one: (-one.approved, one.principal, one.app)
    )


def as_rules(habits: Iterable[Habit]) -> str:
    """Return a rule file that would have spared these questions, with the rest as comments."""
    lines = [
        "# Proposed from what was approved. Read each rule before you keep it: from then on nobody is asked.",
        "version = 1",
    ]
    number = 0
    for habit in habits:
        about = f"{habit.principal} in {habit.app or 'no application'}: {', '.join(habit.actions)}"
        lines += ["", f"# {_on_one_line(about)}", f"# approved {habit.approved} times"]
        if habit.why_not:
            lines.append(f"# no rule is proposed: {_on_one_line(habit.why_not)}")
            continue
        number += 1
        lines += [
            "[[rule]]",
            f'id = "habit-{number}"',
            'effect = "allow"',
            f'reason = "Approved {habit.approved} times before."',
            'covers = ["shared_desktop"]',
            "[rule.match]",
            f"principal = [{_quoted(habit.principal)}]",
            f"app = [{_quoted(habit.app)}]",
            *([f"place = [{_quoted(habit.place)}]"] if habit.place else []),
            f"action = [{', '.join(_quoted(action) for action in habit.actions)}]",
            'risk = ["reversible"]',
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a TOML string that means exactly this text as a pattern."""
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{escaped}"'


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)
