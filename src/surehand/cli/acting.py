"""`surehand act`: one operation, in friendly words or as a whole request.

A process of the same user is no authority boundary, so this gives no more than any agent has: it speaks on the
agent's socket and takes the same path (ADR 7).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

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


@dataclass(frozen=True, slots=True)
class Form:
    """How an action is written: what its words are called, how they become fields, and which options it takes."""

    words: str
    read: Callable[[list[str]], dict[str, Any]]
    options: frozenset[str] = frozenset()
    #: Where it is aimed: an element; an element or a whole window; or nowhere.
    aim: Literal["element", "window", "none"] = "element"


def _none(words: list[str]) -> dict[str, Any]:
    _exactly(words, 0, "no words")
    return {}


def _one(field: str) -> Callable[[list[str]], dict[str, Any]]:
    def read(words: list[str]) -> dict[str, Any]:
        _exactly(words, 1, f"one word: the {field} (quote it if it has spaces)")
        return {field: words[0]}

    return read


def _perhaps(field: str) -> Callable[[list[str]], dict[str, Any]]:
    return lambda words: _one(field)(words) if words else {}


def _switch(words: list[str]) -> dict[str, Any]:
    _exactly(words, 1, "on or off")
    if words[0] not in {"on", "off"}:
        raise InvalidRequest(f"{words[0]!r} is neither on nor off")
    return {"to": words[0] == "on"}


def _numbers(*fields: str) -> Callable[[list[str]], dict[str, Any]]:
    def read(words: list[str]) -> dict[str, Any]:
        _exactly(words, len(fields), " and ".join(fields))
        try:
            return {field: int(word) for field, word in zip(fields, words, strict=True)}
        except ValueError as error:
            raise InvalidRequest(f"{' and '.join(fields)} are whole numbers") from error

    return read


def _chords(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest("press takes one or more chords, such as ctrl+s")
    return {"chords": words}


def _program(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest(
            "launch takes a program and its arguments", fix="surehand act launch -- mousepad notes.txt"
        )
    return {"op": "launch", "name": words[0], "arguments": words[1:]}


def _window(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest("window takes focus, close, minimize, maximize, cycle, move X Y or resize WIDTH HEIGHT")
    fields = {"move": ("x", "y"), "resize": ("width", "height")}.get(words[0], ())
    return {"op": words[0], **(_numbers(*fields)(words[1:]) if fields or words[1:] else {})}


def _exactly(words: list[str], count: int, what: str) -> None:
    if len(words) != count:
        raise InvalidRequest(f"this action takes {what}, not {len(words)} words")


_POINTER: Final = frozenset({"button", "count", "modifier"})

FORMS: Final[dict[str, Form]] = {
    "invoke": Form("", _none),
    "set_value": Form("VALUE", _perhaps("value"), frozenset({"secret"})),
    "select_text": Form("START LENGTH", _numbers("start", "length")),
    "select_option": Form("[OPTION]", _perhaps("option")),
    "toggle": Form("on|off", _switch),
    "expand": Form("on|off", _switch),
    "focus": Form("", _none),
    "perform": Form("NAME", _one("name")),
    "scroll": Form("up|down|left|right", _one("direction"), frozenset({"amount", "unit"})),
    "scroll_into_view": Form("", _none),
    "click": Form("", _none, _POINTER),
    "hover": Form("", _none),
    "type_text": Form("TEXT", _one("text"), frozenset({"clear", "submit"}), aim="window"),
    "press": Form("CHORD…", _chords, aim="window"),
    "paste": Form("TEXT", _one("text"), aim="window"),
    "window": Form("focus|close|…", _window, aim="window"),
    "launch": Form("PROGRAM [ARGUMENT…]", _program, aim="none"),
    "open": Form("URI", _one("uri"), aim="none"),
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
    secret: Annotated[str | None, typer.Option("--secret", help="set_value: an enrolled secret by name.")] = None,
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
    given = {
        "secret": secret,
        "amount": amount,
        "unit": unit,
        "button": button,
        "count": count,
        "modifier": modifier,
        "clear": clear or None,
        "submit": submit or None,
    }
    filters = filters_from(role=role, name=name, contains=contains, context=context, labelled=labelled, query=query)
    options = _options(
        timeout_s=timeout,
        operation_id=operation_id,
        verify=None if verify is None else read_json(verify, "--verify"),
        risk=risk,
        deadline_ms=deadline_ms,
        background=background or None,
        reconciles=reconciles,
        observe_after=diff or None,
    )
    if (kind is None) == (request is None):
        raise InvalidRequest("name an action, or give --request", fix="`surehand act --help` lists the actions")
    whole = None if request is None else _read_request(request)
    action, form = ({}, None) if kind is None else action_of(kind, words or [], given)
    with hand(desktop) as session, out().working("acting"):
        if whole is not None or form is None:
            wishes = _options(observe_after=diff or None)
            present = lambda: session.act(whole or {}, **wishes)  # noqa: E731 - one of three ways to present
        elif form.aim == "none":
            present = lambda: session.act(action, **options)  # noqa: E731
        else:
            present = _aimed(session, form, action, options, app, surface, filters)
        result = _presented(present)
        if isinstance(result, ApprovalRequired) and wait_approval > 0:
            result = _presented(lambda: result.wait(wait_approval))  # type: ignore[union-attr]
    _tell(out(), result)


act.__doc__ = f"""Do one thing, and say what became of it.

Actions and what they take:
{_KINDS}

Examples:
  surehand act invoke --app mousepad --role button --name Save
  surehand act set_value "Hello, world" --app mousepad --role text
  surehand act toggle on --app settings --role checkbox --name "Wrap lines"
  surehand act press ctrl+s --app mousepad --role text
  surehand act launch -- mousepad notes.txt
  surehand act --request request.json --json

The target is found when the command runs: exactly one match, waited for up to --timeout seconds. The same --id never
acts twice: give it again after a crash to learn the outcome.
"""


def action_of(kind: str, words: list[str], given: dict[str, Any]) -> tuple[dict[str, Any], Form]:
    """Return an action's value and its form.

    Raises:
        InvalidRequest: an unknown action, words it does not take, or an option of another action.
    """
    kind = kind.replace("-", "_")
    form = FORMS.get(kind)
    if form is None:
        raise InvalidRequest(f"unknown action {kind!r}", fix=f"one of {', '.join(FORMS)}; others through --request")
    foreign = [option for option, value in given.items() if value is not None and option not in form.options]
    if foreign:
        raise InvalidRequest(f"{kind} takes no --{foreign[0]}")
    action: dict[str, Any] = {"kind": "app" if kind == "launch" else kind, **form.read(words)}
    if given["secret"] is not None:
        action["secret_ref"] = given["secret"]
    if kind == "scroll":
        action["amount_milli"] = round(1000 * (3 if given["amount"] is None else given["amount"]))
    if given["modifier"]:
        action["modifiers"] = given["modifier"]
    for option in ("unit", "button", "count", "clear", "submit"):
        if given[option] is not None:
            action[option] = given[option]
    return action, form


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
        warnings = [("warn", f"warning: {warning}") for warning in result.warnings]
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
        fix=f"answer with `surehand approvals show {result.approval_id}`, then give the same --id "
        f"{result.operation_id} again; or wait with --wait-approval",
        details={**details, "approval": result.approval},
    )
    return error, EXIT_APPROVAL


COMMANDS: Final[dict[str, Any]] = {"act": act}
