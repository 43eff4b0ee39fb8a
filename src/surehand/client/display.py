"""HTML for notebooks. Everything that came from a screen is hostile here: escaped, made visible, never a link.

Control and bidirectional formatting characters are shown as their code points, so that a name cannot reorder or hide
what stands beside it.
"""

from __future__ import annotations

import html
import unicodedata
from typing import Any, Final

_STYLE: Final = (
    "font-family:ui-monospace,monospace;font-size:12px;line-height:1.45;color:#1c2430;background:#f7f8fa;"
    "border:1px solid #d6dae1;border-radius:6px;padding:8px 10px;overflow:auto;max-height:32em;text-align:left"
)
_COLOURS: Final = {
    "succeeded": "#1a7f4b",
    "interrupted": "#9a6700",
    "approval_required": "#9a6700",
    "outcome_unknown": "#b3261e",
    "failed": "#b3261e",
    "withheld": "#b3261e",
    "refused": "#b3261e",
}
_ROW: Final = "border:0;padding:1px 12px 1px 0;vertical-align:top;text-align:left"


#: Draw nothing although their category says letter, mark or symbol; variation selectors but for those of emoji.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for codes in ((0x180B, 0x1810), (0xFE00, 0xFE0E), (0xE0100, 0xE01F0)) for code in range(*codes)
}
_BREAKS: Final = frozenset({"Zl", "Zp"})


def is_unseen(character: str) -> bool:
    """Say whether a character steers, hides or breaks a line instead of showing; newlines do as well."""
    category = unicodedata.category(character)
    return category[0] == "C" or category in _BREAKS or character in _BLANK


def visible(text: str) -> str:
    """Return text with everything that would act without showing written as `⟨U+202E⟩`; newlines stay."""
    return "".join(
        f"⟨U+{ord(character):04X}⟩" if character != "\n" and is_unseen(character) else character for character in text
    )


def escape(text: object) -> str:
    """Return text safe to stand in HTML, in content and in attributes."""
    return html.escape(visible(str(text)), quote=True)


def scene_html(title: str, text: str, note: str) -> str:
    """Return a scene's text form as a block."""
    return (
        f'<div class="surehand-scene" style="{_STYLE}">'
        f'<div style="color:#5b6472">{escape(title)} · {escape(note)}</div>'
        f'<pre style="margin:6px 0 0;white-space:pre-wrap;background:none;border:0">{escape(text)}</pre></div>'
    )


def receipt_html(reply: dict[str, Any]) -> str:
    """Return a reply as a small table: what became of it, and how it is known."""
    status = str(reply.get("status", ""))
    terminal = reply.get("terminal") or {}
    receipt = terminal.get("receipt") or {}
    rows: list[tuple[str, Any]] = [("operation", reply.get("operation_id"))]
    rows += [(name, receipt.get(name)) for name in ("action", "effect", "route", "isolation", "principal")]
    rows.append(("authority", _authority(receipt)))
    if receipt:
        rows.append(("took", f"{receipt.get('finished_at_ms', 0) - receipt.get('started_at_ms', 0)} ms"))
    rows += [("warning", warning) for warning in receipt.get("warnings", ())]
    if reply.get("replayed"):
        rows.append(("replayed", "the stored outcome of this id"))
    if proof := reply.get("proof"):
        rows.append(("evidence", f"#{proof.get('seq')} {str(proof.get('record_hash'))[:16]}"))
    if approval := reply.get("approval"):
        rows.append(("approval", approval.get("approval_id")))
    return _table(status, rows)


def batch_html(replies: list[dict[str, Any]]) -> str:
    """Return one table for each step."""
    return "".join(receipt_html(reply) for reply in replies)


def target_html(target: dict[str, Any]) -> str:
    """Return one observed element as a small table."""
    rows = [(name, target.get(name)) for name in ("label", "role", "name", "value", "context")]
    rows.append(("states", ", ".join(target.get("states") or ())))
    return _table("", rows)


def _authority(receipt: dict[str, Any]) -> str | None:
    if not receipt:
        return None
    return f"{receipt.get('authority_mode')}, trust level {receipt.get('trust_level')}"


def _table(status: str, rows: list[tuple[str, Any]]) -> str:
    colour = _COLOURS.get(status, "#5b6472")
    head = f'<div style="color:{colour};font-weight:600">{escape(status.replace("_", " "))}</div>' if status else ""
    body = "".join(
        f'<tr style="background:none"><td style="{_ROW};color:#5b6472">{escape(name)}</td>'
        f'<td style="{_ROW}">{escape(value)}</td></tr>'
        for name, value in rows
        if value is not None and value != ""
    )
    return (
        f'<div class="surehand-receipt" style="{_STYLE}">{head}'
        f'<table style="border-collapse:collapse;border:0;margin:0">{body}</table></div>'
    )
