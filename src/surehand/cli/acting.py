"""`surehand act`: one operation, in friendly words or as a whole request.

A process of the same user is no authority boundary, so this gives no more than any agent has: it speaks on the
agent's socket and takes the same path (ADR 7).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand.cli.forms import FORMS, OPTIONS, Form, action_of
from surehand.cli.output import EXIT_APPROVAL, EXIT_INTERRUPTED, Finished, Output, out
from surehand.cli.targeting import (
    TIMEOUT_DEFAULT,
    AppOption,
    ContainsOption,
    ContextOption,
    DesktopOption,
    LabelOption,
    NameOption,
    QueryOption,
    RoleOption,
    SurfaceOption,
    TimeoutOption,
    filters_from,
    hand,
    locator_of,
    place_of,
    read_json,
)
from surehand.client.options import ActOptions
from surehand.client.results import ApprovalRequired, Interrupted, Receipt
from surehand.client.sync_client import Hand, Result
from surehand.errors import EffectError, InvalidRequest, SurehandError
from surehand.limits import REQUEST_BYTES_MAX

#: What the words in receipts mean.
_WARNINGS: Final = {
    "handler_running": "the application still runs what this began, such as a dialog that it opened (handler_running)",
    "held_before": "it was so before, which makes the verification say little (held_before)",
}

_KINDS: Final = "\n".join(f"  {kind:18}{form.words}".rstrip() for kind, form in FORMS.items())


def act(  # noqa: D103, PLR0913 - its help is made below; one parameter for each option
    *,
    kind: Annotated[str | None, typer.Argument(help="What to do; see the list above.")] = None,
    words: Annotated[
        list[str] | None, typer.Argument(help="What it takes; after -- where a word begins with -.")
    ] = None,
    app: AppOption = None,
    surface: SurfaceOption = None,
    role: RoleOption = None,
    name: NameOption = None,
    contains: ContainsOption = None,
    context: ContextOption = None,
    labelled: LabelOption = None,
    query: QueryOption = None,
    secret: Annotated[
        str | None, typer.Option("--secret", help="set_value, type_text: an enrolled secret, vault:NAME.")
    ] = None,
    amount: Annotated[float | None, typer.Option("--amount", help="scroll: how far.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="scroll: line, page or pixel.")] = None,
    button: Annotated[str | None, typer.Option("--button", help="click: left, middle or right.")] = None,
    count: Annotated[int | None, typer.Option("--count", help="click: 1 to 3 times.")] = None,
    modifier: Annotated[list[str] | None, typer.Option("--modifier", help="click: held keys; repeatable.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="type_text: empty it first.")] = False,
    submit: Annotated[bool, typer.Option("--submit", help="type_text: Return at the end.")] = False,
    request: Annotated[
        str | None, typer.Option("--request", help="A whole request in JSON from a file, or - for standard input.")
    ] = None,
    operation_id: Annotated[str | None, typer.Option("--id", help="Your operation id; the same id acts once.")] = None,
    verify: Annotated[str | None, typer.Option("--verify", help="What must hold afterwards, in JSON.")] = None,
    risk: Annotated[str | None, typer.Option("--risk", help="read, reversible, external or destructive.")] = None,
    deadline_ms: Annotated[int | None, typer.Option("--deadline-ms", help="How long it may take.")] = None,
    background: Annotated[bool, typer.Option("--background", help="Refuse rather than take the focus.")] = False,
    reconciles: Annotated[str | None, typer.Option("--reconciles", help="An outcome_unknown you looked into.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Also say what changed.")] = False,
    wait_approval: Annotated[float, typer.Option("--wait-approval", min=0, help="Seconds to wait for a person.")] = 0,
    timeout: TimeoutOption = TIMEOUT_DEFAULT,
    desktop: DesktopOption = None,
) -> None:
    _act(locals())


act.__doc__ = f"""Do one thing, and say what became of it.

Actions and what they take:
{_KINDS}

Examples:
  surehand act invoke --app mousepad --role button --name Save
  surehand act set_value "Hello, world" --app mousepad --role text
  surehand act set_value --secret vault:mail --app evolution --role password
  surehand act toggle on --app settings --role checkbox --name "Wrap lines"
  surehand act press ctrl+s --app mousepad --role text
  surehand act launch -- mousepad notes.txt
  surehand act --request request.json --json

`surehand capabilities` says which of them work on a window; paste and open are not built yet. Places, and what needs
them (drag, hold, release, move), go in a whole request: --request.

