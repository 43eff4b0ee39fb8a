"""What works here, for an agent: its desktop, what can be done on it, what is in its way and how a person mends it.

Holds no secret and no path of this user: the operator's doctor (`surehand doctor`) names those.
"""

from __future__ import annotations

from typing import Any

from surehand.errors import SurehandError
from surehand.runtime import params as p
from surehand.runtime.asking import held
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Desk, Session


async def doctor(parts: Parts, session: Session, _: p.Nothing) -> dict[str, Any]:
    """Say what works here and what does not, before anybody acts."""
    policy = parts.authority.policy
    value: dict[str, Any] = {
        "desktop": None,
        "trust_level": session.trust_level,
        "authority_mode": session.authority_mode,
        "policy_revision": policy.revision,
        "policy_closed": policy.closed is not None,
        "policy_reload_failed": parts.authority.policies is not None and parts.authority.policies.failure is not None,
        "handed_over": session.handed_over(),
        **held(session),
        "findings": await parts.findings.get(),
    }
    if session.desk is None:
        return {**value, "fix": session.no_desk}
    return {**value, **await _desktop(parts, session, desk_of(session))}


async def _desktop(parts: Parts, session: Session, desk: Desk) -> dict[str, Any]:
    value: dict[str, Any] = {
        "desktop": desk.name,
        "isolation": desk.isolation,
        "pictures": desk.screen is not None,
        "host_opt_ins": list(desk.opt_ins),
    }
    try:
        surfaces = await parts.scenes.surfaces(session)
        value["silent"] = [_silent(entry) for observer in desk.observers for entry in await observer.dead_letters()]
    except SurehandError as error:
        return {**value, "error": error.to_value()}
    actions: dict[str, set[str]] = {}
    for surface in (desk.root, *surfaces):
        for actor in desk.actors:
            for fact in actor.capabilities(surface):
                actions.setdefault(fact.action, set()).add(fact.route)
    value["windows"] = len(surfaces)
    value["actions"] = {action: sorted(routes) for action, routes in sorted(actions.items())}
    return value


def _silent(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an application that does not answer, by pid and name; its program's path is nobody's business here."""
    error = entry.get("error") or {}
    app = str(entry.get("app") or "").rpartition("/")[2]
    return {"app": app, "pid": entry.get("pid"), "code": error.get("code"), "fix": error.get("fix")}
