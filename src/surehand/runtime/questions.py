"""What people ask about one question, and about those that are over (spec §6.4); see `runtime.approvals`."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

from surehand.errors import InvalidRequest
from surehand.runtime import params as p
from surehand.runtime.crops import is_shown
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session


async def show(parts: Parts, _: Session, args: p.ApprovalName) -> dict[str, Any]:
    """Return one question and how it stands, or how it ended."""
    found = parts.approvals.show(args.approval_id)
    if found is None:
        raise InvalidRequest(
            "there is no such question; those from before the daemon's start are in the journal",
            fix="list them with `surehand approvals list`",
            details={"id": args.approval_id},
        )
    return found


async def picture(parts: Parts, _: Session, args: p.ApprovalName) -> dict[str, Any]:
    """Return the picture that belongs to an open question, exactly as its hash was signed; none where it has none."""
    found = await show(parts, _, args)
    presentation = (found["pending"] or {}).get("presentation", {})
    png = await parts.approvals.crops.get(args.approval_id)
    if not is_shown(png, presentation.get("crop_hash")):
        return {}
    return {"png_base64": base64.b64encode(png or b"").decode("ascii"), "crop_hash": presentation["crop_hash"]}


async def ended(parts: Parts, _: Session, args: p.EndedPage) -> dict[str, Any]:
    """Return how the newest questions ended, newest first."""
    return {"ended": parts.approvals.ended.newest(args.limit)}


#: As `runtime.control` lists its methods.
QUESTIONS: Final[dict[str, tuple[type[Any], Callable[..., Awaitable[dict[str, Any]]]]]] = {
    "approvals.show": (p.ApprovalName, show),
    "approvals.ended": (p.EndedPage, ended),
    "approvals.picture": (p.ApprovalName, picture),
}
