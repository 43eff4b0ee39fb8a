"""Every record of the model against bad input: each limit at the limit and one past it, every wrong type, every shape.

C10 of the cases is here: an index, id or count of −1, 2^63, 1.5, "1", null is refused with a typed error and nothing is
made of it. Input is given as bytes, as it arrives; what is accepted is exactly what was given, never a coerced form.
"""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
from typing import Any

import msgspec
import pytest

import surehand.model
from surehand import canonical, limits
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model import (
    actions,
    approval,
    authority,
    credential,
    decision,
    events,
    outcome,
    query,
    request,
    scene,
    secrets,
    targets,
)
from surehand.model import verification as verifications
from surehand.model.record import Record, Tagged, convert, decode

HASH = "ab" * 32
SIGNATURE = "cd" * 64
ELEMENT = {
    "kind": "element", "scene_id": "sc-1", "generation": 1, "element_id": "e17", "provenance_hash": HASH,
    "fingerprint_hash": HASH, "context_hash": HASH,
}  # fmt: skip
POINT = {"kind": "point", "space": "desktop", "x": 1, "y": 2, "capture_id": "c1"}
QUERY = {"filters": [{"role": "button"}]}
GRANT = {
    "issuer": "acme", "key_id": "k1", "principal": "agent", "operation_id": "op-1", "action_hash": HASH,
    "risk": "reversible", "policy_generation": 0, "expires_at_ms": 1,
}  # fmt: skip
RECEIPT = {
    "operation_id": "op-1", "action_hash": HASH, "action": "desktop.invoke", "principal": "agent", "started_at_ms": 1,
    "finished_at_ms": 2, "backend": "atspi", "route": "atspi.action", "isolation": "isolated",
    "interaction_mode": "interactive", "context_preservation": "unchanged", "effect": "verified", "evidence": {},
    "authority_mode": "daemon", "trust_level": "A", "decision_id": "d-1",
}  # fmt: skip
PRESENTATION = {
    "principal": "agent", "app": "a", "place": "p", "element": "e", "context": "c", "action": "desktop.invoke",
    "parameters": {}, "risk": "reversible", "categories": [], "reason": "r", "action_hash": HASH,
}  # fmt: skip
FACTS = {"app": "a", "place": "p", "isolation": "isolated", "trust_level": "A", "backend": "atspi"}
BINDING = {"apps": ["exe:/a"], "origins": ["https://h"], "fields": [{"role": "text", "name": "Code"}]}
IDENTITY = {"key": "exe:/usr/bin/x", "pid": 1, "process_generation": "g", "uid": 0, "executable": "/usr/bin/x"}

