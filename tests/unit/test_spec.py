"""The pages and vectors of `spec/`: what they show is what the code forms, and others can follow them.

Where it matters the check is made with another library or by hand, from what the page says.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re

import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from surehand.core import authority, chain
from surehand.core.authority import Keyring, PinnedKey
from surehand.errors import AuthorityDenied, SurehandError
from surehand.model.authority import SignedGrant
from surehand.model.events import Event
from surehand.model.record import convert
from surehand.signing.ed25519 import verify
from surehand.verify.audit import audit
from tests import spec_examples
from tests.spec_examples import SPEC

PAGES = sorted(SPEC.glob("*.md"))
CHAIN = json.loads((SPEC / "vectors" / "chain.json").read_text("utf-8"))
GRANTS = json.loads((SPEC / "vectors" / "grants.json").read_text("utf-8"))


def example(name: str):
    found = re.search(
        rf"<!-- example: {name} -->\n```json\n(.*?)\n```",
        "\n".join(page.read_text("utf-8") for page in PAGES),
        re.DOTALL,
    )
    assert found, name
    return json.loads(found[1])


def by_hand(domain: str, value) -> bytes:
    return domain.encode() + b"\x00" + rfc8785.dumps(value)


# --- they are current ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_a_page_is_what_the_code_forms(page):
    text = page.read_text("utf-8")
    assert "<!-- example: " in text
    assert text == spec_examples.filled(text), "run python -m tests.spec_examples"


@pytest.mark.parametrize("name", spec_examples.vectors())
def test_every_vector_file_is_what_the_code_forms(name):
    assert json.loads((SPEC / "vectors" / name).read_text("utf-8")) == spec_examples.vectors()[name]


def test_every_example_that_is_formed_stands_on_a_page():
    named = set(re.findall(r"<!-- example: ([a-z-]+) -->", "".join(page.read_text("utf-8") for page in PAGES)))
    assert named == set(spec_examples.examples())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (SPEC / target).is_file(), target


def test_the_domains_on_the_page_are_those_of_the_code():
    listed = set(re.findall(r"`(surehand/[a-z/-]+/v[0-9]+)`", (SPEC / "canonical.md").read_text("utf-8")))
    source = SPEC.parent / "src" / "surehand"
    used = set()
    for path in source.rglob("*.py"):
        if "verify" not in path.parts:
            used |= set(re.findall(r"[\"`](surehand/[a-z/-]+/v[0-9]+)[\"`\\]", path.read_text("utf-8")))
    assert listed - {"surehand/example/v1"} == used


# --- and others can follow them ---------------------------------------------------------------------------------------------


def test_the_canonical_example_follows_from_its_page():
    shown = example("canonical")
    data = rfc8785.dumps(shown["value"])
    assert data.decode() == shown["bytes"]
    assert hashlib.sha256(b"surehand/example/v1\x00" + data).hexdigest() == shown["digest"]


def test_the_journal_example_follows_from_its_page():
    record = example("journal")
    stated = record.pop("record_hash")
    assert rfc8785.dumps(record).decode() == example("journal-bytes")["bytes"]
    assert hashlib.sha256(by_hand("surehand/journal/record/v1", record)).hexdigest() == stated


def test_the_grant_example_follows_from_its_page():
    signed, shown = example("grant"), example("grant-bytes")
    message = by_hand("surehand/grant/v1", signed["grant"])
    assert message.decode() == shown["message"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(shown["public_key"]))
    key.verify(bytes.fromhex(signed["signature"]), message)
    with pytest.raises(InvalidSignature):
        key.verify(bytes.fromhex(signed["signature"]), message + b" ")


def test_the_permit_example_follows_from_its_page():
    shown = example("permit")
    permit = shown["permit"]
    stated = permit.pop("mac")
    assert hmac.digest(bytes.fromhex(shown["key"]), by_hand("surehand/permit/v1", permit), "sha256").hex() == stated
    action_hash = example("grant")["grant"]["action_hash"]
    request = by_hand("surehand/request/v1", ["agent", "op-1", action_hash])
    assert hashlib.sha256(request).hexdigest() == permit["request_hash"]
    assert permit["expires_at_ms"] == spec_examples.NOW_MS + 30_000


def test_the_approval_example_follows_from_its_page():
    shown = example("answer")
    answer = shown["answer"]
    assert (
        hashlib.sha256(by_hand("surehand/presentation/v1", example("presentation"))).hexdigest()
        == answer["presentation_hash"]
    )
    signature = bytes.fromhex(answer.pop("signature"))
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(shown["public_key"]))
    key.verify(signature, by_hand("surehand/approval-answer/v1", answer))


def test_the_receipt_example_holds_no_content_of_the_request():
    assert "Zürich" not in json.dumps(example("receipt"), ensure_ascii=False)


# --- vectors ------------------------------------------------------------------------------------------------------------------


REASONS = {
    "hash": ("does not match the stored fields", "does not match the stored fields"),
    "sequence": ("is missing", "is missing|goes back"),
    "link": ("previous hash", "previous hash"),
}


def write(tmp_path, events):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(rfc8785.dumps(event) + b"\n" for event in events))
    return path


def first_fault(events) -> tuple[int, str] | None:
    head = chain.EMPTY
    for value in events:
        row = chain.row_of(convert(Event, value))
        if why := chain.fault(row, head):
            return row.seq, why
        head = chain.Head(row.seq, row.record_hash)
    return None


def test_the_whole_log_is_whole_for_writer_and_auditor(tmp_path):
    assert first_fault(CHAIN["accept"]) is None
    verdict = audit(write(tmp_path, CHAIN["accept"]))
    assert verdict.ok, verdict
    assert (verdict.events, verdict.counts.claims, verdict.counts.terminals) == (3, 1, 1)


@pytest.mark.parametrize("vector", CHAIN["reject"], ids=lambda vector: vector["name"])
def test_a_damaged_log_is_refused_by_both_for_its_reason(tmp_path, vector):
    ours, theirs = REASONS[vector["class"]]
    seq, why = first_fault(vector["events"])
    assert re.search(ours, why)
    assert seq == vector["seq"]
    verdict = audit(write(tmp_path, vector["events"]))
    assert not verdict.ok
    assert re.search(theirs, verdict.reason)
    assert verdict.seq == vector["seq"]


def check_grant(vector):
    keyring = Keyring(convert(tuple[PinnedKey, ...], GRANTS["keyring"]))
    return authority.check_grant(convert(SignedGrant, vector["signed"]), keyring, verify, **vector["facts"])


@pytest.mark.parametrize("vector", GRANTS["accept"], ids=lambda vector: vector["name"])
def test_a_good_grant_is_accepted(vector):
    assert check_grant(vector).mode == "host"
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(GRANTS["keyring"][0]["public_key"]))
    key.verify(bytes.fromhex(vector["signed"]["signature"]), by_hand("surehand/grant/v1", vector["signed"]["grant"]))


@pytest.mark.parametrize("vector", GRANTS["reject"], ids=lambda vector: vector["name"])
def test_a_bad_grant_is_refused_for_its_reason(vector):
    with pytest.raises(SurehandError) as refused:
        check_grant(vector)
    if vector["class"] == "malformed":
        assert refused.value.code == "invalid_request"
        return
    assert isinstance(refused.value, AuthorityDenied)
    expected = {"signature": "not signed by a pinned key", "expired": "has expired"}
    assert expected.get(vector["class"], f"for another {vector['class']}") in refused.value.message


def test_a_keyring_that_pins_a_pair_twice_is_refused_whole():
    with pytest.raises(SurehandError):
        Keyring(convert(tuple[PinnedKey, ...], GRANTS["keyring"] * 2))
