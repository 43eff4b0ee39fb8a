"""The evidence page: what the journal says of every operation, the auditor's verdict, and pictures where there are any.

One file that needs nothing else. Guarantees:
- No script, no link out of the page, and a policy in the page that allows none: pictures from within, one style sheet.
- Whatever came from a journal, a screen or a recorder is hostile here: escaped, and made visible where it would hide or
  reorder what stands beside it.
- What the journal vouches for and what only a recorder says stand apart and say so.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, Final

from surehand import limits
from surehand.cli.film import Frame, picture, shot, store
from surehand.client.display import escape

_TONES: Final = {
    "succeeded": "good",
    "interrupted": "warn",
    "approval pending": "warn",
    "refused": "warn",
    "denied": "warn",
    "no end": "bad",
    "outcome_unknown": "bad",
    "failed": "bad",
    "withheld": "bad",
}
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
_ABOUT: Final = ("source", "limits")
_TRUST: Final = {
    "A": "The agent and Surehand ran as the same user: this restrains an agent that has Surehand's tools alone.",
    "B": "The daemon and whoever approves ran as other users than the agent.",
}


def page(found: dict[str, Any], film: Sequence[Frame] = ()) -> str:
    """Return the page of an `audit.report` answer.

    Args:
        found: The answer; its `verdict` may be that of an auditor that was run elsewhere.
        film: Pictures by operation id.
    """
    operations = [
        Operation(number, stream, events)
        for number, (stream, events) in enumerate(_dict(found.get("operations")).items(), 1)
    ]
    shown = {
        one.operation_id: [frame for frame in film if frame.operation_id == one.operation_id] for one in operations
    }
    by_id = {(one.principal, one.operation_id): one for one in operations}
    for one in operations:
        if unknown := by_id.get((one.principal, str(one.claim.get("reconciles")))):
            unknown.looked_into_by = one.operation_id
    pictures = store([frame for frames in shown.values() for frame in frames])
    body = [
        _top(found, len(operations)),
        _note(has_film=bool(film), left_out=found.get("left_out")),
        _overview(operations),
        _strip(operations, shown),
        f"<h2>Operations</h2>{''.join(_operation(one, shown[one.operation_id]) for one in operations)}"
        if operations
        else "",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Surehand evidence</title><style>{_style()}</style></head>"
        f"<body><main>{''.join(body)}</main>{pictures}</body></html>\n"
    )


@functools.cache
def _style() -> str:
    return resources.files("surehand.cli").joinpath("evidence.css").read_text("utf-8")


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode("ascii")
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


# --- what the events of one operation say ---------------------------------------------------------------------------


class Operation:
    """The events of one operation, read once."""

    def __init__(self, number: int, stream: str, events: Any) -> None:
        self.number = number
        parts = stream.split("/", 2)
        self.principal, self.operation_id = (parts[1], parts[2]) if len(parts) == 3 else ("", stream)
        self.events: list[dict[str, Any]] = [one for one in events if isinstance(one, dict)]
        self.claim = self.last("operation.claimed.v1")
        self.terminal = self.last("operation.terminal.v1")
        self.receipt = _dict(self.terminal.get("receipt")) or _dict(self.claim.get("receipt"))
        #: The operation that was sent once somebody had looked into this one's unknown outcome (spec §5.7).
        self.looked_into_by = ""

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a type."""
        return [event for event in self.events if event.get("type") == kind]

    def last(self, kind: str) -> dict[str, Any]:
        """Return the payload of the last event of a type; empty where there is none."""
        found = self.of_type(kind)
        return _dict(found[-1].get("payload")) if found else {}

    @property
    def refusals(self) -> list[dict[str, Any]]:
        """The payloads of refusals, before and after a claim, in order."""
        kinds = ("operation.refused.v1", "operation.released.v1")
        return [_dict(event.get("payload")) for event in self.events if event.get("type") in kinds]

    @property
    def action(self) -> str:
        """What it wanted to do."""
        refusal = self.refusals[-1] if self.refusals else {}
        return str(self.receipt.get("action") or self.claim.get("effect") or refusal.get("effect") or "")

    @property
    def outcome(self) -> str:
        """How it stands: the terminal, else the last thing that happened to it."""
        if self.terminal:
            return str(self.terminal.get("kind", ""))
        for event in reversed(self.events):
            match event.get("type"):
                case "operation.refused.v1" | "operation.released.v1":
                    return "refused"
                case "operation.denied.v1":
                    return "denied"
                case "operation.approval_requested.v1" | "operation.approved.v1":
                    return "approval pending"
                case "operation.claimed.v1":
                    return "no end"
                case _:
                    continue
        return str(self.events[-1].get("type", "")) if self.events else ""

    @property
    def took_ms(self) -> int | None:
        """Milliseconds between start and end, as the receipt says."""
        if not self.terminal or not self.receipt.get("route"):
            return None  # recovery ended it; nobody knows how long it took
        start, end = self.receipt.get("started_at_ms"), self.receipt.get("finished_at_ms")
        return end - start if isinstance(start, int) and isinstance(end, int) else None

    @property
    def proof(self) -> str:
        """The last record of it: number and the beginning of its hash."""
        last = self.events[-1] if self.events else {}
        return f"{last.get('seq')}:{str(last.get('record_hash'))[:12]}"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# --- the page as a whole ----------------------------------------------------------------------------------------------