#: One good value of every record.
SAMPLES: dict[type, dict[str, Any]] = {
    actions.Invoke: {"kind": "invoke"},
    actions.SetValue: {"kind": "set_value", "value": "x"},
    actions.SelectText: {"kind": "select_text", "start": 0, "length": 1},
    actions.SelectOption: {"kind": "select_option", "option": "x"},
    actions.Toggle: {"kind": "toggle", "to": True},
    actions.Expand: {"kind": "expand", "to": True},
    actions.Focus: {"kind": "focus"},
    actions.Perform: {"kind": "perform", "name": "show menu"},
    actions.Scroll: {"kind": "scroll", "direction": "down", "amount_milli": 1000, "unit": "page"},
    actions.ScrollIntoView: {"kind": "scroll_into_view"},
    actions.Click: {"kind": "click", "button": "right", "count": 2, "modifiers": ["shift"]},
    actions.Hover: {"kind": "hover"},
    actions.Move: {"kind": "move"},
    actions.Hold: {"kind": "hold", "button": "right"},
    actions.Release: {"kind": "release", "button": "right"},
    actions.Drag: {"kind": "drag", "to": POINT, "path": [POINT], "button": "right"},
    actions.TypeText: {"kind": "type_text", "text": "x", "clear": True, "submit": True},
    actions.Press: {"kind": "press", "chords": ["ctrl+s"]},
    actions.Paste: {"kind": "paste", "text": "x"},
    actions.Screenshot: {"kind": "screenshot"},
    actions.App: {"kind": "app", "op": "launch", "name": "mousepad", "arguments": ["x"]},
    actions.Open: {"kind": "open", "uri": "file:///x"},
    actions.Window: {"kind": "window", "op": "focus"},
    actions.Clipboard: {"kind": "clipboard", "op": "write", "text": "x"},
    actions.Abort: {"kind": "abort"},
    actions.PhysicalState: {"kind": "physical_state"},
    actions.Navigate: {"kind": "navigate", "url": "https://example.org/"},
    actions.History: {"kind": "history", "op": "back"},
    actions.Tab: {"kind": "tab", "op": "open", "url": "https://example.org/"},
    actions.Upload: {"kind": "upload", "paths": ["/x"]},
    actions.Dialog: {"kind": "dialog", "op": "accept", "text": "x"},
    targets.ElementTarget: ELEMENT,
    targets.QueryTarget: {"kind": "query", "surface": "w1", "query": QUERY},
    targets.PointTarget: POINT,
    targets.SurfaceTarget: {"kind": "surface", "ref": "w1"},
    targets.NoTarget: {"kind": "none"},
    verifications.NoVerification: {"kind": "none"},
    verifications.ValueIs: {"kind": "value", "equals": "x"},
    verifications.StateIs: {"kind": "state", "states": {"checked": True}},
    verifications.TextContains: {"kind": "text", "contains": "x"},
    verifications.Appears: {"kind": "appears", "query": QUERY},
    verifications.Disappears: {"kind": "disappears", "query": QUERY},
    verifications.TitleContains: {"kind": "title", "contains": "x"},
    verifications.UrlContains: {"kind": "url", "contains": "x"},
    verifications.AllOf: {"kind": "all", "parts": [{"kind": "none"}]},
    verifications.AnyOf: {"kind": "any", "parts": [{"kind": "none"}]},
    query.TextMatch: {"text": "x", "match": "prefix"},
    query.Rect: {"x": 0, "y": 0, "width": 1, "height": 1},
    query.Filter: {"role": "button"},
    query.Query: {"filters": [{"role": "button"}], "max_results": 5},
    secrets.SecretField: {"role": "text", "name": "Code"},
    secrets.SecretBinding: BINDING,
    secrets.EnvSecret: {"name": "TOKEN", "bound_to": BINDING},
    secrets.BoundSecret: {"reference": "vault:mail", "bound_to": BINDING, "changed_at_ms": 1},
    secrets.VaultPassphrase: {"ops": 1, "memory_bytes": 8192, "salt": "00"},
    request.Request: {
        "operation_id": "op-1", "action": {"kind": "set_value", "value": "x"}, "target": ELEMENT, "deadline_ms": 1_000,
        "interaction_mode": "background_only", "verification": {"kind": "value"}, "risk": "external", "salt": "0f" * 16,
        "authority": {"grant": GRANT, "signature": SIGNATURE}, "reconciles": "op-0",
    },
    request.Batch: {
        "operation_id": "b-1", "on_refusal": "continue",
        "steps": [{"operation_id": "s", "action": {"kind": "invoke"}, "target": ELEMENT}],
    },
    authority.Grant: GRANT,
    authority.SignedGrant: {"grant": GRANT, "signature": SIGNATURE},
    authority.StandingGrant: {
        "grant_id": "g", "principal": "agent", "app": "a", "place": "p", "actions": ["desktop.invoke"],
        "risk_max": "external", "uses_max": 1, "expires_at_ms": 1, "issued_by": "ada",
    },
    approval.Presentation: PRESENTATION,
    approval.Change: {"name": "element", "before": "a", "after": "b"},
    approval.Notice: {
        "event": "approval.requested", "approval_id": "ap", "state": "waiting", "principal": "agent",
        "action": "desktop.invoke", "app": "exe:/a", "risk": "external", "categories": ["purchase"],
        "presentation_hash": HASH, "needed": 2, "requested_at_ms": 1, "expires_at_ms": 2, "presentation": PRESENTATION,
    },
    approval.PendingApproval: {
        "approval_id": "ap", "operation_id": "op-1", "principal": "agent", "presentation": PRESENTATION,
        "presentation_hash": HASH, "requested_at_ms": 1, "expires_at_ms": 2, "needed": 2,
    },
    approval.ApprovalAnswer: {
        "approval_id": "ap", "presentation_hash": HASH, "answer": "approve", "approver": "ada", "key_id": "k",
        "answered_at_ms": 1, "expires_at_ms": 2, "reason": "r", "signature": SIGNATURE,
    },
    credential.Assertion: {"authenticator_data": HASH, "client_data": "7b7d"},
    credential.Invitation: {"approver": "ada", "key_id": "k", "code_hash": HASH, "expires_at_ms": 1},
    credential.Registration: {"code": "ABCDE-23456", "label": "l", "authenticator_data": HASH, "client_data": "7b7d"},
    credential.Credential: {
        "approver": "ada", "key_id": "w", "credential_id": HASH, "algorithm": "EdDSA", "public_key": HASH, "sign_count": 1,
        "enrolled_by": "k", "enrolled_at_ms": 1, "label": "l",
    },
    decision.Facts: FACTS,
    decision.PolicyInput: {
        "principal": "agent", "action": "desktop.invoke", "risk": "reversible", "interaction_mode": "interactive",
        "parameters": {}, "facts": FACTS, "approved": True,
    },
    decision.Obligations: {"redact": ["x"], "release": "ask", "approvals_needed": 2},
    decision.Decision: {
        "decision_id": "d", "outcome": "allow", "policy_revision": "r", "rule": "x", "reason": "y", "obligations": {},
    },
    decision.Permit: {
        "request_hash": HASH, "decision_id": "d", "obligations_hash": HASH, "session": "s", "nonce": "n",
        "expires_at_ms": 1, "mac": HASH,
    },
    outcome.Evidence: {"before": HASH, "after": HASH},
    outcome.Receipt: RECEIPT,
    outcome.Terminal: {"kind": "failed", "receipt": RECEIPT, "code": "internal", "message": "m", "retry_safe": True},
    outcome.Proof: {"seq": 1, "record_hash": HASH},
    outcome.Reply: {"operation_id": "op-1", "status": "refused", "replayed": True, "proof": {"seq": 1, "record_hash": HASH}},
    events.NewEvent: {"stream": "s", "type": "a.b.v1", "actor": "x", "payload": {}, "context": {"a": 1}, "expected_version": 1},
    scene.AppIdentity: IDENTITY,
    scene.Surface: {
        "surface_id": "w1", "desktop": "d", "app": IDENTITY, "backend": "atspi", "toolkit": "gtk", "title": "t",
        "role": "window", "place": "main",
    },
    scene.Provenance: {"backend": "atspi", "desktop": "d", "app": "a", "process_generation": "g", "surface_id": "w1"},
    scene.Capture: {
        "capture_id": "c", "surface_id": "w1", "origin_x": 0, "origin_y": 0, "width": 1, "height": 1,
        "scale_milli": 1000, "taken_at_ms": 1,
    },
    scene.CapabilityFact: {"action": "invoke", "target_kind": "element", "route": "atspi.action", "background": "guarded"},
}  # fmt: skip


