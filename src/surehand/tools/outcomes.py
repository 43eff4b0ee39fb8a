"""From the daemon's reply to an answer: what happened, whether it was read back, and what changed (spec §3.5, §12)."""

from __future__ import annotations

from typing import Any, Final

from surehand.client.results import error_of
from surehand.tools.context import Context
from surehand.tools.tool import Answer, refusal

#: The output schema of every tool that acts.
CHANGE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["succeeded", "interrupted", "approval_required"]},
        "operation_id": {"type": "string"},
        "effect": {"type": "string"},
        "change": {"type": "string"},
    },
}

_WORDS: Final = {
    "verified": "done, and read back",
    "executed_unverified": "done; not read back",
}


def answer_of(context: Context, reply: dict[str, Any]) -> Answer:
    """Return what one reply says. Refusals, failures and unknown outcomes are errors; the rest is not."""
    status = reply["status"]
    if status not in {"succeeded", "interrupted", "approval_required"}:
        change = changed(context, reply)
        told = refusal(error_of(reply), operation_id=reply["operation_id"])
        return Answer({**told.data, **change[0]}, "\n".join([told.text, *change[1]]), is_error=True)
    data: dict[str, Any] = {"status": status, "operation_id": reply["operation_id"]}
    if status == "approval_required":
        approval = reply.get("approval") or {}
        data["approval_id"] = approval.get("approval_id")
        line = (
            f"approval required ({data['approval_id']}); nothing happened yet. A person has to answer: wait with "
            f"approval_status, then repeat this call with operation_id {reply['operation_id']}"
        )
        return Answer(data, line)
    receipt = (reply.get("terminal") or {}).get("receipt") or {}
    data |= {"effect": receipt.get("effect"), "route": receipt.get("route")}
    lines = [_headline(status, receipt, reply)]
    if warnings := receipt.get("warnings"):
        data["warnings"] = list(warnings)
        lines.append("warnings: " + ", ".join(warnings))
    more, words = changed(context, reply)
    return Answer({**data, **more}, "\n".join([*lines, *words]))


def _headline(status: str, receipt: dict[str, Any], reply: dict[str, Any]) -> str:
    if status == "interrupted":
        return "interrupted: a person took over; what was delivered is in the change below"
    said = _WORDS.get(str(receipt.get("effect")), str(receipt.get("effect")))
    return f"{said} (this operation had ended before; nothing was done again)" if reply.get("replayed") else said


def changed(context: Context, reply: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what changed before the agent's eyes, as data and as lines; remembers what it was given."""
    after = (reply.get("output") or {}).get("after") or {}
    parts = after.get("windows") or ([after] if "surface" in after else [])
    texts: list[str] = []
    for part in parts:
        if part.get("kind") == "closed":
            texts.append(f"window {part['surface']} closed")
        elif "error" in part:
            texts.append(f"window {part['surface']} cannot be read now: {part['error']['message']}")
        else:
            context.seen(part["surface"], part["scene_id"])
            texts.append(part["text"])
    for window in after.get("opened", ()):
        if "scene_id" in window:
            context.seen(window["surface_id"], window["scene_id"])
        texts.append(f"opened window {window['surface_id']}:\n{window.get('text') or window['title']}")
    gone = [part["surface"] for part in parts if part.get("kind") == "closed"]
    texts += [f"window {surface} closed" for surface in after.get("closed", ()) if surface not in gone]
    data: dict[str, Any] = {"change": "\n".join(texts)} if texts else {}
    if opened := [window["surface_id"] for window in after.get("opened", ())]:
        data["opened"] = opened
    return data, texts
