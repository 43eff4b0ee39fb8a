"""How the console page is told from others: by what its windows claim to be, and by an address that leads to it.

Both only deny (spec §6.2). The page needs a session whatever leads there; an agent is not even to knock.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final
from urllib.parse import urlsplit

from surehand import limits
from surehand.model.actions import Action, App, Navigate, Open, Paste, SetValue, Tab, TypeText

#: What every title of the page ends with, without case; browsers put their own name behind another dash.
CONSOLE_TITLE: Final = "surehand console"

_ADDRESS: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^\s\"'<>]+")
#: An address without a scheme, as it is typed: a host, a colon and the port.
_TYPED: Final = re.compile(r"(?<![\w.:-])(?:\[[0-9a-f:.]{2,45}\]|[\w.-]{1,253}):(\d{1,5})(?![\w:])")


def leads_to(action: Action, ports: AbstractSet[int]) -> bool:
    """Say whether an action names an address on one of these ports.

    Whatever its host: any name may point to this machine, and asking would tell somebody.
    """
    if not ports:
        return False
    if isinstance(action, Open):
        return _is_on(action.uri, ports) or _names(action.uri, ports)
    if isinstance(action, Navigate | Tab):
        return _is_on(action.url or "", ports) or _names(action.url or "", ports)
    if isinstance(action, App):
        return any(_names(text, ports) for text in action.arguments)
    if isinstance(action, TypeText | Paste):
        return _names(action.text or "", ports)
    return isinstance(action, SetValue) and _names(action.value or "", ports)


def _is_on(address: str, ports: AbstractSet[int]) -> bool:
    try:
        return urlsplit(address.strip()[: limits.ADDRESS_CHARS_READ_MAX]).port in ports
    except ValueError:
        return True  # what cannot be taken apart may lead anywhere


def _names(text: str, ports: AbstractSet[int]) -> bool:
    """Say whether a text is, or has in it, an address on one of these ports."""
    plain = text.casefold()
    typed = any(int(port) in ports for port in _TYPED.findall(plain))
    return typed or any(_is_on(found, ports) for found in _ADDRESS.findall(plain))
