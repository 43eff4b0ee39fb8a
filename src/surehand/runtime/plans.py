"""One question for a whole form: a batch whose steps fill and submit it is approved as one plan (spec §6.4).

Guarantees:
- The person sees every step, in order, and signs the hash of exactly that; a step that would be another is not covered.
- Nothing of the batch is begun before the plan has its yes, and each step uses it at most once.
- Policy is asked again at each step. A plan answers a question; it changes no deny.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from surehand.core import approval as rules
from surehand.core.batch import step_id
from surehand.errors import InternalError, SurehandError
from surehand.model.approval import Presentation
from surehand.model.decision import Decision
from surehand.model.outcome import Reply
from surehand.model.request import Batch
from surehand.model.targets import ElementTarget, QueryTarget, SurfaceTarget
from surehand.runtime import asserted
from surehand.runtime import params as p
from surehand.runtime.approvals import told
from surehand.runtime.parts import Parts
from surehand.runtime.run import Run
from surehand.runtime.session import Session

Foreseen = tuple[Run, Decision]
#: What a person can be shown before it is done: a place of a picture and a program show nothing yet.
_FORESEEN: Final = (ElementTarget, QueryTarget, SurfaceTarget)


async def plan(parts: Parts, session: Session, args: p.Plan) -> dict[str, Any]:
    """Ask once about a batch whose steps the caller presents one by one; `approval` is there while nobody answered."""
    waits = await agree(parts, session, args.batch)
    asserted.told(session, None if waits is None else waits.approval)
    return {} if waits is None else {"operation_id": args.batch.operation_id, "approval": waits.approval}


async def agree(parts: Parts, session: Session, batch: Batch) -> Reply | None:
    """Ask once for all steps, where several of them need a person and all are about one window.

    Returns the reply to give while nobody has answered; None where the steps may be begun, each as it is decided then.

    Raises:
        ApprovalDenied, ApprovalUnanswered.
    """
    if len(batch.steps) < 2 or not all(isinstance(step.target, _FORESEEN) for step in batch.steps):
        return None
    steps: list[Foreseen] = []
    for index, step in enumerate(batch.steps):
        request = msgspec.structs.replace(step, operation_id=step_id(batch, index))
        stored = await parts.gateway.operations.load(session.principal, request.operation_id)
        if stored is not None and stored.claim is not None:
            return None  # it was begun: what was done is told again, and the rest finds the plan's yes
        try:
            steps.append(await parts.gateway.foresee(session, request))
        except SurehandError:
            return None  # what cannot be looked at now is decided when its turn comes
    asking = [decision for _, decision in steps if decision.outcome == "require_approval"]
    windows = {run.aim.window for run, _ in steps}
    # What the operator's mode answers it answers when its turn comes.
    answered = all(parts.approvals.leave.reviews.may_answer(run.document, one) for run, one in steps if one in asking)
    no_plan = len(asking) < 2 or len(windows) > 1 or any(decision.outcome == "deny" for _, decision in steps)
    if no_plan or answered:
        return None
    shown = [_shown(run, decision) for run, decision in steps]
    pending = await parts.gateway.approvals.plan(
        rules.present_plan(shown, reason=asking[0].reason),
        operation_id=batch.operation_id,
        needed=max(decision.obligations.approvals_needed for decision in asking),
    )
    if pending is None:
        return None
    return Reply(
        operation_id=f"{batch.operation_id}:0",
        status="approval_required",
        approval={**told(pending), "steps": len(batch.steps)},
    )


def _shown(run: Run, decision: Decision) -> Presentation:
    document = run.document
    if document is None:
        raise InternalError("a step without its facts")
    return rules.present(
        document,
        run.request.action,
        reason=decision.reason,
        action_hash=run.action_hash,
        releases_output=decision.obligations.release == "ask",
    )