The target is found when the command runs: exactly one match, waited for up to --timeout seconds. The same --id never
acts twice: give it again after a crash to learn the outcome.
"""


def _act(given: dict[str, Any]) -> None:
    """Carry out what the options say; `given` holds them by name."""
    filters = filters_from(
        **{name: given[name] for name in ("role", "name", "contains", "context", "labelled", "query")}
    )
    options = _options(
        timeout_s=given["timeout"],
        operation_id=given["operation_id"],
        verify=None if given["verify"] is None else read_json(given["verify"], "--verify"),
        risk=given["risk"],
        deadline_ms=given["deadline_ms"],
        background=given["background"] or None,
        reconciles=given["reconciles"],
        observe_after=given["diff"] or None,
    )
    kind, source = given["kind"], given["request"]
    if (kind is None) == (source is None):
        raise InvalidRequest("name an action, or give --request", fix="`surehand act --help` lists the actions")
    whole = None if source is None else _read_request(source)
    own = {name: None if given[name] is False else given[name] for name in OPTIONS}
    action, form = ({}, None) if kind is None else action_of(kind, given["words"] or [], own)
    with hand(given["desktop"]) as session, out().working("acting"):
        if whole is not None or form is None:
            wishes = _options(observe_after=given["diff"] or None)
            present = lambda: session.act(whole or {}, **wishes)  # noqa: E731 - one of three ways to present
        elif form.aim == "none":
            present = lambda: session.act(action, **options)  # noqa: E731
        else:
            present = _aimed(session, form, action, options, given["app"], given["surface"], filters)
        result = _presented(present)
        if isinstance(result, ApprovalRequired) and given["wait_approval"] > 0:
            asked = result
            result = _presented(lambda: asked.wait(given["wait_approval"]))
    _tell(out(), result)


def _options(**given: Any) -> ActOptions:
    options: ActOptions = {}
    options.update({name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
    return options


def _aimed(
    session: Hand,
    form: Form,
    action: dict[str, Any],
    options: ActOptions,
    app: str | None,
    surface: str | None,
    filters: Any,
) -> Callable[[], Result]:
    place = place_of(session, app, surface)
    if form.aim == "window" and not filters:
        return lambda: session.act(action, {"kind": "surface", "ref": place.window_id()}, **options)
    locator = locator_of(place, filters)
    return lambda: locator.do(action, **options)


def _read_request(source: str) -> dict[str, Any]:
    try:
        data = sys.stdin.buffer.read(REQUEST_BYTES_MAX + 1) if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {source}: {error.strerror}") from error
    from surehand import canonical  # noqa: PLC0415 - only whole requests need the strict reader

    value = canonical.parse(data)
    if not isinstance(value, dict):
        raise InvalidRequest("a request is a JSON object")
    return value


def _presented(present: Callable[[], Result]) -> Result:
    """Present, and give terminals that are no success their receipt on the way out."""
    try:
        return present()
    except EffectError as error:
        receipt = error.details.get("receipt")
        if receipt and not out().as_json:
            out().note(f"receipt: {receipt.get('action')} via {receipt.get('route')}, effect {receipt.get('effect')}")
        raise


def _tell(output: Output, result: Result) -> None:
    if isinstance(result, Receipt):
        warnings = [("warn", f"warning: {_WARNINGS.get(warning, warning)}") for warning in result.warnings]
        proof = result.reply.get("proof") or {}
        evidence = f", evidence {proof['seq']}:{str(proof['record_hash'])[:12]}" if proof else ""
        again = " (the stored outcome of this id)" if result.replayed else ""
        line = f"{result.receipt.get('action')}: {result.effect} via {result.route} in {result.elapsed_ms} ms{again}"
        output.data(
            result.reply,
            [("good", line), f"{result.operation_id}{evidence}", *warnings, *([result.diff] if result.diff else [])],
        )
        return
    error, exit_code = _not_yet(result)
    raise Finished(output.failed(error, exit_code=exit_code))


def _not_yet(result: Interrupted | ApprovalRequired[Any]) -> tuple[SurehandError, int]:
    """Return what says that nothing succeeded, for the two outcomes that are results in Python."""
    details: dict[str, Any] = {"operation_id": result.operation_id}
    if isinstance(result, Interrupted):
        error = SurehandError(
            "the person took over; the receipt says what was delivered",
            code="interrupted",
            details={**details, "receipt": result.receipt},
            retry_safe=False,
        )
        return error, EXIT_INTERRUPTED
    error = SurehandError(
        "a person has to approve this first; nothing was done",
        code="approval_required",
        fix=f"look at it with `surehand approvals show {result.approval_id}`, answer with approve or deny, then give "
        f"the same --id {result.operation_id} again; or wait with --wait-approval",
        details={**details, "approval": result.approval},
    )
    return error, EXIT_APPROVAL


COMMANDS: Final[dict[str, Any]] = {"act": act}
