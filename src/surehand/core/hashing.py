"""What a request means, as hashes: the action hash that is signed, claimed and permitted (spec §3.1).

Guarantees: looking again (a new scene, generation or label) does not change an action hash; any change of what would
happen does. The operation id, deadline, session and principal are not in it: claims, grants and permits bind those.
Digests of texts are keyed or salted, so that no stored hash can be guessed back into a short text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from surehand import canonical, limits
from surehand.core.keyed import keyed
from surehand.errors import InvalidRequest
from surehand.model.actions import TEXT_ACTIONS, Action, kind_of
from surehand.model.record import tag_of, to_value
from surehand.model.request import Request
from surehand.model.targets import ElementTarget, PointTarget, QueryTarget, Target

_ACTION_DOMAIN: Final = "surehand/action/v1"
_REQUEST_DOMAIN: Final = "surehand/request/v1"
_PLAN_DOMAIN: Final = "surehand/plan/v1"
_SALT_DOMAIN: Final = b"surehand/salt/v1\x00"
_RECONCILE_DOMAIN: Final = b"surehand/reconcile/v1\x00"
_TEXT_DOMAIN: Final = b"surehand/text/v1\x00"

Digest = Callable[[str], str]


def target_meaning(target: Target, *, app: str, place: str, window: str = "") -> dict[str, Any]:
    """Return what a target stands for, without the scene, generation or label it was read under.

    Args:
        target: The request's target.
        app: The proven application identity (`AppIdentity.key`), "" where no application is aimed at.
        place: The kind of window or the canonical origin, "" likewise.
        window: The id of the one window, "" where none is aimed at: two documents of an editor look alike.

    A replay whose scene is gone is hashed with the `app`, `place` and `window` that the claim recorded (spec §5.3).
    """
    meaning: dict[str, Any] = {"kind": tag_of(type(target)), "app": app, "place": place}
    if window:
        meaning["window"] = window
    if isinstance(target, ElementTarget):
        meaning.update(fingerprint_hash=target.fingerprint_hash, context_hash=target.context_hash)
    elif isinstance(target, QueryTarget):
        meaning.update(query=to_value(target.query))
    elif isinstance(target, PointTarget):
        meaning.update(capture_id=target.capture_id, space=target.space, x=target.x, y=target.y)
    return meaning


def needs_salt(action: Action) -> bool:
    """Say whether the action carries text that a bare hash could be guessed back to."""
    return kind_of(action) in TEXT_ACTIONS


def derive_salt(secret: bytes, principal: str, operation_id: str) -> str:
    """Return the 128-bit salt, as hex, that the same operation gets again when it is retried."""
    return keyed(secret, _SALT_DOMAIN)(canonical.encode([principal, operation_id]))[: 2 * limits.SALT_BYTES]


def salt_of(request: Request, secret: bytes, principal: str) -> str | None:
    """Return the salt to hash a request with: the host's, else a derived one, none for actions without text."""
    if not needs_salt(request.action):
        return None
    return request.salt or derive_salt(secret, principal, request.operation_id)


def action_hash(request: Request, meaning: dict[str, Any], salt: str | None) -> str:
    """Return the hash of what the request would do.

    Args:
        request: Its action, interaction mode, verification and risk go in; nothing else does.
        meaning: From `target_meaning`.
        salt: From `salt_of`; must be present exactly for actions that carry text.

    Raises:
        InvalidRequest: a text action without a salt, or a salt for an action without text.
    """
    if needs_salt(request.action) != (salt is not None):
        raise InvalidRequest("a salt goes with actions that carry text, and only with those")
    value = {
        "action": to_value(request.action),
        "target": meaning,
        "interaction_mode": request.interaction_mode,
        "verification": None if request.verification is None else to_value(request.verification),
        "risk": request.risk,
    }
    if salt is not None:
        value["salt"] = salt
    return canonical.hash_value(_ACTION_DOMAIN, value)


def request_hash(principal: str, operation_id: str, action_hash_hex: str) -> str:
    """Return the hash a permit names: this action, of this operation, of this principal, and no other."""
    return canonical.hash_value(_REQUEST_DOMAIN, [principal, operation_id, action_hash_hex])


def plan_hash(step_hashes: tuple[str, ...]) -> str:
    """Return the hash of an ordered list of step hashes, for approving a plan as a whole (spec §6.4)."""
    return canonical.hash_value(_PLAN_DOMAIN, list(step_hashes))


def reconcile_key(
    secret: bytes,
    *,
    principal: str,
    action: Action,
    meaning: dict[str, Any],
    fingerprint_hash: str | None = None,
    context_hash: str | None = None,
) -> str:
    """Return the keyed hash that equal effects share (spec §5.7).

    A query that resolved counts as the element it resolved to, and a place in a newer picture as the same place: an
    effect must not escape its unresolved twin by being asked for in other words.
    """
    if fingerprint_hash is None or context_hash is None:
        same = {name: item for name, item in meaning.items() if name != "capture_id"}
    else:
        same = {
            "kind": "element",
            "app": meaning["app"],
            "place": meaning["place"],
            "fingerprint_hash": fingerprint_hash,
            "context_hash": context_hash,
        }
    return keyed(secret, _RECONCILE_DOMAIN)(canonical.encode([principal, _without_captures(to_value(action)), same]))


def _without_captures(value: Any) -> Any:
    """Return an action's value without the pictures in which its places were named: a drag has them inside."""
    if isinstance(value, dict):
        return {name: _without_captures(item) for name, item in value.items() if name != "capture_id"}
    return [_without_captures(item) for item in value] if isinstance(value, list | tuple) else value


def text_digest(secret: bytes) -> Digest:
    """Return the keyed digest of texts that redaction puts in their place."""
    mac = keyed(secret, _TEXT_DOMAIN)
    return lambda text: mac(text.encode("utf-8", "surrogatepass"))