def every_record() -> set[type]:
    for module in pkgutil.iter_modules(surehand.model.__path__, "surehand.model."):
        importlib.import_module(module.name)
    found: set[type] = set()
    pending: list[type] = [Record]
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            found.add(cls)
    return {cls for cls in found if cls.__module__.startswith("surehand.model.")} - {Tagged}


def read(kind: type, value: Any) -> Any:
    return decode(kind, json.dumps(value).encode())


def with_raw(value: dict[str, Any], field: str, raw: str) -> bytes:
    """Return the JSON of a value whose field is these raw characters."""
    return json.dumps({**value, field: "@@"}).replace('"@@"', raw).encode()


RECORDS = [pytest.param(kind, sample, id=kind.__name__) for kind, sample in SAMPLES.items()]
FIELDS = [
    pytest.param(kind, sample, field, id=f"{kind.__name__}.{field}")
    for kind, sample in SAMPLES.items()
    for field in sample
    if field != "kind" or kind is outcome.Terminal
]


def test_every_record_of_the_model_has_a_sample():
    assert every_record() == set(SAMPLES)


# --- shapes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "sample"), RECORDS)
def test_a_good_value_is_read_and_is_the_same_when_written(kind, sample):
    record = read(kind, sample)
    assert decode(kind, canonical.encode_record(record)) == record
    assert json.loads(canonical.encode_record(record)) == sample


@pytest.mark.parametrize(("kind", "sample"), RECORDS)
def test_a_record_cannot_be_changed(kind, sample):
    record = read(kind, sample)
    for field in record.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(record, field, None)


