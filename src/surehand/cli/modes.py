"""Which mode answers questions to people: none (`ask`), a no to all (`deny`), or a yes to what is harmless."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import Line, out
from surehand.client.control import Control
from surehand.core.review import FIRST, Mode, is_raise

_SAYS: Final[dict[str, str]] = {
    "deny": "everything that would be asked about is refused",
    "ask": "a person answers",
    "risk-auto": "reversible changes that are assessed as low risk need no person; a person answers the rest",
    "full-access": "only what is consequential, or in a sensitive place, needs a person",
}


def mode_show() -> None:
    """Say which mode answers questions, who set it and since when.

    Example:
      surehand mode show
    """
    with Control() as control:
        found = control.call("mode")
    by = f", set by {found['by']}" if found["by"] else ""
    beside = f"; beside the rules, {found['evaluator']} is asked" if found.get("evaluator") else ""
    out().data(found, f"{found['mode']}{by}: {_SAYS[found['mode']]}{beside}")


def mode_set(
    mode: Annotated[Mode, typer.Argument(help="deny, ask, risk-auto or full-access.")],
    confirm: Annotated[str, typer.Option("--confirm", help="The mode once more, where it is raised.")] = "",
) -> None:
    """Set the mode. No mode turns a no of the policy into a yes, and none answers what is consequential.

    Examples:
      surehand mode set deny
      surehand mode set risk-auto --confirm risk-auto

    ask: a person answers each question. deny: each is refused. risk-auto: reversible changes that are assessed as low
    risk need no person. full-access: only what is consequential, or in a sensitive place, needs one.

    Every daemon begins with ask. Raising the mode is refused while an operation is under way.
    """
    with Control() as control:
        before: Mode = control.call("mode")["mode"]
        if is_raise(before, mode) and mode != FIRST and not confirm and sys.stdin.isatty():
            confirm = typer.prompt(f"From now on: {_SAYS[mode]}. Type {mode} to confirm", err=True)
        found = control.call("mode.set", {"mode": mode, "confirm": confirm})
    line: Line = f"{found['mode']}: {_SAYS[found['mode']]}"
    out().data(found, line)


COMMANDS: Final[dict[str, Callable[..., Any]]] = {"show": mode_show, "set": mode_set}
