"""What an operator can ask on the control socket: approvals, standing grants, evidence, desktops, the daemon itself.

None of these methods exists on the agent socket (spec §11.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.history import operation_stream
from surehand.errors import InvalidRequest
from surehand.model.events import Event
from surehand.model.record import to_value
from surehand.runtime import frames, halting, health, policy_asking, reviewing
from surehand.runtime import params as p
from surehand.runtime.enrolling import SECRETS
from surehand.runtime.parts import Parts
from surehand.runtime.questions import QUESTIONS
from surehand.runtime.session import Session

Method = Callable[[Parts, Session, Any], Awaitable[dict[str, Any]]]
_PAGE: Final = 1_000


async def answer(parts: Parts, _: Session, args: p.Answer) -> dict[str, Any]:
    """Take a signed answer."""
    return await parts.approvals.answer(args.answer)


async def resolve(parts: Parts, session: Session, args: p.Resolve) -> dict[str, Any]:
    """Record a person's word about an unknown outcome; the terminal stays."""
    stored = await parts.operations.load(args.principal, args.operation_id)
    if stored is None or not stored.unresolved:
        raise InvalidRequest(
            "that operation has no unresolved outcome",
            fix="list them with `surehand status`",
            details={"operation_id": args.operation_id},
        )
    await parts.operations.resolve(args.principal, args.operation_id, args.verdict, session.principal)
    return {"operation_id": args.operation_id, "verdict": args.verdict}


async def standing_grant(parts: Parts, _: Session, args: p.GiveStanding) -> dict[str, Any]:
    """Give a standing grant that an approver signed."""
    await parts.approvals.grant(args.grant, args.key_id, args.signature)
    return {"grant_id": args.grant.grant_id}


async def credentials_invite(parts: Parts, _: Session, args: p.Invite) -> dict[str, Any]:
    """Open an invitation to enrol a credential that an approver signed."""
    return parts.approvals.credentials.invite(args.invitation, args.signature)


async def credentials_begin(parts: Parts, _: Session, args: p.InvitationCode) -> dict[str, Any]:
    """Say what the page asks the authenticator for."""
    return parts.approvals.credentials.begin(args.code)


async def credentials_enrol(parts: Parts, _: Session, args: p.Enrol) -> dict[str, Any]:
    """Enrol a credential."""
    return {"credential": to_value(await parts.approvals.credentials.enrol(args.registration))}


async def credentials_remove(parts: Parts, session: Session, args: p.CredentialName) -> dict[str, Any]:
    """Take a credential away."""
    return {"credential": to_value(await parts.approvals.credentials.remove(args.key_id, session.principal))}