@pytest.mark.parametrize(("kind", "sample"), RECORDS)
def test_an_unknown_field_is_refused(kind, sample):
    with pytest.raises(InvalidRequest):
        read(kind, {**sample, "surprise": 1})


@pytest.mark.parametrize(("kind", "sample", "field"), FIELDS)
def test_a_key_that_stands_twice_is_refused(kind, sample, field):
    text = json.dumps(sample)
    doubled = text[:-1] + f", {json.dumps(field)}: {json.dumps(sample[field])}}}"
    with pytest.raises(InvalidRequest, match="twice"):
        decode(kind, doubled.encode())


@pytest.mark.parametrize(("kind", "sample", "field"), FIELDS)
def test_a_missing_field_is_refused_unless_it_has_a_default(kind, sample, field):
    less = {name: item for name, item in sample.items() if name != field}
    required = {info.name for info in msgspec.structs.fields(kind) if info.required}
    if field in required:
        with pytest.raises(InvalidRequest, match=field):
            read(kind, less)


@pytest.mark.parametrize(("kind", "sample"), RECORDS)
@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"1", b'"x"', b"true", b"{}{}", b"{", b"\xff"])
def test_what_is_no_object_is_refused(kind, sample, data):
    with pytest.raises(InvalidRequest):
        decode(kind, data)


# --- wrong types ----------------------------------------------------------------------------------------------------------

#: Raw JSON and the Python value it must still be where it is accepted.
WRONG = {
    "1.0": None, "1.5": None, "1e2": None, "NaN": None, "Infinity": None, "-0.0": None, str(2**63): None, str(-(2**63)): None, str(2**53): None,
    '"1"': "1", "null": None, "true": True, "-1": -1, "[]": [], "{}": {}, '"\\ud800"': None, '"\\u0000"': "\x00", '""': "", "[[]]": [[]],
    '{"\\ud800": 1}': None, '[1, "x"]': [1, "x"],
}  # fmt: skip
NEVER = {
    "1.0",
    "1.5",
    "1e2",
    "NaN",
    "Infinity",
    "-0.0",
    str(2**63),
    str(-(2**63)),
    str(2**53),
    '"\\ud800"',
    '{"\\ud800": 1}',
}


@pytest.mark.parametrize(("kind", "sample", "field"), FIELDS)
def test_a_wrong_value_in_any_field_is_a_typed_refusal_or_is_taken_exactly_as_given(kind, sample, field):
    for raw, given in WRONG.items():
        try:
            record = decode(kind, with_raw(sample, field, raw))
        except (InvalidRequest, TooLarge):
            continue
        assert raw not in NEVER
        assert json.loads(json.dumps(msgspec.to_builtins(getattr(record, field)))) == given
        assert type(msgspec.to_builtins(getattr(record, field))) in {type(given), tuple}


INTEGERS = [
    (actions.SelectText, "start"), (actions.SelectText, "length"), (actions.Scroll, "amount_milli"), (actions.Click, "count"),
    (targets.ElementTarget, "generation"), (query.Rect, "width"), (query.Rect, "height"), (query.Query, "max_results"),
    (request.Request, "deadline_ms"), (authority.Grant, "policy_generation"), (authority.Grant, "expires_at_ms"),
    (authority.StandingGrant, "uses_max"), (authority.StandingGrant, "expires_at_ms"),
    (credential.Credential, "sign_count"), (credential.Invitation, "expires_at_ms"),
]  # fmt: skip


@pytest.mark.parametrize("raw", ["-1", str(2**63), "1.5", '"1"', "null", "true", "[1]", "1.0"])
@pytest.mark.parametrize(("kind", "field"), INTEGERS, ids=lambda part: getattr(part, "__name__", part))
def test_an_index_or_count_that_is_no_natural_number_is_refused(kind, field, raw):
    """C10."""
    with pytest.raises(InvalidRequest):
        decode(kind, with_raw(SAMPLES[kind], field, raw))


