"""What keeps agents from acting now, by a person's word: pauses, desktops taken over, desktops handed over on request.

Guarantees:
- A hold is in force from the moment it is put on, before any disk is waited for.
- It covers every session that it names, those that come later too, so that a new one is no way around it: with one
  session it covers those that the same principal opens afterwards.
- It is lifted only by the control side; nothing an agent sends reaches this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from surehand.errors import AuthorityDenied

What = Literal["paused", "taken_over", "handed_over"]

_SAYS: Final[dict[What, tuple[str, str]]] = {
    "paused": (
        "paused by the operator",
        "nothing was done; repeat the same call once they resume, which approval_status without a name waits for",
    ),
    "taken_over": (
        "a person has taken over this desktop",
        "nothing was done; repeat the same call once they hand it back, which approval_status without a name waits for",
    ),
    "handed_over": (
        "the desktop is handed over to a person",
        "wait with request_human until it is handed back",
    ),
}


class Held(Protocol):
    """A session, as a hold sees it."""

    session_id: str
    principal: str

    @property
    def desktop(self) -> str:
        """The name of its desktop, empty where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whom it is about: sessions that fit everything that is named; nothing named means all."""

    desktop: str | None = None
    principal: str | None = None
    #: The whole id, and the label that people know it by.
    session: str | None = None
    label: str | None = None
    #: Where one session is named: the others of its principal that were there then, which are let be.
    others: frozenset[str] = field(default=frozenset(), compare=False)

    def covers(self, session: Held) -> bool:
        """Return whether a session is meant."""
        return (
            (self.desktop is None or self.desktop == session.desktop)
            and (self.principal is None or self.principal == session.principal)
            and (self.session in {None, session.session_id} or session.session_id not in self.others)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold. `by` is who put it on, `reason` their words."""

    hold_id: str
    what: What
    scope: Scope
    by: str
    since_ms: int
    reason: str = ""


@dataclass(slots=True)
class Brakes:
    """Every hold of this daemon, in the order they were put on."""

    _holds: dict[str, Hold] = field(default_factory=dict)

    def on(self, hold: Hold) -> None:
        """Put a hold on, at once."""
        self._holds[hold.hold_id] = hold

    def off(self, hold_id: str) -> Hold | None:
        """Lift a hold; return it, None where there is none of that id."""
        return self._holds.pop(hold_id, None)

    def all(self) -> list[Hold]:
        """Return every hold, oldest first."""
        return list(self._holds.values())

    def over(self, session: Held, *what: What) -> Hold | None:
        """Return the oldest hold over a session, of these kinds or of any."""
        for hold in self._holds.values():
            if (not what or hold.what in what) and hold.scope.covers(session):
                return hold
        return None

    def check(self, session: Held) -> None:
        """Refuse to act under a hold.

        Raises:
            AuthorityDenied: retry safe; says which hold, and how it goes on.
        """
        hold = self.over(session)
        if hold is not None:
            raise refusal(hold.what, hold.hold_id, hold.reason)


def refusal(what: What, hold_id: str, reason: str = "") -> AuthorityDenied:
    """Return what an agent is told that acts under a hold."""
    message, fix = _SAYS[what]
    details = {"what": what, "request_id" if what == "handed_over" else "hold_id": hold_id}
    return AuthorityDenied(
        message, gate="authority", fix=fix, details={**details, **({"operator_reason": reason} if reason else {})}
    )