def _top(found: dict[str, Any], count: int) -> str:
    verdict, head = _dict(found.get("verdict")), _dict(found.get("head"))
    counts = _dict(verdict.get("counts"))
    good = verdict.get("ok") is True
    level = str(found.get("trust_level", ""))
    facts = [
        ("Operations", count, ""),
        ("Events", verdict.get("events"), ""),
        ("Claims and terminals", f"{counts.get('claims', '?')} and {counts.get('terminals', '?')}", ""),
        ("Receipts held and found", verdict.get("held", 0), ""),
        ("Authority", found.get("authority_mode"), ""),
        ("Journal", f"{_dict(found.get('journal')).get('tier', '?')} tier", ""),
        ("Trust level", f"{level}. {_TRUST.get(level, '')}", "wide"),
        ("Head", f"{head.get('seq')}:{head.get('record_hash')}", "wide hash"),
    ]
    cells = "".join(
        f'<div class="{tone}"><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value, tone in facts
        if value is not None
    )
    return (
        '<div class="top"><h1>Evidence</h1><span class="soft">Surehand</span></div>'
        f'<div class="card banner {"good" if good else "bad"}"><strong>{"Whole" if good else "Not whole"}</strong>'
        f"<p>The independent auditor says: {escape(verdict.get('reason', 'nothing'))}.</p>"
        f'<p class="small soft">{escape(" · ".join(str(verdict[name]) for name in _ABOUT if verdict.get(name)))}</p>'
        f'<dl class="facts">{cells}</dl></div>'
    )


def _note(*, has_film: bool, left_out: Any) -> str:
    pictures = (
        " Pictures and their captions are what the agent's recorder kept before it acted; no journal vouches for them."
        if has_film
        else ""
    )
    return (
        '<p class="soft small">Decisions, receipts, refusals and approvals below are records of the journal, '
        f"which hold no text of screens or requests.{pictures} Nothing on this page is an instruction.</p>"
        + (f'<p class="card">{escape(left_out)} older operations are not on this page.</p>' if left_out else "")
    )


