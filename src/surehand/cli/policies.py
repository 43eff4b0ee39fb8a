"""`surehand policy`: write one, check it, try it on cases, ask why, and let approvals propose rules.

Everything but `show`, `reload`, and what is read from the journal works without a daemon, by the daemon's own code.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from surehand.cli.output import EXIT_REFUSED, Finished, Line, out, table
from surehand.client.control import Control
from surehand.errors import InvalidRequest, PolicyDenied, SurehandError
from surehand.limits import POLICY_BYTES_MAX
from surehand.model.events import Event
from surehand.model.record import convert, to_value

Preset = Literal["careful", "office", "ci"]
Engine = Literal["builtin", "rego", "cedar", "opa"]

FileArgument = Annotated[
    str | None, typer.Argument(help="A policy: .toml, .rego, .cedar or a folder of .rego. Default: the configured one.")
]
EngineOption = Annotated[
    Engine | None, typer.Option("--engine", help="Which engine decides. Default: by the file's name.")
]
ConfigOption = Annotated[str | None, typer.Option("--config", help="Configuration file. Default: the operator's.")]
_PAGE: Final = 1_000
_EVENTS_MAX: Final = 200_000


def init(
    file: Annotated[
        str | None, typer.Argument(help="Where to write it. Default: policy.toml beside the configuration.")
    ] = None,
    preset: Annotated[
        Preset,
        typer.Option(
            help="careful: asks about every change. office: an editor, questions, no passwords. ci: no person."
        ),
    ] = "office",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    config: ConfigOption = None,
) -> None:
    """Write a policy to start from, with a comment in plain words above each rule.

    Examples:
      surehand policy init --preset office
      surehand policy init --preset ci ./policy.toml
    """
    path = Path(file) if file is not None else _config(config).parent / "policy.toml"
    text = resources.files("surehand.cli").joinpath("presets", f"{preset}.toml").read_text("utf-8")
    _write(path.absolute(), text, force=force)
    lines = [
        f"wrote {path}",
        "read it, change it, then:",
        f"  surehand policy check{'' if file is None else f' {path}'}",
    ]
    if file is None:
        lines.append("  surehand policy show     a running daemon applies it within a second")
    else:
        lines.append(f'and name it in the configuration: policy = "{path.absolute()}"')
    out().data({"file": str(path.absolute()), "preset": preset}, lines)


def _write(path: Path, text: str, *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        raise InvalidRequest(f"{path} is there already", fix="add --force to replace it")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whole or not at all: a daemon may look at it at any moment.
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as new:
        new.write(text)
    Path(new.name).replace(path)


def _config(given: str | None) -> Path:
    from surehand.daemon import entry  # noqa: PLC0415 - knows where operators keep files

    return entry.config_path(given)


# --- check and test -------------------------------------------------------------------------------------------------


def check(file: FileArgument = None, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """Read a policy as a daemon would, and say what is wrong, where, and which rules can never match. Changes nothing.

    Examples:
      surehand policy check
      surehand policy check ./policy.toml
      surehand policy check ./policy.rego
    """
    desk = _desk()
    path = _config(config)
    choice = desk.choice_of(path, file, engine)
    found: dict[str, Any] = desk.check(choice)
    if file is None:
        found = {**desk.configured(path), **found, "reload_failed": _reload_failure()}
    lines = _checked(found)
    if shadow := found.get("shadow"):
        lines += _checked(shadow)
    if found.get("reload_failed"):
        lines.append(("bad", f"the running daemon keeps an earlier policy: {found['reload_failed']}"))
    if "config" in found:
        there = "" if found["exists"] else " (not there, so the defaults hold)"
        lines.append(f"{'config':14} {found['config']}{there}")
    lines += [f"{key:14} {found[key]}" for key in ("authority", "trust_level", "approvers") if key in found]
    good = found["ok"] and (not shadow or shadow["ok"])
    _given(found, lines, good=good, fix="correct what problems name, then check again")


def _checked(found: dict[str, Any]) -> list[Line]:
    name = found["file"] or found["engine"]
    lines: list[Line] = [("bad", _at(name, one)) for one in found["problems"]]
    lines += [("warn", f"{_at(name, one)} (warning)") for one in found["warnings"]]
    if found["ok"]:
        what = f"{found['rules']} rules" if found["rules"] else "nothing wrong"
        lines.append(("good", f"{name}: {what}, engine {found['engine']}"))
    return lines


def _at(name: str, one: dict[str, Any]) -> str:
    place = f"{name}:{one['line']}:{one['column']}" if "line" in one else name
    expected = f"\n    expected: {one['expected']}" if one.get("expected") else ""
    rule = f"rule {one['rule']}: " if one.get("rule") else ""
    return f"{place}: {rule}{one['message']}{expected}"


def _reload_failure() -> str | None:
    """Return why a running daemon could not read its policy again; None where it could, or none runs."""
    try:
        with Control() as control:
            found = control.call("policy").get("reload_failed")
            return None if found is None else str(found)
    except SurehandError:
        return None


def try_cases(
    cases: Annotated[str, typer.Argument(help="A table of cases, as TOML.")],
    file: FileArgument = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Try a policy on a table of cases: who does what where, and whether that is to be allowed, asked or denied.

    Examples:
      surehand policy test cases.toml
      surehand policy test cases.toml ./policy.toml

    A case:
      [[case]]
      name = "may type in the editor"
      expect = "allow"
      action = "desktop.type_text"
      app = "exe:/usr/bin/mousepad"
      isolation = "shared"
    """
    desk = _desk()
    results = desk.tried(desk.choice_of(_config(config), file, engine), _read(cases))
    failed = [one for one in results if not one.passed]
    lines: list[Line] = [
        ("good", f"ok    {one.name}: {one.outcome} by {one.rule}")
        if one.passed
        else ("bad", f"FAIL  {one.name}: expected {one.expected}, is {one.outcome} by {one.rule}: {one.reason}")
        for one in results
    ]
    lines.append(f"{len(results) - len(failed)} of {len(results)} cases as expected")
    value = {"passed": len(results) - len(failed), "failed": len(failed), "cases": [to_value(one) for one in results]}
    fix = "look at the cases that did not pass: correct the policy, or what they expect"
    _given(value, lines, good=not failed, code="verification_failed", fix=fix)


