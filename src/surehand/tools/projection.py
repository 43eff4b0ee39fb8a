"""What of an answer a model is shown: within bounds for one result and for a turn, head and tail kept (spec §6.3).

Guarantees:
- One result has at most `limits.MODEL_RESULT_BYTES_MAX` bytes as text and as structured content; all results of one
  turn have `limits.MODEL_TURN_BYTES_MAX`, and past that each at most `limits.MODEL_RESULT_BYTES_MIN`.
- What fits is byte for byte what it was. What was shortened says so, with its first size and a keyed digest of all of
  it, so that equal results can be told apart without being guessed.
- A line is kept whole or left out: nothing of a screen leaves its quotes because the line before it was cut.
- Nothing is kept here: whatever was left out can be asked for again, in parts.

A turn is what the client says is one (`_meta["surehand/turn"]`), else what no pause of `limits.MODEL_TURN_IDLE_MS`
interrupts. Pictures are bounded by themselves and not counted. Programs (the library, the command line) get all.
"""

from __future__ import annotations

import hmac
import json
from typing import Any, Final, NamedTuple

from surehand.tools.tool import Answer
from surehand.tools.turns import Turn

#: Characters of a text, entries of a list: each step keeps less.
_STEPS: Final = ((8_192, 64), (4_096, 32), (2_048, 16), (1_024, 8), (512, 4), (256, 2), (96, 2), (48, 1))
_DEPTH_MAX: Final = 16
#: What is kept when nothing else fits: how it ended, and what to do about it.
_SALIENT: Final = ("status", "operation_id", "error", "label", "window", "next", "total", "count", "generation")


class _Told(NamedTuple):
    """What a shortened answer says of itself."""

    bytes: int
    digest: str

    def value(self) -> dict[str, Any]:
        return {"truncated": True, "original_bytes": self.bytes, "digest": self.digest}

    def line(self) -> str:
        return (
            f"[surehand left out a part here: it had {self.bytes} bytes (digest {self.digest}). Ask for less: "
            "scope, max_tokens, find, start and limit]"
        )


def projected(answer: Answer, turn: Turn, key: bytes) -> Answer:
    """Return what of an answer the model is shown, and count it.

    Args:
        answer: Whole.
        turn: Of the session, begun.
        key: Of this process; makes the digest say nothing to whoever guesses.
    """
    room = turn.room
    text, data = answer.text.encode("utf-8", "replace"), _encoded(answer.data)
    if len(text) > room or len(data) > room:
        told = _Told(max(len(text), len(data)), _digest(key, text, data))
        answer = Answer(
            {**_reduced(answer.data, room - len(_encoded(told.value())) - 32), "projection": told.value()},
            _shortened(answer.text, room, told.line()) if len(text) > room else answer.text,
            answer.images,
            answer.is_error,
        )
        text, data = answer.text.encode("utf-8", "replace"), _encoded(answer.data)
    turn.spent += max(len(text), len(data))
    return answer


def _digest(key: bytes, text: bytes, data: bytes) -> str:
    # The length in front keeps a text that ends like the data from being taken for another pair.
    mac = hmac.new(key, len(text).to_bytes(8, "big") + text + data, "sha256")
    return mac.hexdigest()[:32]


def _encoded(value: Any) -> bytes:
    # As the protocol sends it: without blanks, and every character as it is.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


# --- texts ----------------------------------------------------------------------------------------------------------


def _shortened(text: str, room: int, marker: str) -> str:
    """Return head and tail of a text, in whole lines, with a line between them that says what is missing."""
    left = room - len(marker.encode()) - 2
    lines = text.split("\n")
    head = _fitting(lines, left // 2)
    tail = _fitting(lines[len(head) :][::-1], left - sum(_size(line) for line in head))[::-1]
    if not head:
        # One endless line: its beginning, which no quote that it opens can lead out of.
        head = [lines[0].encode("utf-8", "replace")[: max(0, left // 2)].decode("utf-8", "ignore") + "…"]
        tail = []
    return "\n".join([*head, marker, *tail])


def _fitting(lines: list[str], room: int) -> list[str]:
    found: list[str] = []
    for line in lines:
        room -= _size(line)
        if room < 0:
            break
        found.append(line)
    return found


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


# --- structured content ---------------------------------------------------------------------------------------------


def _reduced(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Return the value with long texts and lists cut in the middle, as little as makes it fit.

    Types stay as they were, so that it still is what the tool's output schema says.
    """
    if len(_encoded(data)) <= room:
        return data
    for chars, entries in _STEPS:
        found: dict[str, Any] = _cut(data, chars, entries, 0)
        if len(_encoded(found)) <= room:
            return found
    chars, entries = _STEPS[-1]
    salient: dict[str, Any] = {name: _cut(data[name], chars, entries, 0) for name in _SALIENT if name in data}
    return salient if len(_encoded(salient)) <= room else {}


def _cut(value: Any, chars: int, entries: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 2 * chars else f"{value[:chars]}…{len(value) - 2 * chars} more…{value[-chars:]}"
    if depth >= _DEPTH_MAX and isinstance(value, dict | list | tuple):
        return type(value)()
    if isinstance(value, dict):
        return {name: _cut(item, chars, entries, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        kept = value if len(value) <= 2 * entries else [*value[:entries], *value[-entries:]]
        return [_cut(item, chars, entries, depth + 1) for item in kept]
    return value
