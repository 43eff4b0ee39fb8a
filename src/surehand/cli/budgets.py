"""What each principal has spent of its budget, and leave to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import Line, out
from surehand.client.control import Control

_WHAT: Final = ("operations", "external", "minutes")


def budgets_list() -> None:
    """Say what each principal has spent of its budget, and who is paused.

    Example:
      surehand budgets list
    """
    with Control() as control:
        found = control.call("budgets")["budgets"]
    lines: list[Line] = []
    for one in found:
        told = ", ".join(f"{name} {one[name]} of {one[f'{name}_max']}" for name in _WHAT if one[f"{name}_max"])
        line = f"{one['principal']}: {told}"
        lines.append(("bad", f"{line}; paused") if one["paused"] else line)
    out().data(found, lines or ["no budget has been used; see ceilings in the configuration"])


def budgets_renew(
    principal: Annotated[str, typer.Argument(help="Whose, as `surehand budgets list` shows it.")],
) -> None:
    """Let a principal go on: its budget begins anew. Recorded with who gave leave.

    Example:
      surehand budgets renew uid:1000
    """
    with Control() as control:
        value = control.call("budgets.renew", {"principal": principal})
    out().data(value, f"{principal} goes on with a new budget")


COMMANDS: Final[dict[str, Callable[..., Any]]] = {"list": budgets_list, "renew": budgets_renew}
