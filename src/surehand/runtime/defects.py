"""Defects in the log: where they are and of what type, and nothing of what they were about.

The message of an unexpected exception may hold anything, a name from the screen or a text that was to be typed, and the
log is among what people send to each other.
"""

from __future__ import annotations

import logging
import traceback


def log_defect(log: logging.Logger, what: str, error: BaseException) -> None:
    """Log a defect without its message."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, where)
