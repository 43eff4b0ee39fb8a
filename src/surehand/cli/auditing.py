"""`surehand audit`: verify the evidence, show it, make a page of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand.cli.evidence import page
from surehand.cli.film import read_film
from surehand.cli.output import EXIT_REFUSED, Finished, Line, out, table
from surehand.client.control import Control
from surehand.errors import SurehandError, Unavailable
from surehand.limits import OPERATIONS_PAGE_MAX

_AUDIT_MS: Final = 600_000


def verify(
    journal: Annotated[
        str | None, typer.Argument(help="A closed journal or an export. Default: a copy of the daemon's own.")
    ] = None,
) -> None:
    """Check every hash, link, version, terminal and permit, from the stored bytes.

    Examples:
      surehand audit verify
      surehand audit verify backup/journal.db --json

    The auditor shares no code with the writer; `surehand-verify` is the same auditor as a program of its own.
    """
    with out().working("verifying"):
        verdict = _of_daemon() if journal is None else _of_file(Path(journal))
    if verdict.get("ok"):
        out().data(verdict, _verdict_lines(verdict))
        return
    reason = verdict.get("reason") or "it does not verify"
    error = SurehandError(f"the journal is not whole: {reason}", code="journal_recovery", details=verdict)
    raise Finished(out().failed(error, exit_code=EXIT_REFUSED))


def _of_daemon() -> dict[str, Any]:
    with Control() as control:
        return control.call("audit.verify", wait_ms=_AUDIT_MS)


def _of_file(path: Path) -> dict[str, Any]:
    from surehand.verify.audit import audit  # noqa: PLC0415 - the auditor loads for this alone
    from surehand.verify.sources import NotReadable  # noqa: PLC0415

    try:
        return audit(path).to_value()
    except NotReadable as error:
        raise Unavailable(str(error), fix="name a closed journal; stop its daemon, or let the daemon verify") from error


def _verdict_lines(verdict: dict[str, Any]) -> list[Line]:
    head = f"head {verdict.get('events')}:{verdict.get('head')}"
    return [("good", f"OK: {verdict.get('reason', 'whole')}"), f"{verdict.get('events')} events, {head}"]


def show(
    *,
    after: Annotated[int, typer.Option("--after", min=0, help="Only events after this number.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 100,
    operation: Annotated[str | None, typer.Option("--operation", help="Only this operation.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Only this principal's operations.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only events of this type.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Only this session.")] = None,
) -> None:
    """Show events of the journal, oldest first.

    Examples:
      surehand audit show --operation op-5f1c…
      surehand audit show --type operation.terminal.v1 --json
    """
    params: dict[str, Any] = {"after_seq": after, "limit": limit}
    wishes = {"operation_id": operation, "principal": principal, "type": type_, "session": session}
    params.update({name: value for name, value in wishes.items() if value is not None})
    with Control() as control:
        found = control.call("audit.show", params, wait_ms=_AUDIT_MS)
    rows = [
        (one["seq"], one["occurred_at"], one["type"], one["actor"], one["stream"], one["record_hash"][:12])
        for one in found["events"]
    ]
    out().data(found, table(("SEQ", "AT", "TYPE", "ACTOR", "STREAM", "HASH"), rows))
    if len(rows) == limit and not out().as_json:
        out().note(f"there may be more: --after {rows[-1][0]}, or a larger --limit")


def list_(
    *,
    text: Annotated[str, typer.Argument(help="Words that stand anywhere in what is known of an operation.")] = "",
    principal: Annotated[str | None, typer.Option("--principal", help="Only this principal's.")] = None,
    app: Annotated[str, typer.Option("--app", help="Only in applications whose identity holds this.")] = "",
    action: Annotated[str, typer.Option("--action", help="Only effects that begin so, as desktop.invoke.")] = "",
    outcome: Annotated[
        str, typer.Option("--outcome", help="Only what ended so: succeeded, refused, outcome_unknown, waiting, …")
    ] = "",
    category: Annotated[str, typer.Option("--category", help="Only this category, as purchase.")] = "",
    before: Annotated[int | None, typer.Option("--before", min=0, help="Older than this page; see its end.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=OPERATIONS_PAGE_MAX, help="At most so many.")] = 50,
) -> None:
    """List operations, newest first: who, what, where, what became of it, by which rule.

    Examples:
      surehand audit list
      surehand audit list purchase --outcome refused
      surehand audit list --app mousepad --action desktop.set_value --json
    """
    sought = {"text": text, "app": app, "action": action, "outcome": outcome, "category": category}
    params: dict[str, Any] = {"limit": limit, **{name: value for name, value in sought.items() if value}}
    if principal is not None:
        params["principal"] = principal
    found: dict[str, Any] = {"operations": [], "next": before}
    with Control() as control:
        # A page may be short of what is looked for; a person at a terminal wants it full.
        while True:
            at = {} if found["next"] is None else {"before_seq": found["next"]}
            page_of = control.call("operations", {**params, **at}, wait_ms=_AUDIT_MS)
            found = {"operations": found["operations"] + page_of["operations"], "next": page_of["next"]}
            params["limit"] = max(1, limit - len(found["operations"]))
            if found["next"] is None or len(found["operations"]) >= limit:
                break
    rows = [
        (
            one["changed_at"],
            one["principal"],
            one.get("effect", "-"),
            one.get("app", "-"),
            one.get("outcome", "-"),
            one.get("rule", one.get("code", "-")),
            one["operation_id"],
        )
        for one in found["operations"]
    ]
    lines = table(("CHANGED", "WHO", "EFFECT", "APP", "OUTCOME", "RULE", "OPERATION"), rows)
    out().data(found, lines if rows else ["no operation is like that"])
    if found["next"] is not None and not out().as_json:
        out().note(f"older ones: --before {found['next']}")


def report(
    file: Annotated[str, typer.Argument(help="Where to write the page.")],
    after: Annotated[int, typer.Option("--after", min=0, help="Only events after this number.")] = 0,
    film: Annotated[
        str | None, typer.Option("--film", help="Folder with pictures that an agent recorded and their film.json.")
    ] = None,
) -> None:
    """Write a page of the evidence: every operation with its records, and the auditor's verdict. One file, no script.

    Examples:
      surehand audit report evidence.html
      surehand audit report evidence.html --film recorded/

    film.json: {"version": 1, "frames": [{"operation_id": …, "file": …, "caption": …, "outline": [x, y, w, h]}]}
    """
    frames = [] if film is None else read_film(Path(film))
    with Control() as control, out().working("reading the journal"):
        found = control.call("audit.report", {"after_seq": after}, wait_ms=_AUDIT_MS)
    try:
        Path(file).write_text(page(found, frames), "utf-8")
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}", fix="name another file") from error
    operations = found.get("operations") or {}
    out().data(
        {"file": file, "operations": len(operations), "verdict": found.get("verdict")},
        f"{file}: {len(operations)} operations",
    )


COMMANDS: Final[dict[str, Any]] = {"verify": verify, "list": list_, "show": show, "report": report}
