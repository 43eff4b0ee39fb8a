"""The options every action takes, and the request they make."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final, Literal, TypedDict

from surehand import limits
from surehand.model.authority import SignedGrant
from surehand.model.record import Record, convert, to_value
from surehand.model.request import Request
from surehand.model.verification import Verification


class ActOptions(TypedDict, total=False):
    """Keyword options of every action.

    operation_id: Yours, to present the same operation again later; else made up and kept over retries.
    timeout_s: Seconds to wait until the target is there, unique and enabled.
    verify: What must be true afterwards (spec §9); else the natural default of the action.
    risk: What you declare; policy may raise it.
    deadline_ms: How long the operation itself may take.
    background: Refuse rather than take the focus on a desktop a person uses.
    reconciles: The operation that ended as outcome_unknown and was looked into.
    authority: A host's signed grant.
    salt: 32 hex digits, where the host chose the salt of the action hash.
    observe_after: Give the diff that the action caused.
    """

    operation_id: str
    timeout_s: float
    verify: Verification | dict[str, Any]
    risk: Literal["read", "reversible", "external", "destructive"]
    deadline_ms: int
    background: bool
    reconciles: str
    authority: SignedGrant | dict[str, Any]
    salt: str
    observe_after: bool


_NAMES: Final = frozenset(ActOptions.__annotations__)
TIMEOUT_S_DEFAULT: Final = limits.WAIT_MS_DEFAULT / 1000


def new_operation_id() -> str:
    """Return an id nobody has used: 128 random bits."""
    return f"op-{secrets.token_hex(16)}"


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse a keyword that means nothing; a misspelt `verify` must not pass as "no verification".

    Raises:
        TypeError: naming it.
    """
    if unknown := options.keys() - _NAMES:
        raise TypeError(f"unknown option {min(unknown)!r}; the options are {', '.join(sorted(_NAMES))}")


def request_value(
    operation_id: str, action: dict[str, Any], target: dict[str, Any], options: ActOptions
) -> dict[str, Any]:
    """Return a request's JSON value, checked as the daemon will check it.

    Raises:
        InvalidRequest, TooLarge: what is wrong with it.
    """
    value: dict[str, Any] = {"operation_id": operation_id, "action": action, "target": target}
    if "verify" in options:
        value["verification"] = plain(options["verify"])
    if "authority" in options:
        value["authority"] = plain(options["authority"])
    if options.get("background"):
        value["interaction_mode"] = "background_only"
    for name in ("risk", "deadline_ms", "reconciles", "salt"):
        if name in options:
            value[name] = options[name]
    checked: dict[str, Any] = plain(convert(Request, value))
    return checked


def plain(value: Any) -> Any:
    """Return a record's JSON value; a JSON value as it is."""
    return to_value(value) if isinstance(value, Record) else value
