"""Tools about the session itself: what works here, and ending it."""

from __future__ import annotations

from typing import Any, Final

from surehand.core.scene.describe import quote
from surehand.tools.context import Context
from surehand.tools.people import held_lines
from surehand.tools.seeing import Nothing
from surehand.tools.tool import Answer, Tool

_OBJECT: Final = {"type": "object"}
_ISOLATION: Final = {
    "isolated": "isolated: its programs see nothing of the host",
    "display_only": "display_only: its programs are not confined",
    "shared": "shared: a person uses it",
}


async def doctor(context: Context, _: Nothing) -> Answer:
    """Say what works here and what is in its way."""
    found = await context.ask("doctor", {})
    # Of what is well a count is enough.
    wrong = [one for one in found["findings"] if not one["ok"]]
    data = {**found, "findings": wrong, "findings_ok": len(found["findings"]) - len(wrong)}
    return Answer(data, "\n".join(_lines(data)))


def _lines(found: dict[str, Any]) -> list[str]:
    where = "none" if found["desktop"] is None else f"{found['desktop']} ({_ISOLATION.get(found['isolation'], '')})"
    lines = [
        f"desktop: {where}",
        f"trust level {found['trust_level']}, authority {found['authority_mode']}, policy {found['policy_revision']}",
    ]
    if found["desktop"] is None:
        lines.append(f"fix: {found.get('fix')}")
    if found["policy_closed"]:
        lines.append("policy could not be read: everything is denied until the operator mends it")
    if found.get("policy_reload_failed"):
        lines.append("policy was changed and could not be read: the one before holds until the operator mends it")
    if found["handed_over"] is not None:
        lines.append(f"handed over to a person ({found['handed_over']}): no action until they hand back")
    lines += held_lines(found)
    if "error" in found:
        lines.append(f"the desktop cannot be looked at: {found['error']['message']}")
    lines += [f"{action}: {', '.join(routes)}" for action, routes in found.get("actions", {}).items()]
    for one in found.get("silent", ()):
        lines.append(f"does not answer: {quote(str(one.get('app') or ''))} pid={one.get('pid')} {one.get('code')}")
    for one in found["findings"]:
        lines.append(f"{'missing' if one['needed'] else 'lacking'}: {one['name']}: {one.get('detail')}")
        if one.get("fix"):
            lines.append(f"  fix (for a person): {one['fix']}")
    return lines


async def end_session(context: Context, _: Nothing) -> Answer:
    """End the session; the next call begins another."""
    await context.end()
    return Answer({"ended": True}, "ended: labels are forgotten, everything held is let go. The next call begins anew.")


TOOLS: Final = (
    Tool(
        name="doctor",
        title="What works here",
        description="What works on this desktop, what is in the way, and how a person mends it.",
        kind="read",
        args=Nothing,
        output=_OBJECT,
        handler=doctor,
        aliases=("capabilities",),
    ),
    Tool(
        name="end_session",
        title="End the session",
        description="Let go of everything and forget every label; the next call begins a new session.",
        kind="session",
        args=Nothing,
        output=_OBJECT,
        handler=end_session,
    ),
)
