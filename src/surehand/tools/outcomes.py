"""From the daemon's reply to an answer: what happened, whether it was read back, and what changed (spec §3.5, §12).

Both forms of an answer are whole, because clients hand a model one or the other (docs/adr/0009).
"""

from __future__ import annotations

import re
from typing import Any, Final

from surehand import limits
from surehand.client.results import error_of
from surehand.tools.context import Context
from surehand.tools.tool import Answer, refusal

_TEXT: Final = {"type": "string"}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:-]+", re.ASCII)

#: The output schema of every tool that acts, as short as it may be: a list of tools has it many times.
CHANGE: Final[dict[str, Any]] = {"type": "object", "properties": {"status": _TEXT, "change": _TEXT}}

_ENDED_WELL: Final = frozenset({"succeeded", "interrupted", "approval_required"})
#: What an effect is in words.
WORDS: Final = {
    "verified": "done, and read back",
    "executed_unverified": "done; not read back",
}


def answer_of(context: Context, reply: dict[str, Any]) -> Answer:
    """Return what one reply says. Refusals, failures and unknown outcomes are errors; the rest is not."""
    more, words = changed(context, (reply.get("output") or {}).get("after") or {})
    if reply["status"] not in _ENDED_WELL:
        told = refusal(error_of(reply), operation_id=reply["operation_id"])
        return Answer({**told.data, **more}, "\n".join([told.text, *_prepared(reply), *words]), is_error=True)
    data, lines = outcome_of(reply)
    return Answer({**data, **more}, "\n".join([*lines, *words]))


def outcome_of(reply: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what a reply that is no error says, without what changed, as data and as lines."""
    status = reply["status"]
    data: dict[str, Any] = {"status": status, "operation_id": reply["operation_id"]}
    if status == "approval_required":
        data["approval_id"] = (reply.get("approval") or {}).get("approval_id")
        said = f"approval required ({data['approval_id']}); nothing happened yet. A person has to answer: wait with "
        return data, [f"{said}approval_status, then repeat this call with operation_id {reply['operation_id']}"]
    receipt = (reply.get("terminal") or {}).get("receipt") or {}
    data |= {"effect": receipt.get("effect"), "route": receipt.get("route")}
    lines = [_headline(status, receipt, reply)]
    if warnings := receipt.get("warnings"):
        data["warnings"] = list(warnings)
        lines.append("warnings: " + ", ".join(warnings))
    if prepared := reply.get("prepared"):
        data["prepared"] = prepared
    if reply.get("replayed"):
        data["replayed"] = True
    output = {name: value for name, value in (reply.get("output") or {}).items() if name not in _ROUTINE}
    if output:
        data["output"] = output
        lines.append(" ".join(f"{name}={_word(value)}" for name, value in output.items()))
    return data, [*lines, *_prepared(reply)]


def _word(value: Any) -> str:
    """Return a value as part of one line; a text that a program wrote stands in quotes that it cannot end."""
    if not isinstance(value, str) or _PLAIN.fullmatch(value):
        return str(value)
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - hardly any output holds a text

    return quote(value, limits.VALUE_BYTES_MAX)


#: What an output has besides what was asked for: the change, and how many units of input were delivered.
_ROUTINE: Final = frozenset({"after", "delivered", "units"})


def _prepared(reply: dict[str, Any]) -> list[str]:
    names = {"window": "the window", "focus": "the element"}
    first = [names[word] for word in reply.get("prepared") or ()]
    return [f"first gave {' and '.join(first)} the keyboard"] if first else []


def _headline(status: str, receipt: dict[str, Any], reply: dict[str, Any]) -> str:
    if status == "interrupted":
        return "interrupted: a person took over; what was delivered is in the change below"
    said = WORDS.get(str(receipt.get("effect")), str(receipt.get("effect")))
    return f"{said} (this operation had ended before; nothing was done again)" if reply.get("replayed") else said


def changed(context: Context, after: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what changed before the agent's eyes, as data and as lines; remembers what it was given."""
    parts = after.get("windows") or ([after] if "surface" in after else [])
    texts = [text for part in parts if (text := _part(context, part))]
    gone = [part["surface"] for part in parts if part.get("kind") == "closed"]
    gone += [surface for surface in after.get("closed", ()) if surface not in gone]
    texts += [f"window {surface} closed" for surface in gone]
    if parts:
        # What was acted on, and not what changed beside it, is where the agent is.
        context.window = parts[0]["surface"]
    if context.window in gone:
        context.window = None
    for window in after.get("opened", ()):
        if "scene_id" in window:
            context.window = window["surface_id"]
        from surehand.core.scene.describe import quote  # noqa: PLC0415 - not needed by every call

        texts.append(f"opened window {window['surface_id']}:\n{window.get('text') or quote(window['title'])}")
    data: dict[str, Any] = {"change": "\n".join(texts)} if texts else {}
    if opened := [window["surface_id"] for window in after.get("opened", ())]:
        data["opened"] = opened
    if gone:
        data["closed"] = gone
    if not texts and parts:
        texts.append("nothing visible changed")
    return data, texts


def _part(context: Context, part: dict[str, Any]) -> str:
    """Return what one window shows that is different; nothing where nothing is."""
    if part.get("kind") == "closed":
        return ""
    if "error" in part:
        return f"window {part['surface']} cannot be read now: {part['error']['message']}"
    context.window = part["surface"]
    text = str(part["text"])
    return "" if part["kind"] == "diff" and "\n" not in text else text
