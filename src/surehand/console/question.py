"""A question as a person reads it: every field of what is signed, as labelled lines, and nothing else beside it.

Pure. What is shown is computed from the record whose hash is signed, and so is the hash; texts in it are visible
already, and the templates escape them once more for HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from surehand import canonical
from surehand.core.approval import presentation_hash
from surehand.core.policy.model import CONSEQUENTIAL
from surehand.model.approval import PendingApproval, Presentation

#: What the effects are called in a heading; the exact name is among the lines.
_VERBS: Final = {
    "batch": "Carry out",
    "process.run": "Run",
    "browser.dialog.accept": "Accept",
    "browser.navigate": "Go to",
    "browser.upload": "Upload to",
    "desktop.app.launch": "Launch",
    "desktop.app.quit": "Quit",
    "desktop.click": "Click",
    "desktop.clipboard.read": "Read the clipboard",
    "desktop.clipboard.write": "Replace the clipboard",
    "desktop.drag": "Drag",
    "desktop.invoke": "Press",
    "desktop.open": "Open",
    "desktop.paste": "Paste into",
    "desktop.perform": "Operate",
    "desktop.press": "Press keys in",
    "desktop.screenshot.desktop": "Take a picture of the whole desktop",
    "desktop.screenshot.window": "Take a picture of",
    "desktop.scroll": "Scroll",
    "desktop.select_option": "Choose in",
    "desktop.set_value": "Fill in",
    "desktop.toggle": "Switch",
    "desktop.type_text": "Type into",
    "desktop.window.close": "Close",
}
_TONES: Final = {"destructive": "bad", "external": "warn"}
#: Parameters that say what an effect without an element is about.
_NAMING: Final = ("name", "uri", "url", "secret_ref")


class Line(NamedTuple):
    """One labelled line. `deep`: it belongs to the line above."""

    label: str
    text: str
    deep: bool = False


def summary(pending: PendingApproval) -> dict[str, Any]:
    """Return what a list shows of a question."""
    shown = pending.presentation
    return {
        "approval_id": pending.approval_id,
        "verb": verb(shown.action),
        "what": about(shown),
        "app": shown.app,
        "place": shown.place,
        "principal": shown.principal,
        "risk": shown.risk,
        "tone": tone(shown.risk),
        "categories": shown.categories,
        "needed": pending.needed,
        "changed": pending.replaces is not None,
        "expires_at_ms": pending.expires_at_ms,
    }


def verb(action: str) -> str:
    """Return what an effect does, in a word or a few."""
    return _VERBS.get(action, action)


def tone(risk: str) -> str:
    """Return how a risk is marked; its name stands beside the colour."""
    return _TONES.get(risk, "")


def about(shown: Presentation) -> str:
    """Return what an effect is aimed at, in short."""
    if shown.element:
        return shown.element
    named = next((str(shown.parameters[name]) for name in _NAMING if shown.parameters.get(name)), "")
    arguments = shown.parameters.get("arguments")
    if named and isinstance(arguments, list | tuple):
        named = " ".join([named, *map(str, arguments)])
    return named or shown.context or shown.place


def lines(shown: Presentation) -> list[Line]:
    """Return everything that is signed but the steps of a plan, in the order in which a person asks about it."""
    found = [
        Line("Asked by", shown.principal),
        Line("Application", shown.app),
        Line("Window", shown.place),
        Line("Element", shown.element),
        Line("Around it", shown.context),
        Line("Action", shown.action),
    ]
    if not shown.steps:
        found += parameters(shown.parameters)
    found += [
        Line("Risk", shown.risk),
        Line("Categories", ", ".join(shown.categories)),
        Line("Why you are asked", shown.reason),
        Line("Picture", shown.crop_hash or ""),
    ]
    return [line for line in found if line.text]


def parameters(value: Mapping[str, Any]) -> list[Line]:
    """Return an action's parameters, a line for each; what is nested is written out as JSON."""
    return [Line(name, _text(item), deep=True) for name, item in sorted(value.items())]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or "(empty)"
    return json.dumps(value, ensure_ascii=False)


def steps(shown: Presentation) -> list[dict[str, Any]]:
    """Return each step of a plan, in order."""
    if not shown.steps:
        return []
    return [
        {
            "verb": verb(str(step.get("action", ""))),
            "what": str(step.get("element", "")),
            "risk": str(step.get("risk", "")),
            "tone": tone(str(step.get("risk", ""))),
            "categories": step.get("categories", ()),
            "lines": [
                Line("Action", str(step.get("action", ""))),
                *([Line("Around it", str(step["context"]))] if step.get("context") else []),
                *parameters(step.get("parameters", {})),
            ],
        }
        for step in shown.parameters.get("steps", ())
    ]


def record(shown: Presentation) -> dict[str, str]:
    """Return the bytes whose hash is signed, and the hash, computed here."""
    return {"bytes": canonical.encode_record(shown).decode("utf-8"), "hash": presentation_hash(shown)}


def why_not_for_a_while(pending: PendingApproval) -> str:
    """Return why no leave for more of the same can come with a yes, in a sentence; empty where it can."""
    shown = pending.presentation
    if shown.risk == "destructive" or not CONSEQUENTIAL.isdisjoint(shown.categories):
        return "What is consequential is asked about each time."
    if shown.steps:
        return "A plan is asked about each time."
    if pending.needed > 1:
        return "What takes several people is asked about each time."
    return "" if shown.app else "Without a proven application there is nothing to give leave for."
