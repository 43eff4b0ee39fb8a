"""What an agent can ask about people: how its approvals stand, and a person's help. It answers nothing itself.

Every wait is woken by what happens, is bounded, and a time-out is a normal answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from surehand import limits
from surehand.core.history import APPROVAL_REQUESTED, APPROVED, CLAIMED, DENIED, operation_stream
from surehand.errors import InvalidRequest
from surehand.model.events import Event
from surehand.runtime import changes, halting
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.people import Ask
from surehand.runtime.session import Session


async def approval(parts: Parts, session: Session, args: p.Approval) -> dict[str, Any]:
    """Say how an approval of this principal stands, once it is decided or the time is over; without a name, all open.

    Without a name a person's hold on the session is waited for instead, and `held` says which is still on.

    Raises:
        InvalidRequest: none of this principal's has that name.
    """
    until = parts.clock.monotonic_ms() + args.wait_ms
    if args.approval_id is None and args.operation_id is None:
        await halting.when_free(parts, session, until)
        return {"approvals": parts.approvals.asked(session.principal), **held(session)}
    while True:
        found = parts.approvals.status(session.principal, args.approval_id, args.operation_id)
        left_ms = until - parts.clock.monotonic_ms()
        if found is None:
            return await _of_an_earlier_run(parts, session.principal, args)
        if found["status"] != "pending" or left_ms <= 0:
            return found
        # Woken by what happens; its time running out is told too.
        await parts.approvals.notices.wait(left_ms)


def held(session: Session) -> dict[str, Any]:
    """Return what an agent is told of a hold that an operator put on it; nothing where there is none."""
    hold = session.brakes.over(session, "paused", "taken_over")
    if hold is None:
        return {}
    reason = {"operator_reason": hold.reason} if hold.reason else {}
    return {"held": {"what": hold.what, "hold_id": hold.hold_id, **reason}}


async def _of_an_earlier_run(parts: Parts, principal: str, args: p.Approval) -> dict[str, Any]:
    """Return what the journal says of a question that is open no more."""
    found: dict[str, Any] | None = None
    events: list[Event] = []
    if args.operation_id is not None:
        events = await parts.operations.events(operation_stream(principal, args.operation_id))
    for event in events:
        approval_id = event.payload.get("approval_id")
        if event.type == APPROVAL_REQUESTED and args.approval_id in (None, approval_id):
            found = {"approval_id": approval_id, "operation_id": args.operation_id, "status": "lost"}
        elif found is None or approval_id != found["approval_id"]:
            continue
        elif event.type == DENIED:
            how = str(event.payload.get("how"))
            found["status"] = how if how in {"unanswered", "changed", "lost"} else "denied"
            if event.payload.get("reason"):
                found["operator_reason"] = event.payload["reason"]
        elif event.type in {APPROVED, CLAIMED}:
            found["status"] = "used" if event.type == CLAIMED else "lost"
    if found is None:
        raise InvalidRequest(
            "no approval of yours has that name",
            fix="name the operation_id; where the daemon restarted since, repeat the call to ask again",
        )
    return found


async def human(parts: Parts, session: Session, args: p.Human) -> dict[str, Any]:
    """Ask a person in and wait until they hand back; asked again with the same words it waits on.

    Whoever cancels takes the request back, unless a person has taken over. Handed back, the windows whose text the
    session was given come as they are now.

    Raises:
        AuthorityDenied: it is to be withdrawn, and a person has taken over.
        InvalidRequest: it is to be withdrawn, and another session asked it; or there never was one of that id.
    """
    before = await changes.before(parts, session, [])
    ask = None if args.request_id is None else parts.people.find(session, args.request_id)
    if ask is None and args.request_id is not None:
        return await parts.people.fate(session, args.request_id)
    if ask is None:
        ask = await parts.people.ask(session, args.kind, args.reason)
    if args.withdraw:
        if ask.session is not session:
            raise InvalidRequest("another session asked this; it takes it back itself, or with its end")
        await parts.people.withdraw(ask)
    try:
        await parts.people.wait(ask, args.wait_ms)
    except asyncio.CancelledError:
        if ask.session is session and ask.status != "taken":
            await parts.people.withdraw(ask)
        raise
    if ask.session is session or ask.session.closed:
        parts.people.heard(ask)
    return await _told(parts, session, ask, before)


async def _told(parts: Parts, session: Session, ask: Ask, before: Any) -> dict[str, Any]:
    value = ask.told()
    if not ask.ended:
        value["expires_at_ms"] = ask.expires_at_ms
    if ask.status in {"done", "declined"}:
        newest = list(session.shown.scenes.items())[-limits.HUMAN_WINDOWS_MAX :]
        before.scenes.update(newest)
        value["after"] = await changes.after(parts, session, before, [])
    return value