IDENTIFIERS = [
    (targets.ElementTarget, "scene_id"), (targets.ElementTarget, "element_id"), (targets.PointTarget, "capture_id"),
    (targets.QueryTarget, "surface"), (targets.SurfaceTarget, "ref"), (request.Request, "operation_id"),
    (request.Request, "reconciles"), (request.Batch, "operation_id"), (authority.Grant, "issuer"), (authority.Grant, "key_id"),
    (authority.Grant, "principal"), (authority.Grant, "operation_id"), (authority.StandingGrant, "grant_id"),
    (authority.StandingGrant, "principal"), (decision.Decision, "decision_id"),
    (credential.Invitation, "approver"), (credential.Credential, "approver"), (credential.Credential, "enrolled_by"),
]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "a b", "a/b", "../x", "é", "a\n", "\x00", "a\u202e", "x" * (limits.IDENTIFIER_CHARS_MAX + 1)]
)
@pytest.mark.parametrize(("kind", "field"), IDENTIFIERS, ids=lambda part: getattr(part, "__name__", part))
def test_an_identifier_out_of_its_alphabet_or_length_is_refused(kind, field, text):
    with pytest.raises(InvalidRequest):
        read(kind, {**SAMPLES[kind], field: text})
    assert read(kind, {**SAMPLES[kind], field: "aZ09._:-"})
    # The steps of a batch are operations named after it, and their names have the same limit.
    suffix = ":0" if kind is request.Batch else ""
    assert read(kind, {**SAMPLES[kind], field: "x" * (limits.IDENTIFIER_CHARS_MAX - len(suffix))})


HASHES = [
    (targets.ElementTarget, "provenance_hash"), (targets.ElementTarget, "fingerprint_hash"), (targets.ElementTarget, "context_hash"),
    (authority.Grant, "action_hash"), (decision.Permit, "request_hash"), (decision.Permit, "obligations_hash"), (decision.Permit, "mac"),
]  # fmt: skip


@pytest.mark.parametrize("text", ["", "ab" * 31, "ab" * 33, "AB" * 32, "zz" * 32, " " + "ab" * 31 + "a", HASH + "\n"])
@pytest.mark.parametrize(("kind", "field"), HASHES, ids=lambda part: getattr(part, "__name__", part))
def test_a_hash_that_is_not_64_lower_case_digits_is_refused(kind, field, text):
    with pytest.raises(InvalidRequest):
        read(kind, {**SAMPLES[kind], field: text})


@pytest.mark.parametrize("text", ["", "cd" * 63, "cd" * 65, "CD" * 64, "zz" * 64])
def test_a_signature_that_is_not_128_lower_case_digits_is_refused(text):
    with pytest.raises(InvalidRequest):
        read(authority.SignedGrant, {"grant": GRANT, "signature": text})


@pytest.mark.parametrize("text", ["", "0f" * 15, "0f" * 17, "0F" * 16, "zz" * 16])
def test_a_salt_that_is_not_32_lower_case_digits_is_refused(text):
    with pytest.raises(InvalidRequest):
        read(request.Request, {**SAMPLES[request.Request], "salt": text})


# --- every limit, at the limit and one past it --------------------------------------------------------------------------------

