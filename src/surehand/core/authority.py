"""Who may ask for what: signed grants under pinned keys, or the ceiling an operator configured (spec §3.4).

`check_grant` and `check_ceiling` take a request's facts and return an `Authorised`, or raise `AuthorityDenied`. A
refusal names which binding failed, never what the right value would have been.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal

from surehand import canonical, limits
from surehand.core.policy.model import RISKS, Risk, check_patterns, matcher
from surehand.errors import AuthorityDenied, BudgetExhausted, InvalidRequest
from surehand.model.authority import Grant, SignedGrant
from surehand.model.record import Record, check_identifier, check_range

_GRANT_DOMAIN: Final = b"surehand/grant/v1\x00"
_PUBLIC_KEY_BYTES: Final = 32
#: Risks that count against the budget of what reaches beyond the desktop.
_EXTERNAL: Final = frozenset({"external", "destructive"})

#: (public key, message, signature) → whether it is that key's signature. Strict Ed25519.
Verify = Callable[[bytes, bytes, bytes], bool]


class PinnedKey(Record, frozen=True, kw_only=True):
    """A host's key as an operator pinned it. `public_key` is 64 hex digits."""

    issuer: str
    key_id: str
    public_key: str
    policy_generation: int

    def __post_init__(self) -> None:
        check_identifier("issuer", self.issuer)
        check_identifier("key_id", self.key_id)
        check_range("policy_generation", self.policy_generation, 0, limits.INTEGER_MAX)
        if len(self.public_key) != _PUBLIC_KEY_BYTES * 2 or any(c not in "0123456789abcdef" for c in self.public_key):
            raise InvalidRequest("public_key must be 64 lower-case hex digits")


class Keyring:
    """Pinned keys by (issuer, key id). Two keys under one name would make it a matter of order who is trusted.

    Raises:
        InvalidRequest: the same (issuer, key id) is pinned twice.
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[PinnedKey]) -> None:
        self._keys: dict[tuple[str, str], PinnedKey] = {}
        for key in keys:
            if (key.issuer, key.key_id) in self._keys:
                raise InvalidRequest(f"the key {key.issuer}/{key.key_id} is pinned twice")
            self._keys[key.issuer, key.key_id] = key

    def find(self, issuer: str, key_id: str) -> PinnedKey | None:
        """Return the pinned key of that name."""
        return self._keys.get((issuer, key_id))

    def __len__(self) -> int:
        return len(self._keys)


class Authorised(Record, frozen=True, kw_only=True):
    """That the request may be asked at all. `expires_at_ms` is wall-clock and caps the deadline; None for ceilings."""

    mode: Literal["host", "daemon"]
    by: str
    expires_at_ms: int | None = None


def grant_message(grant: Grant) -> bytes:
    """Return the bytes a host signs: the domain `surehand/grant/v1`, a zero byte, the grant's canonical bytes."""
    return _GRANT_DOMAIN + canonical.encode_record(grant)


def check_grant(
    signed: SignedGrant | None,
    keyring: Keyring,
    verify: Verify,
    *,
    principal: str,
    operation_id: str,
    action_hash: str,
    risk: Risk,
    now_ms: int,
) -> Authorised:
    """Accept a grant that a pinned key signed for exactly this operation (mode `host`).

    Args:
        signed: What the request carries.
        keyring: The pinned keys.
        verify: Strict Ed25519.
        principal: Who asks, as the channel knows.
        operation_id: Of the request.
        action_hash: What the request would do, as computed here.
        risk: As declared in the request.
        now_ms: Wall-clock.

    Raises:
        AuthorityDenied: naming the binding that does not hold.
    """
    if signed is None:
        raise _denied("the request carries no grant", fix="Have the host sign the proposal's action hash.")
    grant = signed.grant
    key = keyring.find(grant.issuer, grant.key_id)
    # An unknown issuer and a wrong signature read alike: neither tells a stranger which names are pinned.
    if key is None or not verify(bytes.fromhex(key.public_key), grant_message(grant), bytes.fromhex(signed.signature)):
        raise _denied("the grant is not signed by a pinned key")
    bindings = (
        ("principal", grant.principal == principal),
        ("operation_id", grant.operation_id == operation_id),
        ("action_hash", grant.action_hash == action_hash),
        ("risk", grant.risk == risk),
        ("policy_generation", grant.policy_generation == key.policy_generation),
    )
    for name, holds in bindings:
        if not holds:
            raise _denied(f"the grant is for another {name}")
    if grant.expires_at_ms <= now_ms:
        raise _denied("the grant has expired", fix="Have the host sign a new one.")
    return Authorised(mode="host", by=f"{grant.issuer}/{grant.key_id}", expires_at_ms=grant.expires_at_ms)


def capped_deadline_ms(deadline_ms: int, authorised: Authorised, now_ms: int) -> int:
    """Return how long the operation may take: its own deadline, and never longer than its grant lives."""
    if authorised.expires_at_ms is None:
        return deadline_ms
    return max(0, min(deadline_ms, authorised.expires_at_ms - now_ms))