async def standing_list(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """List standing grants with what is left of each."""
    return {"grants": await parts.approvals.leave.listed()}


async def standing_revoke(parts: Parts, session: Session, args: p.RevokeStanding) -> dict[str, Any]:
    """Take a standing grant back."""
    await parts.approvals.leave.revoke(args.grant_id, session.principal)
    return {"grant_id": args.grant_id}


async def requests(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """List what agents ask people to do."""
    return {"requests": parts.people.open()}


async def requests_take(parts: Parts, session: Session, args: p.RequestName) -> dict[str, Any]:
    """Take a desktop over from the agent that asked, and from every other one of its principal."""
    return await parts.people.take(args.request_id, session.principal)


async def requests_done(parts: Parts, session: Session, args: p.HandBack) -> dict[str, Any]:
    """Hand back."""
    return await parts.people.answer(args.request_id, session.principal, "done", args.note)


async def requests_decline(parts: Parts, session: Session, args: p.HandBack) -> dict[str, Any]:
    """Say that no person will do it."""
    return await parts.people.answer(args.request_id, session.principal, "declined", args.note)


async def ps(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say who is connected, what runs, which outcomes are unresolved."""
    return {
        "sessions": [
            {
                "session": one.label,
                "principal": one.principal,
                "role": one.role,
                "client": one.client,
                "desktop": None if one.desk is None else one.desk.name,
            }
            for one in parts.sessions.values()
        ],
        "desktops": parts.desks.listed(),
        "in_flight": [run.told() for run in parts.gateway.runs()],
        "unresolved": [
            {"principal": principal, "operation_id": operation_id}
            for principal, operation_id in parts.operations.unresolved()
        ],
        "approvals": len(parts.approvals.pending()),
        "requests": len(parts.people.open()),
        "budgets": parts.authority.budgets.listed(parts.config.ceilings),
        "holds": halting.listed(parts),
    }


async def budgets(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say what each principal has spent of its budget."""
    return {"budgets": parts.authority.budgets.listed(parts.config.ceilings)}


async def budgets_renew(parts: Parts, session: Session, args: p.PrincipalName) -> dict[str, Any]:
    """Let a principal go on with a new budget."""
    spent = await parts.authority.budgets.renew(args.principal, session.principal)
    return {"principal": args.principal, "spent": to_value(spent)}


async def stop(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """End the daemon in order, once this answer is out."""
    asyncio.get_running_loop().call_soon(parts.stop)
    return {"stopping": True}


async def policy(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say which policy is in force, whether its engine answers, and what the one that is tried would do."""
    policies = parts.authority.policies
    if policies is None:
        found = parts.authority.policy
        return {"revision": found.revision, "closed": found.closed, "rules": len(found.rules)}
    return await policies.describe()


async def policy_reload(parts: Parts, session: Session, _: p.Nothing) -> dict[str, Any]:
    """Read the policy again now; where that fails the one in force stays."""
    policies = parts.authority.policies
    if policies is None:
        raise InvalidRequest("this host's policy is given to it, not read from a file")
    return {"reloaded": policies.reload(), **(await policy(parts, session, p.Nothing()))}


async def keys(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say which keys there are; never the keys."""
    return parts.describe_keys()


async def audit_verify(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Have the independent auditor check a copy of the journal."""
    return {"journal": parts.describe_journal(), **await parts.verify_journal()}


async def audit_show(parts: Parts, _: Session, args: p.Show) -> dict[str, Any]:
    """Show events."""
    if args.operation_id is not None and args.principal is not None:
        stream = operation_stream(args.principal, args.operation_id)
        events = await parts.journal.stream(stream, limit=args.limit)
        return {"events": [to_value(event) for event in events]}
    found: list[dict[str, Any]] = []
    after = args.after_seq
    while len(found) < args.limit and (page := await parts.journal.read(after_seq=after, limit=_PAGE)):
        for event in page:
            wanted = (
                (args.operation_id is None or event.stream.endswith(f"/{args.operation_id}"))
                and (args.principal is None or event.stream.startswith(f"operation/{args.principal}/"))
                and (args.type is None or event.type == args.type)
                and (args.session is None or event.context.get("session") == args.session)
            )
            if wanted and len(found) < args.limit:
                found.append(to_value(event))
        after = page[-1].seq
    return {"events": found, "after_seq": after}


async def audit_report(parts: Parts, _: Session, args: p.Report) -> dict[str, Any]:
    """Return what an evidence page shows: the newest operations with their events, and the auditor's verdict.

    As many as `limits.REPORT_BYTES_MAX` holds; how many older ones are left out is said.
    """
    kept = _Newest()
    after = args.after_seq
    while page := await parts.journal.read(after_seq=after, limit=_PAGE):
        for event in page:
            if event.stream.startswith("operation/"):
                kept.add(event)
        after = page[-1].seq
    head = await parts.journal.head()
    return {
        "operations": kept.operations,
        "left_out": len(kept.left_out),
        "head": {"seq": head[0], "record_hash": head[1]},
        "verdict": await parts.verify_journal(),
        "journal": parts.describe_journal(),
        "trust_level": parts.config.trust_level,
        "authority_mode": parts.config.authority,
    }


class _Newest:
    """The operations that began last, whole, within a bound: a long journal must not fill memory or a frame."""

    def __init__(self) -> None:
        self.operations: dict[str, list[dict[str, Any]]] = {}
        #: Their streams, so that none comes back with its beginning missing.
        self.left_out: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._size = 0

    def add(self, event: Event) -> None:
        if event.stream in self.left_out:
            return
        value = to_value(event)
        size = len(msgspec.json.encode(value))
        self.operations.setdefault(event.stream, []).append(value)
        self._sizes[event.stream] = self._sizes.get(event.stream, 0) + size
        self._size += size
        while self._size > limits.REPORT_BYTES_MAX:
            oldest = next(iter(self.operations))
            del self.operations[oldest]
            self._size -= self._sizes.pop(oldest)
            self.left_out.add(oldest)


async def desktop_start(parts: Parts, _: Session, args: p.StartDesktop) -> dict[str, Any]:
    """Start a desktop that the daemon owns."""
    size = (args.width, args.height)
    record = await parts.desks.start(args.name, size, binds=args.binds, writable=args.writable)
    return {"name": record.name, "display": record.display, "isolation": record.isolation}


async def desktop_stop(parts: Parts, _: Session, args: p.DesktopName) -> dict[str, Any]:
    """End a desktop that the daemon owns."""
    await parts.desks.stop(args.name)
    return {"name": args.name}


async def desktop_list(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """List desktops."""
    return {"desktops": parts.desks.listed()}


async def desktop_launch(parts: Parts, _: Session, args: p.Launch) -> dict[str, Any]:
    """Start a program in a desktop, as its operator."""
    return {"pid": await parts.desks.launch(args.name, args.argv)}


CONTROL: Final[dict[str, tuple[type[Any], Method]]] = {
    "approvals": (p.ApprovalsPage, reviewing.approvals),
    "operations": (p.Operations, reviewing.operations),
    "operation": (p.AnyOperation, reviewing.operation),
    "audit.head": (p.Nothing, reviewing.head),
    "mode": (p.Nothing, reviewing.mode),
    "mode.set": (p.SetMode, reviewing.mode_set),
    "health": (p.Nothing, health.health),
    "answer": (p.Answer, answer),
    "resolve": (p.Resolve, resolve),
    "standing.grant": (p.GiveStanding, standing_grant),
    "credentials.invite": (p.Invite, credentials_invite),
    "credentials.begin": (p.InvitationCode, credentials_begin),
    "credentials.enrol": (p.Enrol, credentials_enrol),
    "credentials.remove": (p.CredentialName, credentials_remove),
    "standing.list": (p.Nothing, standing_list),
    "standing.revoke": (p.RevokeStanding, standing_revoke),
    "requests": (p.Nothing, requests),
    "requests.take": (p.RequestName, requests_take),
    "requests.done": (p.HandBack, requests_done),
    "requests.decline": (p.HandBack, requests_decline),
    "ps": (p.Nothing, ps),
    "stop": (p.Nothing, stop),
    "halt": (p.Halt, halting.halt),
    "pause": (p.Pause, halting.pause),
    "resume": (p.Resume, halting.resume),
    "holds": (p.Nothing, halting.holds),
    "watch.now": (p.Nothing, frames.now),
    "watch.frame": (p.Frame, frames.frame),
    "take": (p.TakeDesktop, halting.take),
    "hand_back": (p.DesktopName, halting.hand_back),
    "budgets": (p.Nothing, budgets),
    "budgets.renew": (p.PrincipalName, budgets_renew),
    "policy": (p.Nothing, policy),
    "policy.reload": (p.Nothing, policy_reload),
    "policy.rules": (p.RulesPage, policy_asking.rules),
    "policy.ask": (p.PolicyQuestion, policy_asking.ask),
    "keys": (p.Nothing, keys),
    **QUESTIONS,
    "audit.verify": (p.Nothing, audit_verify),
    "audit.show": (p.Show, audit_show),
    "audit.report": (p.Report, audit_report),
    **SECRETS,
    "desktop.start": (p.StartDesktop, desktop_start),
    "desktop.stop": (p.DesktopName, desktop_stop),
    "desktop.list": (p.Nothing, desktop_list),
    "desktop.launch": (p.Launch, desktop_launch),
}
