"""What people ask about one question, and about those that are over (spec §6.4); see `runtime.approvals`."""

from __future__ import annotations

from typing import Any, Final

from surehand.errors import InvalidRequest
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session


async def show(parts: Parts, _: Session, args: p.ApprovalName) -> dict[str, Any]:
    """Return one question and how it stands, or how it ended."""
    found = parts.approvals.show(args.approval_id)
    if found is None:
        raise InvalidRequest(
            "no question of this daemon's run has that id",
            fix="list them with `surehand approvals list`",
            details={"id": args.approval_id},
        )
    return found


async def ended(parts: Parts, _: Session, args: p.EndedPage) -> dict[str, Any]:
    """Return how the newest questions ended, newest first."""
    return {"ended": parts.approvals.ended.newest(args.limit)}


#: As `runtime.control` lists its methods.
QUESTIONS: Final = {
    "approvals.show": (p.ApprovalName, show),
    "approvals.ended": (p.EndedPage, ended),
}