#: Record, field, value at a size, the largest size, and the error past it.
LIMITS = [
    (actions.SetValue, "value", "x".__mul__, limits.VALUE_BYTES_MAX, TooLarge),
    (actions.SelectOption, "option", "x".__mul__, limits.NAME_CHARS_MAX, TooLarge),
    (actions.Perform, "name", "x".__mul__, limits.NAME_CHARS_MAX, TooLarge),
    (actions.TypeText, "text", "x".__mul__, limits.TEXT_BYTES_MAX, TooLarge),
    (actions.Paste, "text", "x".__mul__, limits.TEXT_BYTES_MAX, TooLarge),
    (actions.Dialog, "text", "x".__mul__, limits.TEXT_BYTES_MAX, TooLarge),
    (actions.Clipboard, "text", "x".__mul__, limits.VALUE_BYTES_MAX, TooLarge),
    (actions.Open, "uri", "x".__mul__, 16 * 1024, TooLarge),
    (actions.Navigate, "url", "x".__mul__, 16 * 1024, TooLarge),
    (actions.Tab, "url", "x".__mul__, 16 * 1024, TooLarge),
    (actions.App, "name", "x".__mul__, limits.NAME_CHARS_MAX, TooLarge),
    (actions.App, "arguments", ["x"].__mul__, limits.PATHS_MAX, TooLarge),
    (actions.App, "arguments", lambda size: ["x" * size], limits.NAME_CHARS_MAX, TooLarge),
    (actions.Upload, "paths", ["x"].__mul__, limits.PATHS_MAX, TooLarge),
    (actions.Upload, "paths", lambda size: ["x" * size], 4096, TooLarge),
    (actions.Press, "chords", ["a"].__mul__, limits.CHORDS_MAX, TooLarge),
    (actions.Press, "chords", lambda size: ["a" * size], limits.IDENTIFIER_CHARS_MAX, TooLarge),
    (actions.Drag, "path", [POINT].__mul__, limits.DRAG_PATH_POINTS_MAX, TooLarge),
    (actions.Click, "count", int, limits.CLICK_COUNT_MAX, InvalidRequest),
    (actions.Scroll, "amount_milli", int, limits.SCROLL_AMOUNT_MILLI_MAX, InvalidRequest),
    (actions.SelectText, "start", int, limits.VALUE_BYTES_MAX - 1, InvalidRequest),
    (actions.SelectText, "length", int, limits.VALUE_BYTES_MAX, InvalidRequest),
    (targets.PointTarget, "x", int, limits.COORDINATE_MAX, InvalidRequest),
    (targets.PointTarget, "y", int, limits.COORDINATE_MAX, InvalidRequest),
    (targets.ElementTarget, "generation", int, limits.INTEGER_MAX, InvalidRequest),
    (query.TextMatch, "text", "x".__mul__, limits.QUERY_TEXT_BYTES_MAX, TooLarge),
    (query.Query, "filters", [{"role": "button"}].__mul__, limits.QUERY_FILTERS_MAX, TooLarge),
    (query.Query, "max_results", int, limits.QUERY_RESULTS_MAX, InvalidRequest),
    (query.Rect, "width", int, limits.COORDINATE_MAX, InvalidRequest),
    (query.Rect, "height", int, limits.COORDINATE_MAX, InvalidRequest),
    (query.Rect, "x", int, limits.COORDINATE_MAX, InvalidRequest),
    (query.Rect, "y", int, limits.COORDINATE_MAX, InvalidRequest),
    (query.Filter, "role", "x".__mul__, limits.IDENTIFIER_CHARS_MAX, TooLarge),
    (verifications.ValueIs, "equals", "x".__mul__, limits.VALUE_BYTES_MAX, TooLarge),
    (verifications.TextContains, "contains", "x".__mul__, limits.TEXT_BYTES_MAX, TooLarge),
    (verifications.TitleContains, "contains", "x".__mul__, limits.NAME_CHARS_MAX, TooLarge),
    (verifications.UrlContains, "contains", "x".__mul__, 16 * 1024, TooLarge),
    (verifications.StateIs, "states", lambda size: {f"s{n}": True for n in range(size)}, 32, TooLarge),
    (verifications.AllOf, "parts", [{"kind": "none"}].__mul__, limits.VERIFICATION_PARTS_MAX, TooLarge),
    (verifications.AnyOf, "parts", [{"kind": "none"}].__mul__, limits.VERIFICATION_PARTS_MAX, TooLarge),
    (request.Request, "deadline_ms", int, limits.DEADLINE_MS_MAX, InvalidRequest),
    (request.Batch, "steps", SAMPLES[request.Batch]["steps"].__mul__, limits.BATCH_STEPS_MAX, TooLarge),
    (authority.Grant, "policy_generation", int, limits.INTEGER_MAX, InvalidRequest),
    (authority.Grant, "expires_at_ms", int, limits.INTEGER_MAX, InvalidRequest),
    (authority.StandingGrant, "uses_max", int, limits.STANDING_USES_MAX, InvalidRequest),
    (authority.StandingGrant, "actions", ["desktop.invoke"].__mul__, 64, TooLarge),
    (decision.Decision, "reason", "x".__mul__, limits.REASON_CHARS_MAX * 4, TooLarge),
    (approval.ApprovalAnswer, "signature", "x".__mul__, 2 * limits.WEBAUTHN_SIGNATURE_BYTES_MAX, TooLarge),
    (credential.Assertion, "authenticator_data", "00".__mul__, limits.WEBAUTHN_AUTHENTICATOR_BYTES_MAX, TooLarge),
    (credential.Assertion, "client_data", "00".__mul__, limits.WEBAUTHN_CLIENT_BYTES_MAX, TooLarge),
    (credential.Credential, "credential_id", "00".__mul__, limits.WEBAUTHN_CREDENTIAL_BYTES_MAX, TooLarge),
    (credential.Credential, "label", "x".__mul__, limits.CREDENTIAL_LABEL_BYTES_MAX, TooLarge),
    (credential.Credential, "sign_count", int, limits.WEBAUTHN_COUNT_MAX, InvalidRequest),
]


