"""The word lists and application lists of `data/`, parsed (spec §6.2).

The files are read by the runtime, which hands their text over: core opens nothing. Lists only ever make an answer
stricter, so a file that is missing or broken is an error at the start, not an empty list.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final

import msgspec

from surehand.core.policy.model import CONSEQUENTIAL
from surehand.core.risk.controls import HELPING
from surehand.core.risk.text import plain
from surehand.core.risk.words import Words
from surehand.errors import InvalidRequest

__all__ = ["APPS_FILE", "WORDS_FILE", "AppLists", "Vocabulary", "parse_vocabulary", "plain"]

#: Names of the two data files beside this module, for whoever reads them.
WORDS_FILE: Final = "words.toml"
APPS_FILE: Final = "apps.toml"

_LISTS: Final = CONSEQUENTIAL - {"external", "process_run"} | HELPING


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
    return Words(
        (phrase, name) for name, languages in value.items() for phrases in languages.values() for phrase in phrases
    )


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
