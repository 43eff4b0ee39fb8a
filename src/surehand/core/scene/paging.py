"""Pages of long texts that end between characters as a reader takes them, never inside one."""

from __future__ import annotations

from surehand import limits
from surehand.core.input.graphemes import graphemes


def page_end(text: str, chars: int) -> int:
    """Return where a page of at most `chars` characters ends.

    Args:
        text: The page and what follows it, `limits.GRAPHEME_CHARS_MAX` characters or to the end.
        chars: At least 1. Where not even one whole cluster fits, it is cut: a page is never empty.
    """
    if len(text) <= chars:
        return len(text)
    # A cluster is looked for from a place so far back that it cannot have begun earlier, unless it is a heap of marks.
    begin = max(0, chars - limits.GRAPHEME_CHARS_MAX)
    end = begin
    for cluster in graphemes(text[begin : chars + limits.GRAPHEME_CHARS_MAX]):
        if end + len(cluster) > chars:
            break
        end += len(cluster)
    return end if end > begin else chars