def _overview(operations: Sequence[Operation]) -> str:
    if not operations:
        return "<p>There are no operations.</p>"
    rows = "".join(
        f'<tr><td class="n">{one.number}</td><td><a href="#operation-{one.number}">{escape(one.operation_id)}</a></td>'
        f"<td>{escape(one.action)}</td><td>{_pill(one.outcome)}</td><td>{escape(_why(one))}</td>"
        f"<td>{escape(one.receipt.get('route', ''))}</td>"
        f'<td class="n">{"" if one.took_ms is None else one.took_ms}</td><td class="hash">{escape(one.proof)}</td></tr>'
        for one in operations
    )
    head = "".join(
        f"<th>{name}</th>"
        for name in ("", "operation", "action", "outcome", "effect or code", "route", "ms", "evidence")
    )
    return f'<h2>Overview</h2><div class="card scroll"><table><tr>{head}</tr>{rows}</table></div>'


def _why(one: Operation) -> str:
    if one.terminal:
        return str(one.terminal.get("code") or one.receipt.get("effect", ""))
    return str(one.refusals[-1].get("code", "")) if one.refusals else ""


def _pill(outcome: str) -> str:
    return f'<span class="pill {_TONES.get(outcome, "")}">{escape(outcome.replace("_", " "))}</span>'


def _strip(operations: Sequence[Operation], shown: dict[str, list[Frame]]) -> str:
    figures = "".join(
        f'<a href="#operation-{one.number}"><figure>{picture(frame)}'
        f"<figcaption>{one.number} · {escape(frame.caption)}<br>{_pill(one.outcome)}</figcaption></figure></a>"
        for one in operations
        for frame in shown[one.operation_id][:1]
    )
    return f'<h2>Film</h2><div class="card strip">{figures}</div>' if figures else ""


# --- one operation ----------------------------------------------------------------------------------------------------


def _operation(one: Operation, frames: Sequence[Frame]) -> str:
    caption = frames[-1].caption if frames else one.action
    sections = [
        _section("Policy", _decision(one)),
        _section("Refused", _refusals(one)),
        _section("Approval", _approvals(one)),
        _section("Receipt", _receipt(one)),
        _section("A person's word", _resolution(one)),
    ]
    pictures = "".join(shot(frame) for frame in frames) or '<div class="none">no picture was recorded</div>'
    return (
        f'<article class="card op" id="operation-{one.number}"><header><h3>{one.number} · {escape(caption)}</h3>'
        f'{_pill(one.outcome)}<span class="soft small"><code>{escape(one.operation_id)}</code> of '
        f"{escape(one.principal)}</span></header><div>{pictures}</div><div>{''.join(sections)}</div>"
        f'<div class="full">{_events(one)}</div></article>'
    )


def _section(title: str, body: str) -> str:
    return f"<section><h4>{title}</h4>{body}</section>" if body else ""


def _pairs(rows: Sequence[tuple[str, Any]]) -> str:
    body = "".join(
        f"<dt>{escape(name)}</dt><dd{_class_of(value)}>{escape(_shown(value))}</dd>"
        for name, value in rows
        if value not in (None, "", [], {})
    )
    return f'<dl class="pairs">{body}</dl>' if body else ""


def _class_of(value: Any) -> str:
    return ' class="hash"' if isinstance(value, str) and _HASH.fullmatch(value) else ""


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, dict) else str(value)


def _decision(one: Operation) -> str:
    decision = _dict(one.claim.get("decision"))
    if decision:
        outcome = str(decision.get("outcome", ""))
        if one.claim.get("approval_id") or one.claim.get("standing"):
            outcome += ", after a person's yes"
        rows = [("outcome", outcome), *((name, decision.get(name)) for name in ("rule", "reason", "obligations"))]
        return _pairs([*rows, ("revision", str(decision.get("policy_revision", ""))[:16])])
    denied = next((one_ for one_ in reversed(one.refusals) if one_.get("code") == "policy_denied"), None)
    if denied is None:
        return ""
    return _pairs([("outcome", "deny"), ("rule", denied.get("rule")), ("reason", denied.get("message"))])


def _refusals(one: Operation) -> str:
    return "".join(
        _pairs(
            [
                ("gate", refusal.get("gate")),
                ("code", refusal.get("code")),
                ("because", refusal.get("message")),
                ("what changed", refusal.get("what")),
                ("application", refusal.get("app")),
                ("repeated", refusal.get("coalesced") or None),
            ]
        )
        for refusal in one.refusals
    )


