"""Phrases by list, and which lists a text speaks of (spec §6.2).

A phrase is written as people see it. `=post` is a whole label and nothing else, because inside a longer one the word
says little; `удал*` is the beginning of a word, for languages that inflect; `*حذف*` stands anywhere, for languages
that write particles on to a word. Phrases of scripts without spaces, and pictures, stand anywhere without saying so.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from surehand import limits
from surehand.core.risk.text import UNSPACED, flat, folded, readings, shown, tokens_of
from surehand.errors import InvalidRequest

_STEM_CHARS: Final = 3
#: From this many letters on a phrase keeps its meaning without its accents.
_FOLDED_CHARS: Final = 6
#: What follows a label and is none of its words: an accelerator in brackets, a shortcut after a tab.
#: Looks at a run of blanks once, however long it is.
_TAIL: Final = re.compile(r"(?:(?<!\s)\s++)?\([_&]?\w\)\s*|\t.*")

_Names = tuple[str, ...]


class _Table:
    """Phrases for one kind of reading."""

    def __init__(self) -> None:
        #: By first word: the words, the beginning of the one after them ("" for none), the list.
        self.rows: dict[str, list[tuple[_Names, str, str]]] = {}
        self.whole: dict[_Names, set[str]] = {}
        self.stems: dict[str, list[tuple[str, str]]] = {}

    def lists_of(self, words: _Names) -> set[str]:
        """Return the lists of which a phrase stands among these words."""
        found: set[str] = set()
        for position, word in enumerate(words):
            for phrase, last, name in self.rows.get(word, ()):
                end = position + len(phrase)
                if words[position:end] == phrase and (
                    not last or (words[end : end + 1] and words[end].startswith(last))
                ):
                    found.add(name)
            for stem, name in self.stems.get(word[:_STEM_CHARS], ()):
                if word.startswith(stem):
                    found.add(name)
        return found

    def add(self, kind: str, words: _Names, name: str) -> None:
        """Take in a phrase: a `row` of words, a `whole` label, a `stem` that its last word begins with."""
        if kind == "whole":
            self.whole.setdefault(words, set()).add(name)
        elif kind == "row":
            self.rows.setdefault(words[0], []).append((words, "", name))
        elif len(words) > 1:
            self.rows.setdefault(words[0], []).append((words[:-1], words[-1], name))
        else:
            self.stems.setdefault(words[0][:_STEM_CHARS], []).append((words[0], name))


class Words:
    """The phrases, arranged for looking up. What was looked up is remembered: labels come back again and again."""

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        """Arrange pairs of a phrase and the name of its list.

        Raises:
            InvalidRequest: a phrase has no word in it, or the beginning of a word is too short to mean one.
        """
        self._close, self._loose = _Table(), _Table()
        #: By first character: what stands anywhere in a text, and its lists.
        self._parts: dict[str, dict[str, set[str]]] = {}
        for phrase, name in phrases:
            self._add(phrase, name)
        self._remembered = functools.lru_cache(maxsize=limits.LABELS_READ_MAX)(self._look_up)

    def lists_in(self, text: str) -> frozenset[str]:
        """Return the names of the lists of which a phrase occurs in the text.

        What is too long for anybody to have read it also speaks of something external: it is asked about, not guessed
        at.
        """
        if len(text) <= limits.LABEL_CHARS_REMEMBERED_MAX:
            return self._remembered(text)
        most = limits.LABEL_CHARS_READ_MAX
        # One character may stand for a sentence: what counts is how long the text is as it is drawn.
        drawn = text if text.isascii() else shown(text[:most])
        if max(len(text), len(drawn)) > most:
            return self._look_up(drawn[:most]) | {"external"}
        return self._look_up(text)

    def _add(self, phrase: str, name: str) -> None:
        words = tokens_of(phrase)
        if phrase.startswith("*") and phrase.endswith("*") and (part := flat(phrase.strip("*"))):
            self._add_part(part, name)
        elif phrase.startswith("=") and words:
            self._add_words("whole", words, name)
        elif phrase.endswith("*") and words and sum(map(len, words)) >= _STEM_CHARS:
            self._add_words("stem", words, name)
        elif phrase.endswith("*") or phrase.startswith(("*", "=")):
            raise InvalidRequest(f"the phrase {phrase} has too few letters")
        elif UNSPACED.search(phrase) or (not words and flat(phrase)):
            self._add_part(flat(phrase), name)
        elif words:
            self._add_words("row", words, name)
        else:
            raise InvalidRequest("a phrase is empty")

    def _add_part(self, part: str, name: str) -> None:
        self._parts.setdefault(part[0], {}).setdefault(part, set()).add(name)

    def _add_words(self, kind: str, words: _Names, name: str) -> None:
        """Take in a phrase, for loose readings only where it cannot be mistaken for a word of another language.

        Without their accents short words of one language are words of another: `köp` and `kop`, `öde` and `ode`.
        """
        self._close.add(kind, words, name)
        bare = tuple(map(folded, words))
        if (bare == words and kind != "stem") or (bare != words and sum(map(len, bare)) >= _FOLDED_CHARS):
            self._loose.add(kind, bare, name)

    def _tables(self, text: str) -> Iterator[tuple[_Table, _Names]]:
        """Yield each reading with the phrases it is compared with: people leave accents out as well."""
        for words, loose in readings(text):
            yield self._loose, words
            if not loose:
                yield self._close, words

    def _look_up(self, text: str) -> frozenset[str]:
        found: set[str] = set()
        for table, words in self._tables(text):
            found |= table.lists_of(words)
        for table, words in self._tables(_TAIL.sub("", text)):
            found |= table.whole.get(words, set())
        if not text.isascii():
            run_together = flat(text)
            for first in self._parts.keys() & set(run_together):
                for part, names in self._parts[first].items():
                    if part in run_together:
                        found |= names
        return frozenset(found)
