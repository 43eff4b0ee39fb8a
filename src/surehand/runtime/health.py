"""Whether everything is as it should be, for an operator: what is wrong comes with what helps.

Looks only. Names no path of the machine: `surehand doctor` in a terminal does.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

from surehand.core.input import stop_key
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session


async def health(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Return facts, each `{name, ok, needed, detail, fix?}`, with what is wrong first."""
    facts = [_daemon(parts), _journal(parts), _policy(parts), _keys(parts), _trust(parts), _stop_key(parts)]
    facts += [*_budgets(parts), *await _vault(parts)]
    facts += [
        _fact(str(one["name"]), ok=one["ok"], detail=one.get("detail", ""), fix=one.get("fix"), needed=one["needed"])
        for one in await parts.findings.get()
    ]
    return {"facts": sorted(facts, key=lambda one: (one["ok"], not one["needed"]))}


def _fact(name: str, *, ok: bool, detail: str, fix: str | None = None, needed: bool = False) -> dict[str, Any]:
    value: dict[str, Any] = {"name": name, "ok": ok, "needed": needed, "detail": detail}
    return value if ok or fix is None else {**value, "fix": fix}


def _so_many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _daemon(parts: Parts) -> dict[str, Any]:
    unresolved = len(parts.operations.unresolved())
    return _fact(
        "daemon",
        ok=not unresolved,
        detail=f"{metadata.version('surehand')}; {_so_many(len(parts.sessions), 'session')}, "
        f"{_so_many(unresolved, 'unknown outcome')}",
        fix="look at what is there now, then say what happened: surehand resolve OPERATION happened|not_happened",
    )


def _journal(parts: Parts) -> dict[str, Any]:
    journal = parts.describe_journal()
    fault = journal.get("read_only")
    if fault is not None:
        return _fact("journal", ok=False, needed=True, detail=str(fault.get("message")), fix=fault.get("fix"))
    return _fact(
        "journal", ok=True, needed=True, detail=f"{journal.get('events', 0)} events, tier {journal.get('tier')}"
    )


def _policy(parts: Parts) -> dict[str, Any]:
    policies, policy = parts.authority.policies, parts.authority.policy
    failure = None if policies is None else policies.failure
    mend = "`surehand policy check` names the place"
    if policy.closed is not None:
        return _fact("policy", ok=False, needed=True, detail=policy.closed, fix=mend)
    if failure is not None:
        detail = f"the one in force stays, the file cannot be used: {failure}"
        return _fact("policy", ok=False, detail=detail, fix=mend)
    engine = "builtin" if policies is None else policies.ruling.choice.engine
    return _fact("policy", ok=True, needed=True, detail=f"engine {engine}, {len(policy.rules)} rules")


def _keys(parts: Parts) -> dict[str, Any]:
    keys = parts.describe_keys()
    behind = [one["approver"] for one in keys.get("approvers", ()) if one.get("passphrase")]
    credentials = keys.get("credentials") or ()
    total = len(keys.get("approvers", ()))
    ok = bool(behind or credentials) or (total > 0 and parts.config.trust_level == "B")
    return _fact(
        "approvers",
        ok=ok,
        detail=f"{_so_many(total, 'key')}, {len(behind)} of them behind a passphrase, "
        f"{_so_many(len(credentials), 'security key')}",
        fix="make one that can approve what is consequential: surehand keys create NAME --passphrase",
    )


def _trust(parts: Parts) -> dict[str, Any]:
    if parts.config.trust_level == "B":
        return _fact("trust level", ok=True, detail="B: agents, daemon and approvers are separate users")
    detail = "A: an agent with a shell of this user can reach keys and sockets; Surehand restrains its tools only"
    return _fact("trust level", ok=True, detail=detail)


def _stop_key(parts: Parts) -> dict[str, Any]:
    presses = parts.config.stop_key
    detail = f"{presses}, pressed where a person sits at a desktop, stops its agents"
    if presses == stop_key.OFF:
        detail = "none, by the configuration; `surehand halt` stops agents"
    return _fact("stop key", ok=True, detail=detail)


async def _vault(parts: Parts) -> list[dict[str, Any]]:
    """Say whether secrets can be entered; nothing where this host keeps none."""
    secrets = parts.gateway.secrets
    if secrets is None:
        return []
    found = await secrets.listed()
    vault = found["vault"]
    if vault is None:
        return [_fact("vault", ok=True, detail="none yet; `surehand secret set` makes one")]
    if error := vault.get("error"):
        return [_fact("vault", ok=False, detail=error["message"], fix=error.get("fix", "surehand secret list"))]
    enrolled = sum(one["reference"].startswith("vault:") for one in found["secrets"])
    return [_fact("vault", ok=True, detail=f"open, its key in: {vault['key']}; {_so_many(enrolled, 'secret')}")]


def _budgets(parts: Parts) -> list[dict[str, Any]]:
    listed = parts.authority.budgets.listed(parts.config.ceilings)
    return [
        _fact(
            "budget",
            ok=False,
            detail=f"{one['principal']} has used it up and is paused",
            fix=f"surehand budgets renew {one['principal']}",
        )
        for one in listed
        if one["paused"]
    ]
