"""What policy may take for proven: the one place where a text becomes that (spec §6.1, §6.2).

Facts want `Proven`, which no text of a screen is, so a type checker refuses a name, a title or a context wherever a
fact is formed. Every function here takes the record that proves the text, never the text alone, and `tests/tidy`
sees that nobody else makes one. It costs nothing at run time: a `Proven` is the text itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from surehand.model.actions import App
from surehand.model.decision import Proven
from surehand.model.scene import AppIdentity, Surface
from surehand.model.secrets import BoundSecret

__all__ = ["NOTHING", "application", "bound_to", "categories", "launched", "place", "secret", "stated"]

#: Where nothing is aimed at.
NOTHING = Proven("")


def application(identity: AppIdentity) -> Proven:
    """Return who an application is, as its process proves."""
    return Proven(identity.key)


def place(surface: Surface) -> Proven:
    """Return a window's role in its application, or its origin, as the adapter that reads it knows."""
    return Proven(surface.place)


def launched(action: App) -> Proven:
    """Return what is only going to be started: the agent's own word, and named as such."""
    return Proven(f"launch:{action.name}")


def categories(found: Iterable[str]) -> frozenset[Proven]:
    """Return categories that follow from the request, from its process, or from lists of the operator."""
    return frozenset(map(Proven, found))


def secret(found: BoundSecret) -> Proven:
    """Return the reference of a secret that is enrolled for where it is to be used."""
    return Proven(found.reference)


def bound_to(found: BoundSecret) -> Proven:
    """Return where a secret may be used, as whoever enrolled it said, and since when: a yes is to no later one."""
    if not found.changed_at_ms:
        return Proven(found.bound_to.told())
    since = datetime.fromtimestamp(found.changed_at_ms / 1000, UTC).isoformat(" ", "milliseconds")
    return Proven(f"{found.bound_to.told()}, enrolled {since}")


def stated(text: str) -> Proven:
    """Return the operator's word: a table of cases, a document to try."""
    return Proven(text)
