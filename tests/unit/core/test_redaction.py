"""No text reaches policy or journal; no secret reaches anything."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest

from surehand.core import redaction
from surehand.core.hashing import text_digest
from surehand.model import actions
from surehand.model.actions import (
    App,
    Clipboard,
    Dialog,
    Navigate,
    Open,
    Paste,
    Press,
    SelectOption,
    SetValue,
    Tab,
    TypeText,
    Upload,
    kind_of,
)
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.targets import NoTarget, QueryTarget, SurfaceTarget
from surehand.model.verification import AllOf, Appears, TextContains, TitleContains, UrlContains, ValueIs
from tests.rules_kit import SECRET, element, request, signed_grant

DIGEST = text_digest(SECRET)
TEXT = "hunter2-S3cret"
NONE, PAGE = NoTarget(), SurfaceTarget(ref="w1")


@pytest.mark.parametrize(
    ("action", "target"),
    [
        (SetValue(value=TEXT), None),
        (TypeText(text=TEXT), None),
        (Paste(text=TEXT), None),
        (SelectOption(option=TEXT), None),
        (Clipboard(op="write", text=TEXT), NONE),
        (Dialog(op="accept", text=TEXT), PAGE),
        (App(op="launch", name="x", arguments=(f"--password={TEXT}",)), NONE),
        (Open(uri=f"https://example.org/?token={TEXT}"), NONE),
        (Open(uri=f"https://{TEXT}:{TEXT}@example.org/"), NONE),
        (Open(uri=f"/home/me/{TEXT}.txt"), NONE),
        (Navigate(url=f"https://example.org/#{TEXT}"), PAGE),
        (Tab(op="open", url=f"https://example.org/{TEXT}"), NONE),
        (Upload(paths=(f"/tmp/{TEXT}",)), None),  # noqa: S108
        (Press(chords=tuple(TEXT)), None),
    ],
)
def test_no_text_of_an_action_is_left(action, target):
    given = request(action, target)
    for value in (redaction.parameters(action, DIGEST), redaction.request_value(given, DIGEST)):
        text = json.dumps(value)
        assert TEXT not in text
        assert not set(TEXT) & {found for found in _strings(value) if len(found) == 1}
        assert '"redacted": true' in text


def _strings(value):
    if isinstance(value, dict):
        return list(itertools.chain.from_iterable(_strings(item) for item in value.values()))
    if isinstance(value, list):
        return list(itertools.chain.from_iterable(_strings(item) for item in value))
    return [value] if isinstance(value, str) else []


def _is_text(kind):
    """Say whether a field holds free text, possibly optional or in a list."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return any(_is_text(one) for one in kind.types)
    if isinstance(kind, msgspec.inspect.VarTupleType):
        return _is_text(kind.item_type)
    return isinstance(kind, msgspec.inspect.StrType)


def test_every_action_that_has_a_text_field_is_listed():
    free = {"name", "chords", "uri", "url", "op"}  # kept or treated apart: names are policy's business
    for member in msgspec.inspect.type_info(actions.Action).types:
        cls = member.cls
        kind = cls.__struct_config__.tag
        texts = {field.name for field in member.fields if _is_text(field.type)} - free
        assert texts - {"secret_ref"} == set(redaction.TEXT_FIELDS.get(kind, ())), kind


@pytest.mark.parametrize(
    "verification",
    [
        ValueIs(equals=TEXT),
        TextContains(contains=TEXT),
        TitleContains(contains=TEXT),
        UrlContains(contains=TEXT),
        Appears(query=Query(filters=(Filter(name=TextMatch(text=TEXT)), Filter(value=TextMatch(text=TEXT))))),
        AllOf(parts=(ValueIs(equals=TEXT), AllOf(parts=(TextContains(contains=TEXT),)))),
        Appears(
            query=Query(filters=(Filter(relation="child", to=Query(filters=(Filter(context=TextMatch(text=TEXT)),))),))
        ),
    ],
)
def test_no_text_that_is_expected_is_left(verification):
    assert TEXT not in json.dumps(redaction.request_value(request(verification=verification), DIGEST))


