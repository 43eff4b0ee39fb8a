"""How far what people are shown can be trusted, in a few facts that every page of the console has in sight."""

from __future__ import annotations

from typing import Any

from surehand.runtime.parts import Parts


def posture(parts: Parts) -> dict[str, Any]:
    """Say how far what people see can be trusted: what the daemon's host, journal and configuration are."""
    journal = parts.describe_journal()
    return {
        "trust_level": parts.config.trust_level,
        "authority_mode": parts.config.authority,
        "mode": parts.approvals.leave.reviews.mode,
        "tier": str(journal.get("tier", "")),
        "read_only": journal.get("read_only") is not None,
        "approvals": len(parts.approvals.pending()),
        "requests": len(parts.people.open()),
    }