@pytest.mark.parametrize(
    ("kind", "field", "make", "most", "error"), LIMITS, ids=[f"{row[0].__name__}.{row[1]}-{row[3]}" for row in LIMITS]
)
def test_a_field_at_its_limit_is_taken_and_one_past_it_is_not(kind, field, make, most, error):
    read(
        kind,
        {**SAMPLES[kind], field: make(most)}
        if kind is not actions.SelectText or field != "length"
        else {**SAMPLES[kind], "start": 0, field: most},
    )
    with pytest.raises(error) as refused:
        read(kind, {**SAMPLES[kind], field: make(most + 1)})
    assert len(refused.value.message) < 300


@pytest.mark.parametrize(
    ("kind", "field", "least"),
    [
        (actions.Click, "count", 1), (actions.Scroll, "amount_milli", 1), (actions.SelectText, "start", 0), (actions.SelectText, "length", 0),
        (targets.ElementTarget, "generation", 1), (targets.PointTarget, "x", -limits.COORDINATE_MAX), (query.Query, "max_results", 1),
        (query.Rect, "width", 0), (request.Request, "deadline_ms", 1), (authority.Grant, "policy_generation", 0),
        (authority.Grant, "expires_at_ms", 1), (authority.StandingGrant, "uses_max", 1),
    ],
)  # fmt: skip
def test_a_number_at_its_least_is_taken_and_one_below_is_not(kind, field, least):
    read(kind, {**SAMPLES[kind], field: least})
    with pytest.raises(InvalidRequest):
        read(kind, {**SAMPLES[kind], field: least - 1})


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (actions.Press, "chords"), (actions.Upload, "paths"), (query.Query, "filters"), (verifications.AllOf, "parts"),
        (verifications.AnyOf, "parts"), (authority.StandingGrant, "actions"),
    ],
)  # fmt: skip
def test_an_empty_list_where_something_is_needed_is_refused(kind, field):
    with pytest.raises(InvalidRequest):
        read(kind, {**SAMPLES[kind], field: []})


def test_an_empty_batch_is_no_fault():
    assert read(request.Batch, {"operation_id": "b", "steps": []}).steps == ()


def test_text_is_counted_in_bytes():
    most = limits.TEXT_BYTES_MAX // 2
    read(actions.TypeText, {"kind": "type_text", "text": "é" * most})
    with pytest.raises(TooLarge):
        read(actions.TypeText, {"kind": "type_text", "text": "é" * most + "x"})


def test_a_regular_expression_has_a_limit_of_its_own():
    good = {"text": "x" * limits.QUERY_REGEX_BYTES_MAX, "match": "regex"}
    read(query.TextMatch, good)
    with pytest.raises(TooLarge):
        read(query.TextMatch, {**good, "text": good["text"] + "x"})
    with pytest.raises(InvalidRequest):
        read(query.TextMatch, {"text": "", "match": "regex"})


def test_verifications_nest_to_their_limit_and_not_one_deeper():
    part: dict[str, Any] = {"kind": "none"}
    for _ in range(limits.VERIFICATION_DEPTH_MAX - 1):
        part = {"kind": "all", "parts": [part]}
    read(verifications.AnyOf, {"kind": "any", "parts": [part["parts"][0]]})
    read(verifications.AllOf, part)
    with pytest.raises(TooLarge):
        read(verifications.AllOf, {"kind": "all", "parts": [{"kind": "any", "parts": [part]}]})