def test_no_text_of_a_query_is_left_and_its_shape_is():
    target = QueryTarget(surface="w1", query=Query(filters=(Filter(role="button"), Filter(name=TextMatch(text=TEXT)))))
    value = redaction.request_value(request(target=target), DIGEST)["target"]
    assert TEXT not in json.dumps(value)
    assert value["query"]["filters"][0] == {"role": "button"}


def test_what_stands_for_a_text_tells_equal_ones_and_their_length():
    one, two = (redaction.parameters(TypeText(text=text), DIGEST)["text"] for text in ("abc", "abd"))
    assert one == redaction.parameters(TypeText(text="abc"), DIGEST)["text"]
    assert (one["chars"], two["chars"]) == (3, 3)
    assert one["hash"] != two["hash"]
    assert one["hash"] != redaction.parameters(TypeText(text="abc"), text_digest(bytes(32)))["text"]["hash"]


@pytest.mark.parametrize(
    "chord", ["ctrl+s", "Return", "alt+F4", "shift+Tab", "Page_Down", "ArrowLeft", "super", "Control+Shift+s", "ctrl++"]
)
def test_a_command_chord_stays_readable(chord):
    assert redaction.parameters(Press(chords=(chord,)), DIGEST)["chords"] == [chord]


@pytest.mark.parametrize(
    "chord", ["a", "A", "shift+a", "exclam", "KeyA", "Digit1", "U20AC", "+", "ISO_Level3_Shift+q", "space", "é"]
)
def test_a_character_is_not_spelt_out_key_by_key(chord):
    assert redaction.parameters(Press(chords=(chord,)), DIGEST)["chords"][0]["redacted"] is True


def test_origins_stay_for_policy():
    value = redaction.parameters(Navigate(url="https://mail.example.org:8443/a?b=c"), DIGEST)["url"]
    assert (value["scheme"], value["host"]) == ("https", "mail.example.org")
    assert redaction.parameters(Open(uri="http://[broken"), DIGEST)["uri"]["host"] == ""


def test_the_salt_and_the_signature_are_kept_out_of_the_journal():
    signed = signed_grant()
    given = request(SetValue(value="x"), salt="ab" * 16, authority=signed, reconciles="op-0")
    value = redaction.request_value(given, DIGEST)
    text = json.dumps(value)
    assert "ab" * 16 not in text
    assert signed.signature not in text
    assert value["grant"] == {"issuer": "host", "key_id": "k1", "expires_at_ms": 10_000}
    assert value["reconciles"] == "op-0"


def test_targets_keep_their_fences():
    assert redaction.request_value(request(), DIGEST)["target"]["fingerprint_hash"] == element().fingerprint_hash


class TestMask:
    def test_every_occurrence_in_keys_and_values_is_masked(self):
        value = {"a": f"x{TEXT}y{TEXT}", TEXT: [TEXT, {"b": (TEXT,)}], "n": 5, "none": None}
        masked = redaction.mask(value, [TEXT])
        assert TEXT not in json.dumps(masked)
        assert masked["a"] == "x[secret]y[secret]"
        assert masked["n"] == 5

    def test_a_secret_that_holds_another_leaves_no_rest(self):
        assert redaction.mask("abcdef", ["cd", "abcdef"]) == "[secret]"

    def test_no_secret_or_an_empty_one_changes_nothing(self):
        assert redaction.mask({"a": "b"}, []) == {"a": "b"}
        assert redaction.mask({"a": "b"}, [""]) == {"a": "b"}


def test_kinds_without_texts_are_given_as_they_are():
    assert redaction.parameters(actions.Scroll(direction="up", amount_milli=5), DIGEST) == {
        "direction": "up",
        "amount_milli": 5,
    }
    assert kind_of(actions.Invoke()) == "invoke"
    assert redaction.parameters(actions.Invoke(), DIGEST) == {}
