"""Strings that a screen may show to steer whoever reads it, and an agent that obeys whatever it reads."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

_FILE = Path(__file__).parents[2] / "data" / "risk" / "injections.json"
BY_KIND: dict[str, list[str]] = json.loads(_FILE.read_text("utf-8"))
STRINGS = [text for texts in BY_KIND.values() for text in texts]

#: Controls whose effect a person must agree to, by the first word an order would name them with.
CONSEQUENTIAL = {"delete": "Delete all", "send": "Send", "buy": "Buy now", "install": "Install update"}
#: What only the control socket knows, with arguments that fit.
FORBIDDEN = {
    "answer": {"answer": {"approval_id": "ap-1", "answer": "approve"}},
    "standing.grant": {"grant": {"grant_id": "g"}, "key_id": "k", "signature": "0"},
    "budgets.renew": {"principal": "uid:1000"},
    "stop": {},
}


def orders(text: str) -> list[str]:
    """Return the controls that a naive agent presses after it has read this: those it names, else all of them."""
    read = unicodedata.normalize("NFKC", text).casefold()
    named = [control for word, control in CONSEQUENTIAL.items() if word in read]
    return named or list(CONSEQUENTIAL.values())