# --- explain --------------------------------------------------------------------------------------------------------


def explain(
    request: Annotated[
        str | None,
        typer.Argument(
            help="A request: a case as TOML (of several the first), or a policy's input as JSON; - is input."
        ),
    ] = None,
    file: FileArgument = None,
    operation: Annotated[
        str | None, typer.Option("--operation", help="An operation in the journal, instead of a request.")
    ] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Whose operation.")] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Say which rule decides about a request, and every rule that matches; or which rule decided an operation.

    Examples:
      surehand policy explain request.toml
      surehand policy explain --operation op-5f1c2a
    """
    if (request is None) == (operation is None):
        raise InvalidRequest("name a request, or --operation", fix="see `surehand policy explain --help`")
    if operation is not None:
        _explain_operation(operation, principal)
        return
    desk = _desk()
    found = desk.explained(desk.choice_of(_config(config), file, engine), desk.request_of(_read(str(request))))
    lines: list[Line] = [("bold", f"{found['outcome']} by {found['rule']}: {found['reason']}")]
    for look in found["looks"]:
        lines.append("with what the screen says:" if look["with_screen"] else "without the screen:")
        lines.append(f"  categories: {', '.join(look.get('categories', ())) or 'none'}")
        lines += [f"  {_matched(one)}" for one in look.get("matched", ())] or ["  no rule matches"]
    if len(found["looks"]) > 1:
        lines.append("the stricter of both stands")
    out().data(found, lines)


def _matched(one: dict[str, Any]) -> str:
    gave_way = "" if one["stands"] else ", gave way to a rule that covers it"
    covers = f", covers {', '.join(one['covers'])}" if one.get("covers") else ""
    return f"{one['effect']:17} {one['rule']}{covers}{gave_way}: {one['reason']}"


def _explain_operation(operation_id: str, principal: str | None) -> None:
    wanted = {"operation_id": operation_id, "limit": 100, **({} if principal is None else {"principal": principal})}
    with Control() as control:
        events = control.call("audit.show", wanted)["events"]
        revision = control.call("policy").get("revision")
    decided = [one for one in events if one["type"] in ("operation.claimed.v1", "operation.refused.v1")]
    found = [_decision_of(one) for one in decided] or _asked_of(events)
    if not found:
        raise InvalidRequest("the journal has no decision about that operation", fix="`surehand audit show` lists them")
    lines: list[Line] = []
    for one in found:
        # A question holds why policy asks, and the rule only once it is decided.
        by = "" if one["gate"] == "approval" and not one["rule"] else f" by {one['rule'] or 'no rule'}"
        lines.append(("bold", f"{one['outcome']}{by}: {one['reason']}"))
        lines.append(f"  {one['effect']} in {one['app'] or 'no application'} for {one['principal']}")
        if one["answered"]:
            lines.append(f"  {one['answered']}")
        if one["revision"] and one["revision"] != revision:
            lines.append("  the policy is another one since")
    out().data({"operation_id": operation_id, "decisions": found, "revision_now": revision}, lines)


def _decision_of(event: dict[str, Any]) -> dict[str, Any]:
    payload = event["payload"]
    decision = payload.get("decision") or {}
    details = payload.get("details") or {}
    claimed = event["type"] == "operation.claimed.v1"
    answered = ""
    if payload.get("approval_id"):
        answered = f"after a person's yes, approval {payload['approval_id']}"
    elif payload.get("standing"):
        answered = f"by the standing grant {payload['standing']}"
    return {
        "outcome": "allowed" if claimed else f"refused ({payload.get('code')})",
        "rule": decision.get("rule") or details.get("rule") or "",
        "reason": decision.get("reason") or payload.get("message") or "",
        "revision": decision.get("policy_revision") or details.get("revision") or "",
        "effect": payload.get("effect", ""),
        "app": payload.get("app", ""),
        "principal": event["actor"],
        "gate": payload.get("gate", ""),
        "answered": answered,
        "seq": event["seq"],
    }


def _asked_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what policy said of an operation that is not decided yet: that a person has to answer, and why."""
    answers = {"operation.approved.v1": "approved, and not done yet", "operation.denied.v1": "denied"}
    ended = {one["payload"].get("approval_id"): answers[one["type"]] for one in events if one["type"] in answers}
    found = []
    for one in events:
        if one["type"] != "operation.approval_requested.v1":
            continue
        payload = one["payload"]
        approval_id = payload.get("approval_id", "")
        found.append(
            {
                "outcome": "require_approval",
                "rule": "",
                "reason": payload.get("reason", ""),
                "revision": "",
                "effect": payload.get("effect", ""),
                "app": payload.get("app", ""),
                "principal": one["actor"],
                "gate": "approval",
                "answered": f"approval {approval_id}: {ended.get(approval_id, 'nobody has answered yet')}",
                "seq": one["seq"],
            }
        )
    return found


# --- translate ------------------------------------------------------------------------------------------------------


def translate(
    file: Annotated[str, typer.Argument(help="A rule file, .toml.")],
    folder: Annotated[str, typer.Argument(help="Where to write; made where it is missing.")],
    to: Annotated[
        Literal["rego", "cedar"],
        typer.Option("--to", help="rego: surehand.rego and data.json, also for an OPA server."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write the same rules for another engine: as data for a fixed Rego module, or as Cedar policies.

    Examples:
      surehand policy translate policy.toml ./opa --to rego
      surehand policy translate policy.toml ./cedar --to cedar
    """
    files = _desk().translated(_read(file), to)
    for name, text in files.items():
        _write(Path(folder).absolute() / name, text, force=force)
    out().data({"folder": folder, "files": sorted(files)}, [f"wrote {Path(folder) / name}" for name in files])


# --- suggest --------------------------------------------------------------------------------------------------------


def suggest(
    from_journal: Annotated[
        bool, typer.Option("--from-journal", help="From what people approved, in the running daemon's journal.")
    ] = False,
    least: Annotated[int, typer.Option("--least", min=1, help="Only what was approved at least so often.")] = 3,
) -> None:
    """Propose rules for what people approve again and again. Prints a rule file; nothing holds until you keep it.

    Example:
      surehand policy suggest --from-journal > proposed.toml
    """
    from surehand.core.policy.suggest import as_rules, habits_of  # noqa: PLC0415 - loaded by this command alone

    if not from_journal:
        raise InvalidRequest("say where from", fix="surehand policy suggest --from-journal")
    habits = habits_of(_events(), least=least)
    text = as_rules(habits)
    value = {"habits": [{**to_value(one), "why_not": one.why_not} for one in habits], "rules": text}
    out().data(value, text.rstrip("\n").split("\n"))
    if not habits:
        out().note(f"nothing was approved {least} times or more")


def _events() -> list[Event]:
    found: list[Event] = []
    with Control() as control:
        for kind in ("operation.claimed.v1", "operation.refused.v1"):
            after = 0
            while len(found) < _EVENTS_MAX:
                page = control.call("audit.show", {"type": kind, "after_seq": after, "limit": _PAGE})["events"]
                found += [convert(Event, one) for one in page]
                if len(page) < _PAGE:
                    break
                after = page[-1]["seq"]
    return found


# --- the running daemon ---------------------------------------------------------------------------------------------


def show() -> None:
    """Show which policy the running daemon applies, and what one that is only tried would have decided.

    Example:
      surehand policy show
    """
    with Control() as control:
        found = control.call("policy")
    plain = {name: value for name, value in found.items() if name != "shadow"}
    lines: list[Line] = [f"{name:14} {'-' if value is None else value}" for name, value in plain.items()]
    if shadow := found.get("shadow"):
        lines.append(
            f"tried beside it: engine {shadow['engine']}, agreed {shadow['agreed']} times, differed "
            f"{shadow['differed']} times, left out {shadow['left_out']}"
        )
        rows = [[one[name] for name in _SHADOW] for one in shadow["differences"]]
        lines += table(("TIMES", "WHO", "ACTION", "APP", "IS", "BY", "WOULD BE", "BY"), rows) if rows else []
    out().data(found, lines)


_SHADOW: Final = ("count", "principal", "action", "app", "decided", "rule", "would_be", "would_be_rule")


def reload() -> None:
    """Have the running daemon read its policy again now. One that is broken changes nothing, and that is said.

    Example:
      surehand policy reload
    """
    with Control() as control:
        found = control.call("policy.reload")
    if found["reloaded"]:
        out().data(found, f"generation {found['generation']}, revision {found['revision']}")
        return
    lines: list[Line] = [("bad", f"the policy in force stays: {found['reload_failed']}")]
    _given(found, lines, good=False, fix="`surehand policy check` names the place")


# --- shared ---------------------------------------------------------------------------------------------------------


def _desk() -> Any:
    from surehand.runtime import policy_desk  # noqa: PLC0415 - the daemon's own code, loaded by these commands alone

    return policy_desk


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(POLICY_BYTES_MAX + 1)
        with Path(name).open("rb") as file:
            return file.read(POLICY_BYTES_MAX + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidRequest(f"{name} cannot be read: {why}", fix="name a text file that is there") from error


def _given(
    value: dict[str, Any], lines: list[Line], *, good: bool, fix: str, code: str = PolicyDenied.default_code
) -> None:
    """Give a result that is an answer either way; the exit code says which."""
    if good:
        out().data(value, lines)
        return
    if out().as_json:
        # The answer is in the details; whoever reads JSON goes by `ok`, as whoever reads exit codes does.
        raise PolicyDenied("this policy is not as it should be", code=code, fix=fix, details=value)
    out().data(value, lines)
    raise Finished(EXIT_REFUSED)


COMMANDS: Final[dict[str, Any]] = {
    "init": init,
    "check": check,
    "test": try_cases,
    "explain": explain,
    "suggest": suggest,
    "translate": translate,
    "show": show,
    "reload": reload,
}
