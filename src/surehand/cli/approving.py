"""`surehand approvals` and `surehand standing`: a person decides, with a key of their own.

What is signed is the hash of what is shown here. Everything that came from a screen is made visible first.
"""

from __future__ import annotations

import base64
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from surehand.cli.keys import KeysOption, approver_key
from surehand.cli.output import Line, out, table
from surehand.client.control import Control, Signer, leave_of
from surehand.errors import InvalidRequest
from surehand.model.approval import PendingApproval, crop_hash
from surehand.model.authority import StandingGrant
from surehand.model.record import convert, to_value

IdArgument = Annotated[str, typer.Argument(help="The approval's id, as `surehand approvals list` shows it.")]
AsOption = Annotated[str | None, typer.Option("--as", help="Which approver you are, where this machine has several.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Your words, recorded with the answer.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]


def list_() -> None:
    """List what is waiting for a person.

    Example:
      surehand approvals list
    """
    with Control() as control:
        pending = control.pending()
    rows = [
        (
            one.approval_id,
            one.principal,
            one.presentation.action,
            one.presentation.element or one.presentation.place or one.presentation.app,
            one.presentation.risk,
            _left(one),
        )
        for one in pending
    ]
    lines = table(("APPROVAL", "WHO", "ACTION", "WHAT", "RISK", "EXPIRES IN"), rows) if rows else ["nothing is waiting"]
    out().data({"pending": [to_value(one) for one in pending]}, lines)


def show(
    approval_id: IdArgument,
    picture: Annotated[Path | None, typer.Option("--picture", help="Write the picture beside it to this file.")] = None,
) -> None:
    """Show exactly what would be approved.

    Examples:
      surehand approvals show 3f09a1c2
      surehand approvals show 3f09a1c2 --picture what.png

    The picture shows what is acted on, with secrets painted over; its hash is part of what is signed.
    """
    with Control() as control:
        pending = _find(control, approval_id)
        if picture is not None:
            picture.write_bytes(_picture_of(control, pending))
    out().data(to_value(pending), shown(pending))


def _picture_of(control: Control, pending: PendingApproval) -> bytes:
    """Return the picture that belongs to a question: the one whose hash is signed, or none."""
    expected = pending.presentation.crop_hash
    found = {} if expected is None else control.call("approvals.picture", {"approval_id": pending.approval_id})
    png = base64.b64decode(found.get("png_base64", ""))
    if expected is None or crop_hash(png) != expected:
        raise InvalidRequest("there is no picture of this question", fix="show it without --picture")
    return png


def approve(
    approval_id: IdArgument,
    approver: AsOption = None,
    reason: ReasonOption = "",
    yes: YesOption = False,
    uses: Annotated[int | None, typer.Option("--uses", min=1, help="Also leave for so many more of the same.")] = None,
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=24 * 60, help="For how long, with --uses.")] = 30,
    keys: KeysOption = None,
) -> None:
    """Say yes, once, to exactly what is shown. Your key signs it; a passphrase is asked for where it has one.

    Examples:
      surehand approvals approve 3f09a1c2
      surehand approvals approve 3f09a1c2 --uses 20 --minutes 30

    With --uses this principal may do the same action in the same window of the same application so many times more.
    What is consequential is asked about each time.
    """
    leave = None if uses is None else (uses, minutes)
    _answer(approval_id, "approve", approver, reason, keys, yes=yes, leave=leave)


def deny(
    approval_id: IdArgument,
    approver: AsOption = None,
    reason: ReasonOption = "",
    keys: KeysOption = None,
) -> None:
    """Say no.

    Example:
      surehand approvals deny 3f09a1c2 --reason "wrong account"
    """
    _answer(approval_id, "deny", approver, reason, keys, yes=True)


def _answer(
    approval_id: str,
    answer: Literal["approve", "deny"],
    approver: str | None,
    reason: str,
    keys: str | None,
    *,
    yes: bool,
    leave: tuple[int, int] | None = None,
) -> None:
    with Control() as control:
        pending = _find(control, approval_id)
        if not yes:
            _confirm(pending)
        name, key = approver_key(keys, approver)
        found, said = answered(control, pending, answer, name=name, key=key, reason=reason, leave=leave)
    out().data(found, said)


def answered(
    control: Control,
    pending: PendingApproval,
    answer: Literal["approve", "deny"],
    *,
    name: str,
    key: Signer,
    reason: str = "",
    leave: tuple[int, int] | None = None,
) -> tuple[dict[str, Any], str]:
    """Sign and give an answer, with leave for so many uses and minutes; return what came of it, and in words."""
    grant = None if leave is None else leave_of(pending, name, *leave)
    found = control.answer(pending, answer, approver=name, key=key, reason=reason, standing=grant)
    said = f"{pending.approval_id}: {found.get('state', answer)}, as {name}"
    if grant is not None:
        found["standing"] = grant.grant_id
        said += f"; {grant.uses_max} uses, taken back with `surehand standing revoke {grant.grant_id}`"
    return found, said


def _confirm(pending: PendingApproval) -> None:
    if out().as_json or not sys.stdin.isatty():
        raise InvalidRequest("this needs a person at a terminal", fix="add --yes if you are one and have read it")
    out().data(None, shown(pending))
    if not typer.confirm("Approve exactly this, once?"):
        raise typer.Abort


def _find(control: Control, approval_id: str) -> PendingApproval:
    for one in control.pending():
        if one.approval_id == approval_id:
            return one
    raise InvalidRequest("no such open question", fix="`surehand approvals list` shows what is open")


