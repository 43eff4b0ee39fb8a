"""Texts out of records: what policy and the journal see of a request, and secrets out of everything (spec §6.1, §7).

Guarantees: no text that an agent types, sets, opens or expects reaches a policy engine or the journal; in its place
stand its length and a keyed hash, so that equal texts can be told without being guessed. A resolved secret is masked
wherever it occurs, in keys as in values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from surehand.core.hashing import Digest
from surehand.model.actions import Action, Press, kind_of
from surehand.model.query import Query
from surehand.model.record import to_value
from surehand.model.request import Request
from surehand.model.targets import QueryTarget, Target
from surehand.model.verification import Verification

#: What stands where a secret was.
MASK: Final = "[secret]"

#: Fields of each action that hold free text, or lists of it.
TEXT_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "set_value": ("value",),
    "select_option": ("option",),
    "type_text": ("text",),
    "paste": ("text",),
    "clipboard": ("text",),
    "dialog": ("text",),
    "app": ("arguments",),
    "upload": ("paths",),
}
#: Fields whose origin policy needs; the rest of the address may hold anything.
_ADDRESS_FIELDS: Final[dict[str, str]] = {"open": "uri", "navigate": "url", "tab": "url"}
_COMMANDING: Final = frozenset(
    {"alt", "cmd", "command", "control", "controlormeta", "ctrl", "hyper", "meta", "super", "win"}
)
_COMMAND_KEY: Final = re.compile(
    r"f\d{1,2}|(?:kp_)?(?:return|enter|tab|escape|esc|backspace|delete|del|insert|ins|home|end|menu|contextmenu|pause"
    r"|print|prior|next|(?:page_?|arrow)?(?:up|down|left|right)|[a-z]+_?lock|(?:shift|control|alt|super|meta)(?:_[lr])?)"
)
#: Fields of verifications and query filters that hold text.
_EXPECTED_FIELDS: Final = frozenset({"equals", "contains"})
_FILTER_FIELDS: Final = frozenset({"name", "value", "context"})


def redacted(text: str, digest: Digest) -> dict[str, Any]:
    """Return what stands for a text: that it was redacted, its length in characters, its keyed hash."""
    return {"redacted": True, "chars": len(text), "hash": digest(text)}


def parameters(action: Action, digest: Digest) -> dict[str, Any]:
    """Return an action's parameters without its texts, for `PolicyInput.parameters`."""
    kind = kind_of(action)
    value: dict[str, Any] = to_value(action)
    value.pop("kind", None)
    for field in TEXT_FIELDS.get(kind, ()):
        if value.get(field):
            value[field] = _redact(value[field], digest)
    if isinstance(action, Press):
        value["chords"] = [chord if _is_command(chord) else redacted(chord, digest) for chord in action.chords]
    address = _ADDRESS_FIELDS.get(kind)
    if address is not None and value.get(address):
        value[address] = _redacted_address(value[address], digest)
    return value


def request_value(request: Request, digest: Digest) -> dict[str, Any]:
    """Return the request as the journal keeps it: no texts, no salt, and of the grant only who signed it."""
    value: dict[str, Any] = {
        "operation_id": request.operation_id,
        "action": {"kind": kind_of(request.action), **parameters(request.action, digest)},
        "target": _target(request.target, digest),
        "interaction_mode": request.interaction_mode,
        "risk": request.risk,
        "deadline_ms": request.deadline_ms,
    }
    if request.verification is not None:
        value["verification"] = _verification(request.verification, digest)
    if request.reconciles is not None:
        value["reconciles"] = request.reconciles
    if request.authority is not None:
        grant = request.authority.grant
        value["grant"] = {"issuer": grant.issuer, "key_id": grant.key_id, "expires_at_ms": grant.expires_at_ms}
    return value


def mask(value: Any, secrets: Iterable[str]) -> Any:
    """Return a JSON value with every occurrence of every secret masked, longest secrets first.

    Longest first, because a secret that holds another one must not leave its own rest behind.
    """
    ordered = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
    return _mask(value, ordered) if ordered else value


def _mask(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {_mask(key, secrets): _mask(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(item, secrets) for item in value]
    return value


def _redact(value: Any, digest: Digest) -> Any:
    if isinstance(value, str):
        return redacted(value, digest)
    return [redacted(text, digest) for text in value]


def _is_command(chord: str) -> bool:
    """Say whether a chord is a command (`ctrl+s`, `Return`) and not a character somebody types.

    Named characters (`exclam`, `KeyA`, `U20AC`) are characters: a password can be pressed key by key.
    """
    *modifiers, key = chord.casefold().split("+")
    return bool(_COMMANDING.intersection(modifiers)) or _COMMAND_KEY.fullmatch(key) is not None


def _redacted_address(address: str, digest: Digest) -> dict[str, Any]:
    try:
        parts = urlsplit(address)
        scheme, host = parts.scheme, parts.hostname or ""
    except ValueError:
        # What cannot be taken apart is redacted whole.
        scheme, host = "", ""
    return {"scheme": scheme, "host": host, **redacted(address, digest)}


def _target(target: Target, digest: Digest) -> dict[str, Any]:
    value: dict[str, Any] = to_value(target)
    if isinstance(target, QueryTarget):
        value["query"] = _query(target.query, digest)
    return value


def _query(query: Query, digest: Digest) -> dict[str, Any]:
    return dict(_expected(to_value(query), digest))


def _verification(verification: Verification, digest: Digest) -> dict[str, Any]:
    return dict(_expected(to_value(verification), digest))


def _expected(value: Any, digest: Digest) -> Any:
    """Redact the texts of a query or a verification, wherever they are nested."""
    if isinstance(value, list | tuple):
        return [_expected(item, digest) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for name, item in value.items():
        if name in _EXPECTED_FIELDS and isinstance(item, str):
            result[name] = redacted(item, digest)
        elif name in _FILTER_FIELDS and isinstance(item, dict) and isinstance(item.get("text"), str):
            result[name] = {**item, "text": redacted(item["text"], digest)}
        else:
            result[name] = _expected(item, digest)
    return result
