"""What is said where an end is not known, or not this caller's to hear: never that nothing happened."""

from __future__ import annotations

from surehand.core.outcome import Ending
from surehand.errors import Cancelled
from surehand.model.actions import Action, SelectOption
from surehand.model.outcome import UNKNOWN_STATEMENT, Terminal
from surehand.runtime.run import Run


def lost(why: str) -> Ending:
    """Return the ending of something that was sent and then lost sight of."""
    return Ending(
        kind="outcome_unknown",
        effect="unknown",
        code="outcome_unknown",
        message=f"{why} {UNKNOWN_STATEMENT}",
        retry_safe=False,
    )


def unknown_terminal(run: Run, why: str) -> Terminal:
    """Return the terminal that is told where none is on record."""
    ending = lost(why)
    return Terminal(
        kind="outcome_unknown",
        receipt=run.receipt("", "", "unknown", run.started_wall_ms),
        code=ending.code,
        message=ending.message,
    )


def gone_on() -> Cancelled:
    """Return what a caller hears that gives up what somebody else still waits for."""
    return Cancelled(
        "this call was given up; another one goes on with the operation",
        fix="ask for its `status`",
        retry_safe=False,
    )


def other_way(action: Action) -> str:
    """Return what to try where nothing here has a route for an action."""
    if isinstance(action, SelectOption):
        # Qt's lists take over only what pointer or keys choose.
        return "expand it (or invoke its button), then click the option"
    return "ask for the capabilities of this surface"
