"""Forms every example and vector of `spec/` with the code itself.

`python -m tests.spec_examples` writes them into the pages and vector files; `tests/unit/test_spec.py` fails when what is
there is not what the code forms. Keys and times are fixed, and no key here protects anything.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from surehand import canonical
from surehand.core import approval, authority, chain, hashing, permit
from surehand.core.policy import engine
from surehand.model.actions import SetValue
from surehand.model.approval import ApprovalAnswer, Presentation
from surehand.model.authority import Grant, SignedGrant
from surehand.model.decision import Obligations, PolicyInput
from surehand.model.events import Event, NewEvent
from surehand.model.outcome import Evidence, Receipt, Terminal
from surehand.model.record import convert, to_value
from surehand.model.request import Request
from surehand.model.targets import ElementTarget
from surehand.signing.ed25519 import SigningKey

SPEC = Path(__file__).parents[1] / "spec"
_BLOCK = re.compile(r"(<!-- example: ([a-z-]+) -->\n```json\n)(.*?)(```\n)", re.DOTALL)

HOST = SigningKey(bytes([1]) * 32)
APPROVER = SigningKey(bytes([2]) * 32)
PERMIT_KEY = bytes([3]) * 32
NOW_MS = 1_796_028_453_123


def request() -> Request:
    target = ElementTarget(
        scene_id="sc-7",
        generation=3,
        element_id="e17",
        provenance_hash="0a" * 32,
        fingerprint_hash="0b" * 32,
        context_hash="0c" * 32,
    )
    return Request(
        operation_id="op-1", action=SetValue(value="Zürich \U0001f3d4"), target=target, risk="external", salt="5a" * 16
    )


def action_hash() -> str:
    made = request()
    meaning = hashing.target_meaning(made.target, app="exe:/usr/bin/mousepad", place="main")
    return hashing.action_hash(made, meaning, made.salt)


def grant() -> SignedGrant:
    made = Grant(
        issuer="acme",
        key_id=HOST.key_id,
        principal="agent",
        operation_id="op-1",
        action_hash=action_hash(),
        risk="external",
        policy_generation=4,
        expires_at_ms=NOW_MS + 60_000,
    )
    return SignedGrant(grant=made, signature=HOST.sign(authority.grant_message(made)))


def made_permit() -> Any:
    return permit.mint_permit(
        PERMIT_KEY,
        request_hash=hashing.request_hash("agent", "op-1", action_hash()),
        decision_id="d-1",
        obligations_hash=permit.obligations_hash(Obligations()),
        session="5e" * 16,
        nonce="9f" * 16,
        now_ms=NOW_MS,
    )


def terminal() -> Terminal:
    receipt = Receipt(
        operation_id="op-1",
        action_hash=action_hash(),
        action="desktop.set_value",
        principal="agent",
        started_at_ms=NOW_MS,
        finished_at_ms=NOW_MS + 6,
        backend="atspi",
        route="atspi.editable_text",
        isolation="isolated",
        interaction_mode="interactive",
        context_preservation="unchanged",
        effect="verified",
        evidence=Evidence(before="1b" * 32, after="1a" * 32),
        authority_mode="host",
        trust_level="A",
        decision_id="d-1",
    )
    return Terminal(kind="succeeded", receipt=receipt)


def presentation() -> Presentation:
    return Presentation(
        principal="agent",
        app="exe:/usr/bin/mousepad",
        place="main",
        element="text Address",
        context="Delivery",
        action="desktop.set_value",
        parameters={"value": "Zürich \\u{1f3d4}"},
        risk="external",
        categories=("send",),
        reason="rule external-needs-a-person",
        action_hash=action_hash(),
    )


def answer() -> ApprovalAnswer:
    fields: dict[str, Any] = {
        "approval_id": "ap-1",
        "presentation_hash": approval.presentation_hash(presentation()),
        "answer": "approve",
        "approver": "ada",
        "key_id": APPROVER.key_id,
        "answered_at_ms": NOW_MS,
        "expires_at_ms": NOW_MS + 600_000,
    }
    unsigned = ApprovalAnswer(**fields, signature="0" * 128)
    return ApprovalAnswer(**fields, signature=APPROVER.sign(approval.answer_message(unsigned)))


def log() -> list[Event]:
    """Return a whole short log: a start, a claim that uses a permit, its terminal."""
    stream = hashing_stream("agent", "op-1")
    consumed = chain.consumed_member({f"permit/{made_permit().nonce}": 1}, {f"permit/{made_permit().nonce}": 1})
    claim = {
        "action_hash": action_hash(),
        "app": "exe:/usr/bin/mousepad",
        "permit_nonce": made_permit().nonce,
        "place": "main",
    }
    news = [
        (NewEvent(stream="daemon", type="daemon.started.v1", actor="daemon", payload={"version": "0.1.0"}), {}),
        (
            NewEvent(
                stream=stream, type="operation.claimed.v1", actor="agent", payload=claim, context={"session": "5e" * 16}
            ),
            consumed,
        ),
        (NewEvent(stream=stream, type="operation.terminal.v1", actor="agent", payload=to_value(terminal())), {}),
    ]
    head, versions, events = chain.EMPTY, {}, []
    for number, (new, more) in enumerate(news):
        drafted = chain.draft(new)
        drafted = chain.Draft(new, canonical.encode({**new.context, **more}), drafted.payload)
        versions[new.stream] = versions.get(new.stream, 0) + 1
        row = chain.seal(
            drafted,
            head,
            stream_version=versions[new.stream],
            event_id=next(chain.uuids7(NOW_MS + number, bytes([number + 1]) * 10)),
            occurred_at=chain.timestamp(NOW_MS + number),
        )
        head = chain.Head(row.seq, row.record_hash)
        events.append(chain.event_of(row))
    return events


#: What an engine might answer to `asked`.
POLICY_ANSWER = {
    "outcome": "require_approval",
    "rule": "mail-needs-two",
    "reason": "Two people look at every mail.",
    "covers": ["send_publish", "shared_desktop"],
    "obligations": {"approvals_needed": 2},
}


def asked() -> PolicyInput:
    """Return a request about which a policy is asked."""
    value = {
        "principal": "uid:1000",
        "action": "desktop.invoke",
        "risk": "reversible",
        "interaction_mode": "background_only",
        "parameters": {},
        "facts": {
            "app": "exe:/usr/bin/thunderbird",
            "place": "main",
            "isolation": "shared",
            "trust_level": "B",
            "backend": "atspi",
            "observed": {
                "title": "Write: (no subject) - Thunderbird",
                "role": "button",
                "name": "Send",
                "categories": ["send_publish"],
            },
        },
    }
    return convert(PolicyInput, value)


def hashing_stream(principal: str, operation_id: str) -> str:
    return f"operation:{principal}:{operation_id}"


def examples() -> dict[str, str]:
    """Return the text of every example block by its name."""
    value = {"b": [True, None, -1], "a": "Zürich\n\u0001\U0001f600", "é": {}}
    data = canonical.encode(value)
    signed, made, told = grant(), made_permit(), answer()
    second = log()[1]
    return {
        "canonical": pretty(
            {"value": value, "bytes": data.decode(), "digest": canonical.digest("surehand/example/v1", data)}
        ),
        "journal": pretty(to_value(second)),
        "journal-bytes": pretty({"bytes": chain.record_bytes(chain.row_of(second)).decode()}),
        "grant": pretty(to_value(signed)),
        "grant-bytes": pretty(
            {"public_key": HOST.public_key, "message": authority.grant_message(signed.grant).decode()}
        ),
        "policy-question": pretty(engine.input_value(asked(), asked().facts.observed)),
        "policy-answer": pretty(POLICY_ANSWER),
        "permit": pretty({"key": PERMIT_KEY.hex(), "permit": to_value(made)}),
        "receipt": pretty(to_value(terminal())),
        "presentation": pretty(to_value(presentation())),
        "answer": pretty({"public_key": APPROVER.public_key, "answer": to_value(told)}),
    }


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# --- vectors ------------------------------------------------------------------------------------------------------------


def nested(opening: str, closing: str, depth: int) -> str:
    return opening * depth + closing * depth


def canonical_vectors() -> dict[str, Any]:
    """Inputs with what becomes of them. `class` is the kind of refusal; `hex` is for input that is no text."""
    accept = {
        "null": "null",
        "booleans": "[false,true]",
        "empty object": "{}",
        "empty key": '{"":0}',
        "smallest integer": "-9007199254740991",
        "largest integer": "9007199254740991",
        "text beyond ASCII": '"€ Zürich \U0001f600"',
        "text above the surrogates": '"\ufb33\uffff"',
        "all short escapes": '"\\b\\t\\n\\f\\r\\"\\\\"',
        "controls in lower-case hex": '"\\u0000\\u001f"',
        "delete and slash are themselves": '"\x7f/"',
        "line separators are themselves": '"\u2028\u2029"',
        "keys in order of code units": '{"":0,"A":1,"a":2,"\x7f":3,"é":4,"\ud7ff":5}',
        "deepest": nested("[", "]", 32),
        "deepest objects": '{"a":' * 31 + "{}" + "}" * 31,
    }
    reads = {
        "spaces": (' { "a" : [ 1 , 2 ] } ', '{"a":[1,2]}'),
        "keys out of order": ('{"b":1,"a":2}', '{"a":2,"b":1}'),
        "escapes that are not needed": ('"\\u0041\\/\\u00e9\\ud83d\\ude00"', '"A/é\U0001f600"'),
        "upper-case hex": ('"\\u001F"', '"\\u001f"'),
        "negative zero": ("-0", "0"),
    }
    reject = {
        "nothing": ("", "not_json"),
        "two values": ("{} {}", "not_json"),
        "a comment": ("{}//", "not_json"),
        "a trailing comma": ("[1,]", "not_json"),
        "single quotes": ("{'a':1}", "not_json"),
        "a bare word": ("undefined", "not_json"),
        "a control character in text": ('"\x01"', "not_json"),
        "a byte order mark": ("\ufeff{}", "not_json"),
        "a leading zero": ("01", "not_json"),
        "the same key twice": ('{"a":1,"a":1}', "duplicate_key"),
        "the same key twice, once escaped": ('{"a":1,"\\u0061":2}', "duplicate_key"),
        "the same key twice, deep down": ('[{"b":{"a":1,"a":2}}]', "duplicate_key"),
        "a fraction": ("1.5", "number"),
        "a whole float": ("1.0", "number"),
        "an exponent": ("1e3", "number"),
        "not a number": ("NaN", "number"),
        "infinity": ("[-Infinity]", "number"),
        "an integer of 54 bits": ("9007199254740992", "integer_range"),
        "a negative integer of 54 bits": ("-9007199254740992", "integer_range"),
        "2 to the 63": ("9223372036854775808", "integer_range"),
        "a huge integer": ("1" * 400, "integer_range"),
        "a lone high surrogate": ('"\\ud800"', "surrogate"),
        "a lone low surrogate": ('"x\\udc00"', "surrogate"),
        "surrogates the wrong way round": ('"\\ude00\\ud83d"', "surrogate"),
        "a key above the surrogates": ('{"\ue000":1}', "key_range"),
        "a key beyond the basic plane": ('{"\U0001f600":1}', "key_range"),
        "a key with a lone surrogate": ('{"\\ud800":1}', "key_range"),
        "too deep": (nested("[", "]", 33), "too_deep"),
        "too deep objects": ('{"a":' * 32 + "{}" + "}" * 32, "too_deep"),
        "very deep": (nested("[", "]", 50_000), "too_deep"),
        "open for ever": ("[" * 100_000, "too_deep"),
    }
    hexes = {
        "a byte that is not UTF-8": ("22ff22", "not_json"),
        "an overlong slash": ("22c0af22", "not_json"),
        "a surrogate in UTF-8": ("22eda08022", "not_json"),
        "UTF-16": ("fffe7b007d00", "not_json"),
    }
    return {
        "accept": [{"name": name, "bytes": text} for name, text in accept.items()],
        "reads": [{"name": name, "input": text, "bytes": form} for name, (text, form) in reads.items()],
        "reject": [{"name": name, **_input(text), "class": kind} for name, (text, kind) in reject.items()]
        + [{"name": name, "hex": text, "class": kind} for name, (text, kind) in hexes.items()],
    }


def _input(text: str) -> dict[str, Any]:
    """Keep long runs short in the file: a prefix repeated, and a suffix repeated."""
    if len(text) > 1_000:
        half = len(text) // 2
        if text == text[0] * len(text):
            return {"repeat": [[text[0], len(text)]]}
        return {"repeat": [[text[0], half], [text[-1], half]]}
    return {"input": text}


def digest_vectors() -> list[dict[str, str]]:
    domains = ["surehand/example/v1", "surehand/action/v1", "surehand/journal/record/v1", "surehand/permit/v1"]
    texts = ["", "{}", '{"a":"é"}']
    return [
        {"domain": domain, "bytes": text, "digest": canonical.digest(domain, text.encode())}
        for domain in domains
        for text in texts
    ]


def chain_vectors() -> dict[str, Any]:
    events = [to_value(event) for event in log()]
    one, two, three = events
    other = "0" * 63 + "1"
    changed = {**two, "actor": "someone"}
    resealed = chain.row_of(Event(**{**three, "prev_hash": other}))
    moved = {**three, "prev_hash": other, "record_hash": chain.record_hash(resealed)}
    return {
        "accept": events,
        "reject": [
            {"name": "a changed field", "class": "hash", "seq": 2, "events": [one, changed, three]},
            {"name": "a dropped record", "class": "sequence", "seq": 3, "events": [one, three]},
            {"name": "a dropped first record", "class": "sequence", "seq": 2, "events": [two, three]},
            {"name": "two records swapped", "class": "sequence", "seq": 3, "events": [one, three, two]},
            {"name": "a record twice", "class": "sequence", "seq": 2, "events": [one, two, two, three]},
            {"name": "a record of another log", "class": "link", "seq": 3, "events": [one, two, moved]},
        ],
    }


def grant_vectors() -> dict[str, Any]:
    signed = grant()
    facts = {
        "principal": "agent",
        "operation_id": "op-1",
        "action_hash": signed.grant.action_hash,
        "risk": "external",
        "now_ms": NOW_MS,
    }
    value = to_value(signed)
    stranger = SigningKey(bytes([9]) * 32).sign(authority.grant_message(signed.grant))
    bare = HOST.sign(b"surehand/other/v1\x00" + canonical.encode_record(signed.grant))

    def other(
        name: str, kind: str, *, grant: dict[str, Any] | None = None, signature: str | None = None, **changed: Any
    ) -> dict[str, Any]:
        body = {"grant": {**value["grant"], **(grant or {})}, "signature": signature or value["signature"]}
        return {"name": name, "class": kind, "signed": body, "facts": {**facts, **changed}}

    return {
        "keyring": [{"issuer": "acme", "key_id": HOST.key_id, "public_key": HOST.public_key, "policy_generation": 4}],
        "accept": [
            {"name": "as signed", "signed": value, "facts": facts},
            {"name": "in its last millisecond", "signed": value, "facts": {**facts, "now_ms": NOW_MS + 59_999}},
        ],
        "reject": [
            other("another key signed", "signature", signature=stranger),
            other("signed under another domain", "signature", signature=bare),
            other("one bit of the signature", "signature", signature=_flipped(value["signature"])),
            other("a field changed after signing", "signature", grant={"expires_at_ms": NOW_MS + 90_000}),
            other("an unknown issuer", "signature", grant={"issuer": "acme2"}),
            other("an unknown key", "signature", grant={"key_id": "0" * 16}),
            other("for another principal", "principal", principal="agent-2"),
            other("for another operation", "operation_id", operation_id="op-2"),
            other("for another action", "action_hash", action_hash="0" * 64),
            other("for another risk", "risk", risk="reversible"),
            other("expired this millisecond", "expired", now_ms=NOW_MS + 60_000),
            other("a field too many", "malformed", grant={"admin": True}),
            other("a number as text", "malformed", grant={"policy_generation": "4"}),
            other("a negative generation", "malformed", grant={"policy_generation": -1}),
            other("an upper-case hash", "malformed", grant={"action_hash": signed.grant.action_hash.upper()}),
            other("a short signature", "malformed", signature=value["signature"][:-2]),
        ],
    }


def _flipped(signature: str) -> str:
    return f"{int(signature[:2], 16) ^ 1:02x}{signature[2:]}"


def vectors() -> dict[str, Any]:
    """Return the content of every vector file by its name."""
    return {
        "canonical.json": canonical_vectors(),
        "digests.json": digest_vectors(),
        "chain.json": chain_vectors(),
        "grants.json": grant_vectors(),
    }


def filled(page: str) -> str:
    """Return a page with every example block filled."""
    blocks = examples()
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[4]}", page)


def main() -> None:
    (SPEC / "vectors").mkdir(parents=True, exist_ok=True)
    for name, value in vectors().items():
        (SPEC / "vectors" / name).write_text(json.dumps(value, ensure_ascii=True, indent=1) + "\n", "utf-8")
    for page in SPEC.glob("*.md"):
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
