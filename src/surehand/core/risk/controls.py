"""Which consequential categories a control, what is around it, a key or an address speaks of (spec §6.2).

Guarantees: every source only adds; no text takes away what another one raised. What a person or an agent wrote into
a field is never read as the name of what happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from surehand import limits
from surehand.core.risk.words import Words

GENERIC: Final = "generic"
CREDENTIAL_CONTROLS: Final = "credential_controls"
OVERWRITING: Final = "overwriting"
EXISTING: Final = "existing"
#: Lists that name no category by themselves.
HELPING: Final = frozenset({GENERIC, CREDENTIAL_CONTROLS, OVERWRITING, EXISTING})

#: Roles whose name says what is written there, not what happens on a click.
_WRITTEN_ROLES: Final = frozenset({"text", "document", "paragraph", "password", "spinbutton", "terminal"})
#: Lists whose words in a field's label say what is entered there.
_FIELD_LISTS: Final = frozenset({"credentials"})
_NO_CATEGORIES: Final = HELPING | _FIELD_LISTS
#: Categories that a form's fields lend to the button that sends it.
_LENT_BY_FIELDS: Final = frozenset({"credentials", "purchase"})

_DELETING: Final = frozenset({"delete", "del", "kp_delete"})
_ENTER: Final = frozenset({"return", "enter", "kp_enter", "numpadenter"})
#: Beginnings: `Control`, `ctrl_l`, `ControlOrMeta`, `MetaLeft`, `shift_r`.
_COMMANDS: Final = ("ctrl", "control", "cmd", "command", "meta", "super", "os", "win", "logo")
_SHIFT: Final = "shift"

#: Schemes that other programs answer to, and what they do then.
_SCHEMES: Final = {
    **dict.fromkeys(("mailto", "tel", "sms", "xmpp", "sip", "sips", "callto", "skype", "tg", "whatsapp", "signal",
                     "matrix", "irc", "facetime", "msteams", "zoommtg", "slack"), "send_publish"),
    **dict.fromkeys(("bitcoin", "lightning", "ethereum", "monero", "payto", "upi"), "purchase"),
    **dict.fromkeys(("apt", "appstream", "flatpak", "flatpak+https", "snap", "steam", "ms-appinstaller",
                     "itms-services", "itms-apps", "market", "vscode"), "install"),
    **dict.fromkeys(("otpauth", "webauthn"), "credentials"),
    **dict.fromkeys(("ms-settings", "gnome-control-center"), "settings"),
}  # fmt: skip
_INSTALLS: Final = re.compile(r"\.(?:deb|rpm|crx|xpi|flatpakref|flatpakrepo|snap|apk|msi|pkg|dmg|appx|msix|vsix)$")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")
_SEGMENT_WORD: Final = re.compile(r"[^a-z0-9]+")
#: Longer segments are titles of articles, not names of what happens.
_SEGMENT_WORDS_MAX: Final = 2
#: Parameters of an address that name what is done.
_DOING: Final = frozenset({"action", "cmd", "command", "do", "method", "op", "operation", "task"})
#: Words of an address that acts when it is fetched. English, as addresses are.
_ADDRESS_WORDS: Final = {
    **dict.fromkeys(("delete", "remove", "destroy", "unsubscribe", "logout", "signout", "logoff", "deactivate",
                     "revoke", "purge", "wipe", "terminate"), "destructive"),
    **dict.fromkeys(("checkout", "pay", "payment", "purchase", "buy", "donate", "subscribe"), "purchase"),
    **dict.fromkeys(("send", "publish", "share", "tweet", "submit", "vote"), "send_publish"),
    **dict.fromkeys(("oauth", "oauth2", "authorize", "authorise", "consent", "2fa", "mfa"), "credentials"),
    "install": "install",
    "upload": "upload",
}  # fmt: skip


class Control(NamedTuple):
    """What an operation is aimed at, in the application's words.

    `fields` are the names of the entry fields of the same form, for a button that says nothing itself.
    """

    role: str = ""
    name: str = ""
    description: str = ""
    context: str = ""
    title: str = ""
    secret: bool = False
    fields: tuple[str, ...] = ()


def of_label(words: Words, text: str) -> frozenset[str]:
    """Return the categories of a text that names what a control does."""
    return _categories(words.lists_in(text))


def is_silent(words: Words, name: str) -> bool:
    """Say whether a control's name leaves open what happens: "OK", a picture, nothing."""
    return not _says_anything(name) or GENERIC in words.lists_in(name)


