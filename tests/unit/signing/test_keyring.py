"""The file of pinned host keys."""

from __future__ import annotations

import json

import pytest

from surehand import limits
from surehand.errors import InvalidRequest, PermissionMissing, SurehandError, Unavailable
from surehand.signing.keyring import HostKey, load_keyring

KEY = {"issuer": "acme", "key_id": "2026", "public_key": "ab" * 32, "policy_generation": 3}


def toml(*keys):
    return "".join(
        "[[key]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in key.items()) for key in keys
    )


def write(tmp_path, text, name="keyring.toml"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    path.chmod(0o644)
    return path


def test_both_formats_give_the_same_keys(tmp_path):
    other = {**KEY, "key_id": "2027"}
    expected = (HostKey(**KEY), HostKey(**other))
    assert load_keyring(write(tmp_path, toml(KEY, other))) == expected
    assert load_keyring(write(tmp_path, json.dumps({"key": [KEY, other]}), "keyring.json")) == expected


def test_an_empty_keyring_trusts_nobody(tmp_path):
    assert load_keyring(write(tmp_path, "key = []")) == ()


def test_two_keys_under_one_name_are_refused(tmp_path):
    for again in (KEY, {**KEY, "public_key": "cd" * 32}, {**KEY, "policy_generation": 4}):
        with pytest.raises(InvalidRequest, match="twice"):
            load_keyring(write(tmp_path, toml(KEY, again)))


@pytest.mark.parametrize(
    "changed",
    [
        {"public_key": "ab" * 31},
        {"public_key": "AB" * 32},
        {"public_key": "zz" * 32},
        {"issuer": ""},
        {"issuer": "a b"},
        {"key_id": "x" * (limits.IDENTIFIER_CHARS_MAX + 1)},
        {"policy_generation": -1},
        {"policy_generation": 2**53},
        {"policy_generation": "3"},
        {"policy_generation": True},
        {"policy_generation": 3.0},
        {"surprise": 1},
    ],
)
def test_a_malformed_key_stops_the_whole_file(tmp_path, changed):
    with pytest.raises(InvalidRequest):
        load_keyring(write(tmp_path, toml(KEY, {**KEY, "key_id": "other", **changed})))


@pytest.mark.parametrize("missing", list(KEY))
def test_no_member_has_a_default(tmp_path, missing):
    with pytest.raises(InvalidRequest):
        load_keyring(write(tmp_path, toml({name: value for name, value in KEY.items() if name != missing})))


@pytest.mark.parametrize("text", ["", "key = 1", "nonsense", "[[key]", "other = 1", '{"key": []}'])
def test_what_is_no_keyring_is_refused(tmp_path, text):
    with pytest.raises(InvalidRequest):
        load_keyring(write(tmp_path, text))


def test_duplicate_members_in_json_are_refused(tmp_path):
    text = '{"key": [' + json.dumps(KEY)[:-1] + ', "issuer": "evil"}]}'
    with pytest.raises(InvalidRequest, match="twice"):
        load_keyring(write(tmp_path, text, "keyring.json"))


def test_as_many_keys_as_allowed_and_one_more(tmp_path):
    keys = [{**KEY, "key_id": f"k{number}"} for number in range(limits.KEYRING_KEYS_MAX + 1)]
    assert len(load_keyring(write(tmp_path, toml(*keys[:-1])))) == limits.KEYRING_KEYS_MAX
    with pytest.raises(SurehandError) as refused:
        load_keyring(write(tmp_path, toml(*keys)))
    assert refused.value.code == "too_large"


def test_a_keyring_that_others_may_change_is_refused(tmp_path):
    path = write(tmp_path, toml(KEY))
    path.chmod(0o664)
    with pytest.raises(PermissionMissing):
        load_keyring(path)


def test_a_missing_keyring_is_said_to_be_missing(tmp_path):
    with pytest.raises(Unavailable):
        load_keyring(tmp_path / "none.toml")
