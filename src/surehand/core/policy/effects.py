"""The names of all effects, for whoever checks that a rule speaks of one: see `categories.effect_name`."""

from __future__ import annotations

import typing
from typing import Final

from surehand.core.policy.categories import PROCESS_RUN
from surehand.core.policy.inputs import READ_EFFECTS
from surehand.model import actions

_WITH_OPERATION: Final = (actions.App, actions.Window, actions.Clipboard, actions.History, actions.Tab, actions.Dialog)
_BROWSER_ONLY: Final = frozenset({"navigate", "history", "tab", "upload", "dialog"})


def _names() -> frozenset[str]:
    operations = {
        str(kind.__struct_config__.tag): typing.get_args(typing.get_type_hints(kind)["op"]) for kind in _WITH_OPERATION
    }
    operations["screenshot"] = ("window", "desktop")
    found = {PROCESS_RUN, *READ_EFFECTS, *(name.replace("desktop.", "browser.", 1) for name in READ_EFFECTS)}
    for kind in actions.TARGET_KINDS:
        prefixes = ("browser",) if kind in _BROWSER_ONLY else ("desktop", "browser")
        tails = tuple(f"{kind}.{op}" for op in operations[kind]) if kind in operations else (kind,)
        found.update(f"{prefix}.{tail}" for prefix in prefixes for tail in tails)
    return frozenset(found)


#: Every name that `effect_name` and the reads of spec §5.6 can give.
EFFECTS: Final = _names()
