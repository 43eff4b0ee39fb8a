"""How many tokens a text costs a model, at most about: an estimate that needs no model's vocabulary.

A piece for every four letters of a word and every two digits, one for every mark and line end, one for every byte of
anything else. For texts of windows that is more than real vocabularies need (`benchmarks/mcp_text.py`). A longer text
never counts less.
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,2}|\n| {2,}|[!-/:-@\[-`{-~]")
_OTHERS: Final = re.compile(r"[^\x00-\x7f]+|[\x00-\x09\x0b-\x1f\x7f]+")


def tokens(text: str) -> int:
    """Return the estimate."""
    count = len(_PIECES.findall(text))
    if not text.isascii() or not text.isprintable():
        count += sum(len(found.encode("utf-8", "surrogatepass")) for found in _OTHERS.findall(text))
    return count
