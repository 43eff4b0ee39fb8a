"""Which advertised action does what, as data; and the choice of exactly one.

Action names are the toolkits' own, never the translated ones, and are compared without case. A list of actions has no
meaningful order: `DoAction(0)` of a GTK 4 text view cuts or deletes (case C07). So only names that stand here count,
and only when exactly one of the list does; anything else is refused rather than guessed.

Each purpose has ranks. A lower rank is looked at only when no name of a higher rank is there: a Qt combo box offers
`ShowMenu` and `Press`, and pressing is what a click does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surehand.errors import StaleTarget, UnsupportedAction

Ranks = tuple[frozenset[str], ...]

#: What a click on the control does. Opening its menu is that for controls which offer nothing else.
_PRESS: Final = frozenset(["click", "press", "activate", "jump", "dodefault", "do default"])
_OPEN: Final = frozenset(["showmenu", "show menu", "open"])
INVOKE: Final[Ranks] = (_PRESS, _OPEN)

#: Names that lead to a state, then names that change it; the caller has read the state just before. `toggle` never
#: expands: on an expandable row of Qt it selects.
TOGGLE_ON: Final[Ranks] = (frozenset(["check"]), frozenset(["toggle"]), _PRESS)
TOGGLE_OFF: Final[Ranks] = (frozenset(["uncheck"]), frozenset(["toggle"]), _PRESS)
EXPAND: Final[Ranks] = (
    frozenset(["expand", "listitem.expand"]),
    frozenset(["expand or contract", "listitem.toggle-expand"]),
    _OPEN,
    _PRESS,
)
COLLAPSE: Final[Ranks] = (
    frozenset(["collapse", "listitem.collapse", "close"]),
    frozenset(["expand or contract", "listitem.toggle-expand"]),
    _PRESS,
)
#: Choosing an option that is an object of its own: Qt's items say `Toggle` and mean their selection.
CHOOSE: Final[Ranks] = (frozenset(["select"]), _PRESS)
CHOOSE_QT_ITEM: Final[Ranks] = (frozenset(["toggle"]),)


def find(actions: Sequence[str], ranks: Ranks) -> int | None:
    """Return the position of the one action that serves a purpose, None when there is none or more than one."""
    for rank in ranks:
        found = [index for index, name in enumerate(actions) if name.lower() in rank]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def choose(observed: Sequence[str], current: Sequence[str], ranks: Ranks, purpose: str) -> int:
    """Return the position in `current` of the action that `observed` promised.

    Args:
        observed: The actions when the element was observed.
        current: The actions now, in the toolkit's order of now.
        ranks: What counts.
        purpose: For the message.

    Raises:
        UnsupportedAction: no action, or several, served the purpose when it was observed.
        StaleTarget: the action is gone or not unique any more.
    """
    promised = find(observed, ranks)
    if promised is None:
        raise UnsupportedAction(
            f"the element has no single action that would {purpose}", observed={"actions": list(observed)[:32]}
        )
    index = find(current, ranks)
    if index is None or current[index] != observed[promised]:
        raise _changed(observed, current)
    return index


def named(observed: Sequence[str], current: Sequence[str], name: str) -> int:
    """Return the position in `current` of the action with exactly this name.

    Raises:
        UnsupportedAction: it was not advertised, or twice.
        StaleTarget: it is gone or not unique any more.
    """
    if list(observed).count(name) != 1:
        raise UnsupportedAction(
            "the element does not advertise exactly one action of that name", observed={"actions": list(observed)[:32]}
        )
    if list(current).count(name) != 1:
        raise _changed(observed, current)
    return list(current).index(name)


def _changed(observed: Sequence[str], current: Sequence[str]) -> StaleTarget:
    return StaleTarget(
        "the element's actions have changed since it was observed",
        details={"difference": "actions"},
        observed={"before": list(observed)[:32], "now": list(current)[:32]},
        fix="observe again",
    )
