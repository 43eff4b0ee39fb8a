"""What may leave."""

from __future__ import annotations

import json

import msgspec
import pytest

from surehand.core.release import (
    Released,
    Withheld,
    check_readable,
    is_secret,
    release_live,
    release_node,
    release_output,
)
from surehand.errors import SecureSurface
from surehand.model.decision import Obligations
from surehand.model.scene import LiveNode
from tests.rules_kit import node


@pytest.mark.parametrize("changes", [{"secret": True}, {"role": "password"}, {"secret": True, "role": "password"}])
def test_a_secret_field_gives_neither_its_value_nor_its_length(changes):
    held = node("Password", value="hunter2", text_chars=7, **{"role": "text", **changes})
    assert is_secret(held)
    released = release_node(held)
    assert (released.value, released.text_chars, released.secret) == (None, None, True)
    assert released.name == "Password"
    assert "hunter2" not in str(msgspec.to_builtins(release_live(LiveNode(node=held, parent=""))))
    with pytest.raises(SecureSurface):
        check_readable(held)


def test_a_role_alone_makes_it_secret_even_when_it_holds_nothing():
    assert release_node(node(role="password")).secret


def test_other_nodes_pass_as_they_are():
    plain = node("Name", "text", value="carol", text_chars=5)
    assert release_node(plain) is plain
    live = LiveNode(node=plain, parent="p")
    assert release_live(live) is live
    check_readable(plain)


def test_a_node_that_was_already_released_is_the_same_object():
    once = release_node(node(role="password", value="x"))
    assert release_node(once) is once


def test_output_that_must_be_asked_about_is_withheld_whole():
    output = {"text": "the contents"}
    withheld = release_output(output, Obligations(release="ask"))
    assert isinstance(withheld, Withheld)
    assert "contents" not in withheld.reason
    assert release_output(output, Obligations(release="ask"), agreed=True) == Released(output=output)


def test_named_fields_are_redacted_and_secrets_masked():
    output = {"text": "pw hunter2", "png": "bytes", "n": 1}
    released = release_output(output, Obligations(redact=("png", "absent")), secrets=["hunter2"])
    assert released.output == {"text": "pw [secret]", "png": "[redacted]", "n": 1}
    assert "hunter2" not in json.dumps(released.output)


def test_what_counts_the_characters_of_a_secret_does_not_leave():
    output = {"delivered": 9, "units": 9, "after": "x"}
    assert release_output(output, Obligations(), secrets=["hunter2"]).output == {"after": "x"}
    assert release_output(output, Obligations()).output == output


def test_nothing_to_release_is_released():
    assert release_output(None, Obligations(release="ask")) == Released(output=None)
