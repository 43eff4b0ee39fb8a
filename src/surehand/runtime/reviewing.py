"""What an operator looks through: operations, newest first, without reading the whole journal; questions, in pages.

Guarantees: a page costs what it shows and a bounded look beyond it, whatever the journal's length; cursors are
exclusive; an operation stands where its last event does, so that none is on two pages and one that goes on moves to
the front; every event that is used was verified as it was read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core import chain
from surehand.core.history import operation_stream
from surehand.core.policy.plain import in_words
from surehand.core.summary import fits, summarise
from surehand.errors import InvalidRequest
from surehand.model.record import to_value
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session

_STREAMS: Final = "operation/"


async def operations(parts: Parts, _: Session, args: p.Operations) -> dict[str, Any]:
    """List operations that fit, newest first.

    `next` is where the next page begins, None at the journal's beginning. A page may be short and have a next one:
    after `limits.OPERATIONS_LOOKED_MAX` operations the caller decides whether to look further.
    """
    prefix = _STREAMS if args.principal is None else f"{_STREAMS}{args.principal}/"
    wanted = {name: getattr(args, name) for name in ("app", "action", "outcome", "category", "text")}
    times = {"since": _time(args.since_ms), "until": _time(args.until_ms)}
    found: list[dict[str, Any]] = []
    before, looked_at, size = args.before_seq, 0, 0
    while looked_at < limits.OPERATIONS_LOOKED_MAX:
        page = await parts.journal.latest(prefix, before_seq=before, limit=limits.OPERATIONS_PAGE_MAX)
        for stream, seq in page:
            value = summarise(await parts.operations.events(stream))
            before, looked_at = seq, looked_at + 1
            if fits(value, **wanted, **times):
                found.append(value)
                size += len(msgspec.json.encode(value))
            if len(found) >= args.limit or looked_at >= limits.OPERATIONS_LOOKED_MAX or size > limits.REPORT_BYTES_MAX:
                return {"operations": found, "next": before, "looked_at": looked_at}
        if len(page) < limits.OPERATIONS_PAGE_MAX:
            before = None
            break
    return {"operations": found, "next": before, "looked_at": looked_at}


def _time(at_ms: int | None) -> str:
    return "" if at_ms is None else chain.timestamp(at_ms)


async def operation(parts: Parts, _: Session, args: p.AnyOperation) -> dict[str, Any]:
    """Show one operation: what became of it, the rule that decided in plain words, and its events.

    Raises:
        InvalidRequest: the journal knows of none.
    """
    events = await parts.journal.stream(
        operation_stream(args.principal, args.operation_id), limit=limits.OPERATION_EVENTS_MAX
    )
    if not events:
        raise InvalidRequest(
            "the journal knows of no such operation", fix="list them with `surehand audit list`", details=to_value(args)
        )
    summary = summarise(events)
    policy = parts.authority.policy
    rule = next((one.rule for one in policy.rules if one.rule.id == summary.get("rule")), None)
    return {
        "summary": summary,
        "rule_in_words": None if rule is None else in_words(rule),
        # A rule of that name may say something else by now.
        "policy_changed": bool(summary.get("revision")) and summary["revision"] != policy.revision,
        "events": [to_value(event) for event in events],
    }


async def head(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say how long the journal is, its last hash, and what it is and is not."""
    seq, record_hash = await parts.journal.head()
    return {"seq": seq, "record_hash": record_hash, "journal": parts.describe_journal()}


async def mode(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say which mode answers questions, who set it and since when."""
    return parts.approvals.leave.reviews.told()


async def mode_set(parts: Parts, session: Session, args: p.SetMode) -> dict[str, Any]:
    """Set the mode; raising it takes a confirmation, and nothing under way."""
    reviews = parts.approvals.leave.reviews
    under_way = len(parts.gateway.runs())
    await reviews.set(args.mode, session.principal, confirm=args.confirm, under_way=under_way)
    return reviews.told()


async def approvals(parts: Parts, _: Session, args: p.ApprovalsPage) -> dict[str, Any]:
    """List open questions, oldest first, as many as one answer holds; `next` says from where to go on."""
    waiting = sorted(parts.approvals.pending(), key=lambda one: (one.requested_at_ms, one.approval_id))
    found: list[dict[str, Any]] = []
    size, more = 0, False
    for one in waiting:
        if args.after is not None and _place(one.requested_at_ms, one.approval_id) <= _cursor(args.after):
            continue
        value = to_value(one)
        size += len(msgspec.json.encode(value))
        more = bool(found) and (len(found) >= args.limit or size > limits.REPORT_BYTES_MAX)
        if more:
            break
        found.append(value)
    last = found[-1] if found else None
    return {
        "pending": found,
        "total": len(waiting),
        "next": f"{last['requested_at_ms']}.{last['approval_id']}" if last is not None and more else None,
    }


def _place(at_ms: int, approval_id: str) -> tuple[int, str]:
    return at_ms, approval_id


def _cursor(said: str) -> tuple[int, str]:
    at, _, name = said.partition(".")
    if not at.isdecimal() or len(at) > len(str(limits.INTEGER_MAX)):
        raise InvalidRequest("no page of questions begins there", fix="give back what `next` said")
    return int(at), name
