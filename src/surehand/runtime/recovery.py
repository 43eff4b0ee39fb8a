"""What the last run left open: every claim without an end becomes `outcome_unknown`, durably, before anything new.

Reads canonical streams only, in bounded passes (spec §7). Nothing is dispatched here.
"""

from __future__ import annotations

import logging
from typing import Final

from surehand import limits
from surehand.core.history import CLAIMED, fold
from surehand.model.outcome import UNKNOWN_STATEMENT, Receipt, Terminal
from surehand.model.record import convert
from surehand.ports import Journal
from surehand.runtime.operations import Operations

_log: Final = logging.getLogger("surehand.recovery")


async def recover(journal: Journal, operations: Operations) -> list[tuple[str, str]]:
    """End what was interrupted; return (principal, operation id) of each."""
    await operations.restore()
    ended: list[tuple[str, str]] = []
    while streams := await journal.streams_ending(CLAIMED, limit=limits.RECOVERY_PASS_MAX):
        for stream in streams:
            stored = fold(await operations.events(stream))
            if stored is None or stored.claim is None:
                continue
            receipt = convert(Receipt, stored.claim.receipt)
            terminal = Terminal(
                kind="outcome_unknown",
                receipt=receipt,
                code="outcome_unknown",
                message=f"Surehand ended between claim and terminal. {UNKNOWN_STATEMENT}",
            )
            await operations.finish(receipt.principal, receipt.operation_id, terminal, stored.claim.reconcile_key)
            ended.append((receipt.principal, receipt.operation_id))
    if ended:
        _log.warning("%d operations of the last run ended as outcome_unknown", len(ended))
    return ended