def of_activation(words: Words, control: Control, *, in_dialog: bool = False) -> frozenset[str]:
    """Return the categories of pressing, toggling or choosing a control.

    Args:
        words: The lists.
        control: What it is called.
        in_dialog: A browser's own dialog, whose button nobody sees: what it asks is what happens.
    """
    lists = words.lists_in(control.name)
    found = _categories(lists)
    silent = GENERIC in lists or not _says_anything(control.name)
    if silent or in_dialog:
        # "OK" under "Delete three files?" is a deletion.
        found |= of_label(words, f"{control.context} \n {control.title}") | of_label(words, control.description)
        for field in control.fields:
            found |= _lent(words.lists_in(field))
    if silent or in_dialog or OVERWRITING in lists:
        # To replace a text is editing, to replace what exists destroys it; only what is around can tell.
        around = lists | words.lists_in(f"{control.context} \n {control.title}")
        if {OVERWRITING, EXISTING} <= around:
            found |= {"destructive"}
    return found


def of_entry(words: Words, control: Control) -> frozenset[str]:
    """Return the categories of entering something into a control."""
    said = words.lists_in(f"{control.name} \n {control.context}")
    secret = control.secret or control.role == "password" or not _FIELD_LISTS.isdisjoint(said)
    return frozenset({"credentials"}) if secret else frozenset()


def is_written(role: str) -> bool:
    """Say whether an element of this role is called after what is written in it."""
    return role in _WRITTEN_ROLES


def of_chords(chords: Iterable[str], role: str) -> frozenset[str]:
    """Return the categories of keys that do something by themselves, wherever the focus is.

    Delete removes what is chosen, except in a text; where nobody knows what has the focus it is mostly a text, and what
    else it removes goes to a trash, unless Shift is held. Enter with a command key sends, in mail, chats and forms.
    """
    found: set[str] = set()
    for chord in chords:
        *held, key = chord.casefold().split("+")
        if key in _DELETING and not is_written(role) and (role or any(one.startswith(_SHIFT) for one in held)):
            found.add("destructive")
        if key in _ENTER and any(one.startswith(_COMMANDS) for one in held):
            found.add("send_publish")
    return frozenset(found)


def of_address(address: str) -> frozenset[str]:
    """Return the categories that an address gives away: its scheme, what it fetches, the words of its path."""
    try:
        parts = urlsplit(address[: limits.ADDRESS_CHARS_READ_MAX].strip().casefold())
    except ValueError:
        # What cannot be taken apart is asked about, not guessed at.
        return frozenset({"external"})
    found = {_SCHEMES[parts.scheme]} if parts.scheme in _SCHEMES else set()
    if len(address) > limits.ADDRESS_CHARS_READ_MAX:
        # Nor is what is cut off.
        found.add("external")
    path = unquote(parts.path)
    if _INSTALLS.search(path):
        found.add("install")
    if parts.scheme in ("http", "https", ""):
        doing = (value for name, value in parse_qsl(parts.query) if name in _DOING)
        for segment in (*path.split("/"), *doing):
            words = _SEGMENT_WORD.split(segment)
            if len(words) <= _SEGMENT_WORDS_MAX:
                found.update(_ADDRESS_WORDS[word] for word in words if word in _ADDRESS_WORDS)
    return frozenset(found)


def _says_anything(text: str) -> bool:
    return _LETTER_OR_DIGIT.search(text) is not None


def _lent(lists: frozenset[str]) -> frozenset[str]:
    return lists & _LENT_BY_FIELDS


def _categories(lists: frozenset[str]) -> frozenset[str]:
    """Drop what fields are called, which says nothing about a control, and name what controls make."""
    found = lists - _NO_CATEGORIES
    return found | {"credentials"} if CREDENTIAL_CONTROLS in lists else found
