"""The word lists and application lists of `data/`, parsed (spec §6.2).

The files are read by the runtime, which hands their text over: core opens nothing. Lists only ever make an answer
stricter, so a file that is missing or broken is an error at the start, not an empty list.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from typing import Any, Final

import msgspec

from surehand.core.policy.model import CONSEQUENTIAL
from surehand.errors import InvalidRequest

#: Names of the two data files beside this module, for whoever reads them.
WORDS_FILE: Final = "words.toml"
APPS_FILE: Final = "apps.toml"

GENERIC: Final = "generic"
CREDENTIAL_CONTROLS: Final = "credential_controls"
_LISTS: Final = CONSEQUENTIAL - {"external", "process_run"} | {GENERIC, CREDENTIAL_CONTROLS}

#: Scripts that put no spaces between words: Han, kana, hangul.
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_NOT_WORD: Final = re.compile(r"\W+")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """Phrases by their first word, and phrases of unspaced scripts, each with the lists that hold it."""

    spaced: dict[str, tuple[tuple[tuple[str, ...], str], ...]]
    unspaced: tuple[tuple[str, str], ...]

    def lists_in(self, text: str) -> frozenset[str]:
        """Return the names of the lists of which a phrase occurs in the text."""
        found: set[str] = set()
        tokens = tokens_of(text)
        for position, token in enumerate(tokens):
            for phrase, name in self.spaced.get(token, ()):
                if tokens[position : position + len(phrase)] == phrase:
                    found.add(name)
        if not text.isascii() and _UNSPACED.search(text):
            flat = plain(text)
            found.update(name for phrase, name in self.unspaced if phrase in flat)
        return frozenset(found)


class AppLists(msgspec.Struct, frozen=True, kw_only=True):
    """Names of applications, without case: what executables are called, and what applications claim to be."""

    sensitive: frozenset[str]
    sensitive_claimed: frozenset[str]
    terminals: frozenset[str]
    terminals_claimed: frozenset[str]
    run_dialogs: frozenset[str]
    run_dialogs_claimed: frozenset[str]


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """Both, as policy inputs are built with them."""

    words: Words
    apps: AppLists


def plain(text: str) -> str:
    """Return text as it is compared: compatibility forms, no case, nothing invisible, no mnemonic underscores."""
    if text.isascii():
        return text.casefold().replace("_", "")
    # The Turkish dotless and dotted i lose and gain their dot when the case changes, so neither keeps it here.
    normal = unicodedata.normalize("NFKC", text).casefold().replace("\u0131", "i").replace("\u0307", "")
    return "".join(c for c in normal if c != "_" and unicodedata.category(c) != "Cf")


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared; an apostrophe joins, everything else parts."""
    return tuple(_NOT_WORD.sub(" ", plain(text).replace("'", "").replace("\u2019", "")).split())


def parse_vocabulary(words_text: str, apps_text: str) -> Vocabulary:
    """Read the texts of both data files.

    Raises:
        InvalidRequest: a file is not TOML, or lacks a list.
    """
    return Vocabulary(words=_parse_words(_load(words_text, WORDS_FILE)), apps=_parse_apps(_load(apps_text, APPS_FILE)))


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{name} is not TOML: {error}") from error


def _parse_words(value: dict[str, Any]) -> Words:
    if set(value) != _LISTS:
        raise InvalidRequest(f"{WORDS_FILE} has other lists than {', '.join(sorted(_LISTS))}")
    spaced: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    unspaced: list[tuple[str, str]] = []
    for name, languages in value.items():
        for phrases in languages.values():
            for phrase in phrases:
                if _UNSPACED.search(phrase):
                    unspaced.append((plain(phrase), name))
                elif tokens := tokens_of(phrase):
                    spaced.setdefault(tokens[0], []).append((tokens, name))
    return Words(spaced={token: tuple(found) for token, found in spaced.items()}, unspaced=tuple(unspaced))


def _parse_apps(value: dict[str, Any]) -> AppLists:
    try:
        lists = {
            (group, kind): frozenset(str(name).casefold() for name in names)
            for group, kinds in value.items()
            for kind, names in kinds.items()
        }
        return AppLists(
            sensitive=lists["sensitive", "executables"],
            sensitive_claimed=lists["sensitive", "claimed"],
            terminals=lists["terminals", "executables"] | lists["terminals", "desktop_ids"],
            terminals_claimed=lists["terminals", "claimed"],
            run_dialogs=lists["run_dialogs", "executables"],
            run_dialogs_claimed=lists["run_dialogs", "claimed"],
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise InvalidRequest(f"{APPS_FILE} lacks a list: {error}") from error
