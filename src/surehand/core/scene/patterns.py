"""Patterns that a caller gives: RE2 only, so that no pattern takes longer than its text is long (spec §8.4)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from surehand import limits
from surehand.errors import InvalidRequest


@lru_cache(maxsize=256)
def pattern(text: str, *, literal: bool = False, ignore_case: bool = False) -> Any:
    """Return a compiled pattern over UTF-8 bytes; `literal` takes the text for itself.

    Raises:
        InvalidRequest: RE2 does not take it. The message does not repeat it.
    """
    options = re2.Options()
    options.max_mem = limits.QUERY_REGEX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    options.literal = literal
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(text.encode("utf-8", "replace"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        # Not in the message: that is kept for ever, and the pattern may hold what somebody looks for.
        raise InvalidRequest("not a pattern RE2 takes", fix=f"{reason}; see the RE2 syntax page") from error