# --- fields that depend on each other ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (actions.SetValue, {"kind": "set_value"}),
        (actions.SetValue, {"kind": "set_value", "value": "x", "secret_ref": "vault:y"}),
        (actions.SetValue, {"kind": "set_value", "secret_ref": ""}),
        (actions.Click, {"kind": "click", "modifiers": ["shift", "shift"]}),
        (actions.Click, {"kind": "click", "modifiers": ["hyper"]}),
        (actions.Window, {"kind": "window", "op": "move"}),
        (actions.Window, {"kind": "window", "op": "move", "x": 1}),
        (actions.Window, {"kind": "window", "op": "focus", "x": 1, "y": 1}),
        (actions.Window, {"kind": "window", "op": "resize", "width": 0, "height": 1}),
        (actions.Window, {"kind": "window", "op": "resize", "width": 1, "height": limits.COORDINATE_MAX + 1}),
        (actions.Clipboard, {"kind": "clipboard", "op": "write"}),
        (actions.Clipboard, {"kind": "clipboard", "op": "read", "text": "x"}),
        (actions.Tab, {"kind": "tab", "op": "close", "url": "x"}),
        (actions.SelectText, {"kind": "select_text", "start": 10, "length": limits.VALUE_BYTES_MAX}),
        (query.Filter, {}),
        (query.Filter, {"role": "button", "label": "e1"}),
        (query.Filter, {"relation": "child"}),
        (query.Filter, {"role": "button", "to": "e1"}),
        (query.Filter, {"confidence_min": 1001}),
        (query.Filter, {"confidence_min": -1}),
        (query.Filter, {"state": {}}),
        (query.Filter, {"relation": "cousin", "to": "e1"}),
        (targets.QueryTarget, {"kind": "query", "surface": "w1", "query": QUERY, "must_match": "all"}),
        (request.Request, {"operation_id": "x", "action": {"kind": "invoke"}, "target": {"kind": "none"}}),
        (request.Request, {"operation_id": "x", "action": {"kind": "invoke"}, "target": POINT}),
        (request.Request, {"operation_id": "x", "action": {"kind": "app", "op": "launch", "name": "x"}, "target": ELEMENT}),
        (request.Request, {"operation_id": "x", "action": {"kind": "no_such"}, "target": ELEMENT}),
        (request.Request, {"operation_id": "x", "action": {}, "target": ELEMENT}),
        (request.Request, {"operation_id": "x", "action": {"kind": 1}, "target": ELEMENT}),
        (request.Request, {**SAMPLES[request.Request], "protocol_version": 2}),
        (request.Request, {**SAMPLES[request.Request], "protocol_version": "1"}),
        (authority.Grant, {**GRANT, "version": 2}),
    ],
)  # fmt: skip
def test_fields_that_do_not_go_together_are_refused(kind, value):
    with pytest.raises(InvalidRequest):
        read(kind, value)


@pytest.mark.parametrize("kind", sorted(actions.TARGET_KINDS))
def test_every_action_takes_the_targets_of_its_row_and_no_others(kind):
    by_kind = {
        "element": ELEMENT,
        "point": POINT,
        "query": SAMPLES[targets.QueryTarget],
        "surface": SAMPLES[targets.SurfaceTarget],
        "none": {"kind": "none"},
    }
    sample = next(
        value for cls, value in SAMPLES.items() if cls.__module__ == actions.__name__ and value["kind"] == kind
    )
    for target_kind, target in by_kind.items():
        value = {"operation_id": "x", "action": sample, "target": target}
        if target_kind in actions.TARGET_KINDS[kind]:
            read(request.Request, value)
        else:
            with pytest.raises(InvalidRequest):
                read(request.Request, value)


def test_every_action_kind_has_a_row_of_targets():
    kinds = {str(cls.__struct_config__.tag) for cls in every_record() if cls.__module__ == actions.__name__}
    assert kinds == set(actions.TARGET_KINDS)
    assert kinds >= actions.TEXT_ACTIONS


# --- the reader's own bounds ------------------------------------------------------------------------------------------------------


def test_deep_wide_and_large_requests_are_refused_before_anything_is_made_of_them():
    deep = b'{"operation_id":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    wide = json.dumps({"operation_id": "x", "steps": [0] * (limits.JSON_NODES_MAX + 1)}).encode()
    large = b'{"operation_id":"' + b"x" * limits.REQUEST_BYTES_MAX + b'"}'
    for data in (deep, wide, large):
        with pytest.raises(TooLarge):
            decode(request.Batch, data)


def test_queries_within_queries_end_at_the_depth_of_the_reader():
    value: Any = {"filters": [{"role": "button"}]}
    for _ in range(20):
        value = {"filters": [{"relation": "child", "to": copy.deepcopy(value)}]}
    with pytest.raises(TooLarge):
        read(query.Query, value)


@pytest.mark.parametrize(("kind", "sample"), RECORDS)
def test_a_record_is_not_made_from_values_that_were_never_json(kind, sample):
    for name, item in sample.items():
        if isinstance(item, int) and not isinstance(item, bool):
            with pytest.raises(SurehandError):
                convert(kind, {**sample, name: item + 0.5})
