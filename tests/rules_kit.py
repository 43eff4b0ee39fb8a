"""Builders for tests of the pure rules: requests, surfaces, nodes, events, keys. Real Ed25519, no clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from surehand.core.authority import PinnedKey, grant_message
from surehand.core.hashing import text_digest
from surehand.core.policy import vocabulary
from surehand.core.policy.inputs import Scope
from surehand.core.safety import Host
from surehand.model.actions import Action, Invoke
from surehand.model.authority import Grant, SignedGrant
from surehand.model.decision import Facts, PolicyInput
from surehand.model.events import Event
from surehand.model.outcome import Evidence, Receipt, Terminal
from surehand.model.request import Request
from surehand.model.scene import AppIdentity, Node, Surface
from surehand.model.targets import ElementTarget, Target

SECRET = bytes(range(32))
ZERO_HASH = "0" * 64
DATA = Path(vocabulary.__file__).parent / "data"
VOCABULARY = vocabulary.parse_vocabulary(
    (DATA / vocabulary.WORDS_FILE).read_text("utf-8"), (DATA / vocabulary.APPS_FILE).read_text("utf-8")
)
HOST_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))


def element(**changes: Any) -> ElementTarget:
    fields: dict[str, Any] = {
        "scene_id": "scene-1",
        "generation": 1,
        "element_id": "e17",
        "provenance_hash": "a" * 64,
        "fingerprint_hash": "b" * 64,
        "context_hash": "c" * 64,
    }
    return ElementTarget(**{**fields, **changes})


def request(action: Action | None = None, target: Target | None = None, **changes: Any) -> Request:
    fields: dict[str, Any] = {
        "operation_id": "op-1",
        "action": Invoke() if action is None else action,
        "target": element() if target is None else target,
    }
    return Request(**{**fields, **changes})


def surface(executable: str = "/usr/bin/mousepad", *, title: str = "", claimed: str = "", pid: int = 100) -> Surface:
    return Surface(
        surface_id="w1",
        desktop="d1",
        app=AppIdentity(
            key=f"exe:{executable}",
            pid=pid,
            process_generation="1",
            uid=1000,
            executable=executable,
            claimed_name=claimed,
        ),
        backend="atspi",
        toolkit="gtk3",
        title=title,
        role="window",
        place="main",
    )


def node(name: str = "Save", role: str = "button", **changes: Any) -> Node:
    return Node(**{"handle": "h1", "role": role, "name": name, **changes})


def scope(isolation: Any = "isolated", **changes: Any) -> Scope:
    fields: dict[str, Any] = {
        "host": Host(isolation=isolation, trust_level="A"),
        "vocabulary": VOCABULARY,
        "digest": text_digest(SECRET),
        "backend": "atspi",
    }
    return Scope(**{**fields, **changes})


def document(
    observed: dict[str, Any] | None = None, *, facts: dict[str, Any] | None = None, **changes: Any
) -> PolicyInput:
    known: dict[str, Any] = {
        "app": "exe:/usr/bin/mousepad",
        "place": "main",
        "isolation": "isolated",
        "trust_level": "A",
        "backend": "atspi",
        "observed": observed or {},
    }
    fields: dict[str, Any] = {
        "principal": "agent",
        "action": "desktop.invoke",
        "risk": "reversible",
        "interaction_mode": "interactive",
        "parameters": {},
        "facts": Facts(**{**known, **(facts or {})}),
    }
    return PolicyInput(**{**fields, **changes})


def public_hex(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def pinned(key: Ed25519PrivateKey = HOST_KEY, **changes: Any) -> PinnedKey:
    fields: dict[str, Any] = {"issuer": "host", "key_id": "k1", "public_key": public_hex(key), "policy_generation": 7}
    return PinnedKey(**{**fields, **changes})


def signed_grant(key: Ed25519PrivateKey = HOST_KEY, **changes: Any) -> SignedGrant:
    fields: dict[str, Any] = {
        "issuer": "host",
        "key_id": "k1",
        "principal": "agent",
        "operation_id": "op-1",
        "action_hash": ZERO_HASH,
        "risk": "reversible",
        "policy_generation": 7,
        "expires_at_ms": 10_000,
    }
    grant = Grant(**{**fields, **changes})
    return SignedGrant(grant=grant, signature=key.sign(grant_message(grant)).hex())


def receipt(**changes: Any) -> Receipt:
    fields: dict[str, Any] = {
        "operation_id": "op-1",
        "action_hash": ZERO_HASH,
        "action": "desktop.invoke",
        "principal": "agent",
        "started_at_ms": 1,
        "finished_at_ms": 2,
        "backend": "atspi",
        "route": "atspi.action",
        "isolation": "isolated",
        "interaction_mode": "interactive",
        "context_preservation": "not_applicable",
        "effect": "verified",
        "evidence": Evidence(),
        "authority_mode": "daemon",
        "trust_level": "A",
        "decision_id": "d1",
    }
    return Receipt(**{**fields, **changes})


def terminal(kind: Any = "succeeded", **changes: Any) -> Terminal:
    return Terminal(kind=kind, receipt=receipt(**changes))


def events(*pairs: tuple[str, dict[str, Any]]) -> list[Event]:
    return [
        Event(
            seq=index,
            event_id=f"event-{index}",
            stream="operation/agent/op-1",
            stream_version=index,
            type=kind,
            occurred_at="2026-01-01T00:00:00Z",
            actor="agent",
            context={},
            payload=payload,
            prev_hash=ZERO_HASH,
            record_hash=f"{index:064x}",
        )
        for index, (kind, payload) in enumerate(pairs, 1)
    ]
