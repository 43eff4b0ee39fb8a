"""Reads what the policy rules need from files: the lists that come with Surehand, and the operator's rule file.

A rule file that cannot be read or is broken gives the policy that denies everything, at the start as at a reload
(spec §6.1). The lists that come with Surehand must be there: without them nothing would be consequential.
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from surehand.core.policy import vocabulary
from surehand.core.policy.evaluate import Policy
from surehand.core.policy.toml_rules import load_policy, parse_policy
from surehand.core.policy.vocabulary import Vocabulary


@functools.cache
def load_vocabulary() -> Vocabulary:
    """Return the word and application lists, read once.

    Raises:
        InvalidRequest: a list is broken.
        OSError: a list is missing, so this installation is not whole.
    """
    data = resources.files("surehand.core.policy").joinpath("data")
    return vocabulary.parse_vocabulary(
        data.joinpath(vocabulary.WORDS_FILE).read_text("utf-8"),
        data.joinpath(vocabulary.APPS_FILE).read_text("utf-8"),
    )


def read_policy(path: Path | None) -> Policy:
    """Return the operator's policy, the defaults where none is named, or the one that denies everything.

    Ownership is the caller's to check first (`config.check_operator_owned`); `policy.closed` says what is wrong.
    """
    if path is None:
        return parse_policy("")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return load_policy(None)
    return load_policy(text)