def _left(pending: PendingApproval) -> str:
    return _time_left(pending.expires_at_ms)


def _time_left(until_ms: int) -> str:
    seconds = max(0, round(until_ms / 1000 - time.time()))
    return f"{seconds // 60}:{seconds % 60:02}"


def shown(pending: PendingApproval) -> list[Line]:
    """Return what a person reads before answering: all that is signed, a line for each thing."""
    what = pending.presentation
    facts: list[tuple[str, Any]] = [
        ("who", what.principal),
        ("application", what.app),
        ("window", what.place),
        ("element", what.element),
        ("around it", what.context),
        ("action", what.action),
        *((f"  {name}", value) for name, value in sorted(what.parameters.items()) if not what.steps),
        ("risk", what.risk),
        ("categories", ", ".join(what.categories)),
        ("reason", what.reason),
        ("needed", f"{pending.needed} people" if pending.needed > 1 else ""),
        ("picture", _picture_line(pending)),
        ("hash", pending.presentation_hash),
    ]
    lines: list[Line] = [("bold", f"approval {pending.approval_id} (expires in {_left(pending)})")]
    lines += [f"{name:12} {value}" for name, value in facts if value not in ("", None)]
    return lines + _steps(pending) + _difference(pending)


def _picture_line(pending: PendingApproval) -> str:
    digest = pending.presentation.crop_hash
    return "" if digest is None else f"{digest[:16]}…, with `surehand approvals show ID --picture FILE`"


def _steps(pending: PendingApproval) -> list[Line]:
    """Return every step of a plan, in order."""
    if not pending.presentation.steps:
        return []
    lines: list[Line] = ["steps"]
    for number, step in enumerate(pending.presentation.parameters.get("steps", ()), 1):
        lines.append(
            f"  {number}. {step.get('action', '')}  {step.get('element', '')}  {step.get('context', '')}".rstrip()
        )
        lines += [f"       {name:10} {value}" for name, value in sorted(step.get("parameters", {}).items())]
        if step.get("categories"):
            lines.append(f"       {'categories':10} {', '.join(step['categories'])}")
    return lines


def _difference(pending: PendingApproval) -> list[Line]:
    """Return what is otherwise than when the same operation was asked about before."""
    if pending.replaces is None:
        return []
    before = "approved" if pending.replaces_approved else "asked"
    lines: list[Line] = [("warn", f"changed since it was {before} as {pending.replaces}, which is void:")]
    for one in pending.changed:
        lines += [f"  {one.name}", f"    was {one.before}", f"    is  {one.after}"]
    return lines


# --- standing grants --------------------------------------------------------------------------------------------


def standing_list() -> None:
    """List standing grants, with what is left of each.

    Example:
      surehand standing list
    """
    with Control() as control:
        grants = control.call("standing.list")["grants"]
    rows = [
        (
            one["grant_id"],
            one["principal"],
            one["app"],
            one["actions"],
            one["risk_max"],
            one.get("uses_left"),
            _time_left(one.get("expires_at_ms", 0)),
        )
        for one in grants
    ]
    lines = table(("GRANT", "WHO", "APP", "ACTIONS", "RISK", "LEFT", "FOR"), rows) if rows else ["no grant is in force"]
    out().data({"grants": grants}, lines)


def standing_grant(  # noqa: PLR0913 - each is an option of the command
    *,
    principal: Annotated[str, typer.Option("--principal", help="Who, such as uid:1000.")],
    app: Annotated[str, typer.Option("--app", help="The application's proven identity, as `surehand apps` shows it.")],
    action: Annotated[list[str], typer.Option("--action", help="An effect, such as desktop.invoke; repeatable.")],
    approver: AsOption = None,
    uses: Annotated[int, typer.Option("--uses", min=1, help="How often.")] = 1,
    minutes: Annotated[int, typer.Option("--minutes", min=1, help="For how long.")] = 60,
    risk: Annotated[Literal["read", "reversible", "external"], typer.Option("--risk", help="At most.")] = "reversible",
    place: Annotated[str | None, typer.Option("--place", help="Only this window or origin.")] = None,
    keys: KeysOption = None,
) -> None:
    """Give leave for several uses of named actions in one application, signed with your key.

    It never covers consequential actions.

    Example:
      surehand standing grant --principal uid:7 --app exe:/usr/bin/mousepad --action desktop.invoke --as ann
    """
    name, key = approver_key(keys, approver)
    grant = convert(
        StandingGrant,
        {
            "grant_id": f"sg-{uuid.uuid4().hex[:12]}",
            "principal": principal,
            "app": app,
            "actions": action,
            "risk_max": risk,
            "uses_max": uses,
            "expires_at_ms": time.time_ns() // 1_000_000 + minutes * 60_000,
            "issued_by": name,
            **({} if place is None else {"place": place}),
        },
    )
    with Control() as control:
        found = control.give(grant, key)
    out().data(found, f"{grant.grant_id}: {uses} uses for {minutes} minutes")


def standing_revoke(grant_id: Annotated[str, typer.Argument(help="The grant's id.")]) -> None:
    """Take a standing grant back.

    Example:
      surehand standing revoke sg-1f2e3d4c5b6a
    """
    with Control() as control:
        found = control.call("standing.revoke", {"grant_id": grant_id})
    out().data(found, f"{grant_id}: revoked")


COMMANDS: Final[dict[str, Any]] = {"list": list_, "show": show, "approve": approve, "deny": deny}
STANDING: Final[dict[str, Any]] = {"list": standing_list, "grant": standing_grant, "revoke": standing_revoke}