class Ceiling(Record, frozen=True, kw_only=True):
    """The most a principal may ask for in mode `daemon`. Empty lists and zeros mean no limit of that kind.

    `principal`, `actions`, `apps` and `places` are patterns in which `*` stands for any characters.
    """

    principal: str = "*"
    actions: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    risk_max: Risk = "destructive"
    operations_max: int = 0
    minutes_max: int = 0
    external_max: int = 0

    def __post_init__(self) -> None:
        check_patterns("principal", (self.principal,))
        for name in ("actions", "apps", "places"):
            check_patterns(name, getattr(self, name))
        for name in ("operations_max", "minutes_max", "external_max"):
            check_range(name, getattr(self, name), 0, limits.INTEGER_MAX)


def ceiling_of(ceilings: Iterable[Ceiling], principal: str) -> Ceiling | None:
    """Return the first ceiling that is meant for the principal; an exact name goes before a pattern."""
    found = [one for one in ceilings if matcher((one.principal,))(principal)]
    return next((one for one in found if one.principal == principal), found[0] if found else None)


def check_ceiling(ceiling: Ceiling | None, *, effect: str, app: str, place: str, risk: Risk) -> Authorised:
    """Accept a request that stays below its principal's ceiling (mode `daemon`). No grant is minted.

    Args:
        ceiling: From `ceiling_of`; None denies.
        effect: The effect's name, such as `desktop.invoke`.
        app: Proven application identity, "" where none is aimed at.
        place: Window identity or origin.
        risk: After policy raised it.

    Raises:
        AuthorityDenied: naming what lies above the ceiling.
    """
    if ceiling is None:
        raise _denied("the operator configured no authority for this principal")
    for name, patterns, value in (
        ("action", ceiling.actions, effect),
        ("application", ceiling.apps, app),
        ("place", ceiling.places, place),
    ):
        if patterns and not matcher(patterns)(value):
            raise _denied(f"this {name} is above what the operator allows this principal")
    if RISKS.index(risk) > RISKS.index(ceiling.risk_max):
        raise _denied(f"risk {risk} is above what the operator allows this principal")
    return Authorised(mode="daemon", by=ceiling.principal)


class Spent(Record, frozen=True, kw_only=True):
    """What a principal used up since its budget started: counted operations, of them external, and the start."""

    operations: int = 0
    external: int = 0
    started_at_ms: int = 0


def has_budget(ceiling: Ceiling) -> bool:
    """Say whether a ceiling limits how much may be done, and not only what."""
    return bool(ceiling.operations_max or ceiling.external_max or ceiling.minutes_max)


def budget_keys(principal: str, started_at_ms: int, risk: Risk, *, returned: bool = False) -> tuple[str, ...]:
    """Return the keys under which the journal counts an operation of a round, or that it was none after all."""
    whose = hashlib.sha256(principal.encode()).hexdigest()[:32]
    end = "/returned" if returned else ""
    kinds = ("operations", "external") if risk in _EXTERNAL else ("operations",)
    return tuple(f"budget/{whose}/{started_at_ms}/{kind}{end}" for kind in kinds)


def exhausted(ceiling: Ceiling, spent: Spent, now_ms: int) -> str | None:
    """Return which budget is used up for any operation at all, or None."""
    if ceiling.operations_max and spent.operations >= ceiling.operations_max:
        return "operations"
    if ceiling.minutes_max and now_ms - spent.started_at_ms >= ceiling.minutes_max * 60_000:
        return "minutes"
    return None


def check_budget(ceiling: Ceiling, spent: Spent, *, risk: Risk, now_ms: int) -> Spent:
    """Return what is spent once this operation counts, or pause a runaway agent (spec §6.2).

    Raises:
        BudgetExhausted: naming the budget; an operator starts a new one.
    """
    external = risk in _EXTERNAL
    used_up = exhausted(ceiling, spent, now_ms)
    if used_up is not None:
        raise _exhausted(used_up, ceiling.operations_max if used_up == "operations" else ceiling.minutes_max)
    if ceiling.external_max and external and spent.external >= ceiling.external_max:
        raise _exhausted("external effects", ceiling.external_max)
    return Spent(operations=spent.operations + 1, external=spent.external + external, started_at_ms=spent.started_at_ms)


def given_back(spent: Spent, *, risk: Risk) -> Spent:
    """Return what is spent without an operation that was counted and then refused: nothing was done."""
    external = risk in _EXTERNAL
    return Spent(operations=spent.operations - 1, external=spent.external - external, started_at_ms=spent.started_at_ms)


def _denied(message: str, fix: str | None = None) -> AuthorityDenied:
    return AuthorityDenied(message, gate="authority", fix=fix)


def _exhausted(what: str, most: int) -> BudgetExhausted:
    return BudgetExhausted(
        f"the budget of {most} {what} is used up",
        gate="policy",
        fix="An operator gives leave to go on: surehand budgets renew PRINCIPAL",
        details={"budget": what, "limit": most},
    )