def _approvals(one: Operation) -> str:
    return "".join(_answers(one))


def _answers(one: Operation) -> Iterator[str]:
    for event in one.events:
        payload = _dict(event.get("payload"))
        match event.get("type"):
            case "operation.approval_requested.v1":
                yield _pairs([("asked", event.get("occurred_at")), ("as shown", payload.get("presentation_hash"))])
            case "operation.approved.v1" | "operation.denied.v1" as kind:
                word = "approved" if kind == "operation.approved.v1" else "denied"
                yield _pairs(
                    [
                        (word, event.get("occurred_at")),
                        ("by", payload.get("approver")),
                        ("how", payload.get("how")),
                        ("in their words", payload.get("reason")),
                    ]
                )


def _receipt(one: Operation) -> str:
    if not one.terminal:
        return ""
    receipt = one.receipt
    evidence = _dict(receipt.get("evidence"))
    app, place = one.claim.get("app"), one.claim.get("place")
    return _pairs(
        [
            ("code", one.terminal.get("code")),
            ("message", one.terminal.get("message")),
            ("effect", receipt.get("effect")),
            ("application", app),
            ("place", place),
            ("route", receipt.get("route")),
            ("took", None if one.took_ms is None else f"{one.took_ms} ms"),
            ("isolation", receipt.get("isolation")),
            ("authority", f"{receipt.get('authority_mode')}, trust level {receipt.get('trust_level')}"),
            ("looked into", one.claim.get("reconciles")),
            ("looked into by", one.looked_into_by),
            ("standing grant", one.claim.get("standing")),
            ("warnings", receipt.get("warnings")),
            ("action hash", receipt.get("action_hash")),
            ("seen before", evidence.get("before")),
            ("seen after", evidence.get("after")),
            ("compared", _compared(one, evidence)),
        ]
    )


def _compared(one: Operation, evidence: dict[str, Any]) -> str | None:
    """Say why the same hash twice is no mistake: what was acted upon may look as before, its effect is elsewhere."""
    before = evidence.get("before")
    if before is None or before != evidence.get("after"):
        return None
    said = "the element reads the same"
    if one.receipt.get("effect") != "verified":
        return said
    asked = _dict(_dict(one.claim.get("request")).get("verification")).get("kind")
    return f"{said}; verified by {str(asked).replace('_', ' ')}" if asked else f"{said}; verified by its own state"


def _resolution(one: Operation) -> str:
    return "".join(
        _pairs(
            [
                ("says", str(_dict(event.get("payload")).get("verdict", "")).replace("_", " ")),
                ("by", event.get("actor")),
                ("at", event.get("occurred_at")),
            ]
        )
        for event in one.of_type("operation.resolved.v1")
    )


def _events(one: Operation) -> str:
    rows = "".join(
        f'<tr><td class="n">{escape(event.get("seq"))}</td><td>{escape(event.get("occurred_at"))}</td>'
        f"<td>{escape(event.get('type'))}</td><td>{escape(event.get('actor', ''))}</td>"
        f'<td class="hash">{escape(str(event.get("record_hash"))[:24])}</td></tr>'
        for event in one.events
    )
    payloads = "".join(f"<pre>{escape(event.get('seq'))} {escape(_payload(event))}</pre>" for event in one.events)
    return (
        '<h4>Records</h4><div class="scroll"><table><tr><th>seq</th><th>at</th><th>event</th><th>by</th><th>hash</th>'
        f"</tr>{rows}</table></div><details><summary>payloads</summary>{payloads}</details>"
    )


def _payload(event: dict[str, Any]) -> str:
    text = json.dumps(event.get("payload"), ensure_ascii=False, indent=1, sort_keys=True)
    most = limits.EVIDENCE_PAYLOAD_CHARS_MAX
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} more characters are in the journal"
