"""What is secret stays so, however plainly its application shows it later or from the start."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core.release import cover, is_redacted_field, is_secret, names_a_secret
from surehand.errors import SecureSurface
from surehand.model.actions import SetValue
from surehand.model.record import to_value
from surehand.model.scene import Node, Tree
from surehand.model.verification import TextContains, ValueIs
from surehand.runtime.covering import SecretFields
from surehand.testing.memory import MemoryApp, button, field
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_reach import agent, host_of

PASSWORD = "hunter2 correct horse"  # noqa: S105 - what must not be found anywhere
REDACT = """
version = 1
[[rule]]
id = "no-ibans"
effect = "allow"
reason = "Account numbers stay where they are."
redact = ["field:iban"]
[rule.match]
app = ["exe:/opt/memory"]
"""


def masked() -> Node:
    return msgspec.structs.replace(field("pw", "Unlock", PASSWORD), role="password", secret=True)


def tree(*nodes: Node, parents: tuple[int, ...] | None = None) -> Tree:
    root = Node(handle="root", role="window")
    return Tree(nodes=(root, *nodes), parents=parents or (-1, *(0 for _ in nodes)), version=1)


def covered(fields: SecretFields, read: Tree, redact: tuple[str, ...] = ()) -> set[str]:
    found = fields.cover(MemoryApp(()).surface, read, redact)
    assert all(node.value is None and node.text_chars is None for node in found.nodes if node.secret)
    return {node.handle for node in found.nodes if is_secret(node)}


async def test_a_password_that_is_shown_in_clear_is_read_out_by_nothing() -> None:
    world = World([button("save", "Save"), masked()])
    host = host_of(world)
    session = await agent(host)
    surface = world.app.surface.surface_id
    await host.call(session, "observe", {"surface": surface})
    # What most toolkits do when a person asks to see what was typed.
    world.app.change("pw", role="text", secret=False)
    other = await agent(host, "uid:1001")
    for one in (session, other):
        told = [
            await host.call(one, "observe", {"surface": surface, "targets": True, "full": True}),
            await host.call(one, "query", {"surface": surface, "query": {"filters": [{"role": "password"}]}}),
        ]
        found = [
            await host.call(one, "query", {"surface": surface, "query": {"filters": [{"value": value}]}})
            for value in ({"text": PASSWORD}, {"text": "hunter", "match": "prefix"})
        ]
        assert not any(answer["matches"] for answer in found)
        (match,) = told[1]["matches"]
        assert match["secret"] is True
        for method, more in (("read_text", {}), ("find_text", {"find": {"text": "hunter"}})):
            with pytest.raises(SecureSurface) as refused:
                await host.call(one, method, {"label": match["label"], "surface": surface, **more})
            told.append(refused.value.to_value())
        assert "hunter2" not in json.dumps(told)


@pytest.mark.parametrize("guess", [ValueIs(equals=PASSWORD), ValueIs(equals="no"), TextContains(contains="hunter2")])
async def test_a_guess_at_a_password_in_clear_is_answered_by_nothing(
    guess: ValueIs | TextContains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VERIFY_BUDGET_MS_DEFAULT", 10)
    world = World([button("save", "Save"), masked()])
    await world.observe()
    world.app.change("pw", role="text", secret=False)
    reply = await world.act("guess", target=await world.ref("pw"), verification=guess)
    # The same whether the guess is right or wrong.
    assert (reply.status, reply.error) == ("outcome_unknown", None)


async def test_a_password_in_clear_can_still_be_typed_over_with_a_yes() -> None:
    world = World([button("save", "Save"), masked()])
    await world.observe()
    world.app.change("pw", role="text", secret=False)
    assert (await world.act("type", "pw", action=SetValue(value="new"))).status == "approval_required"
    await world.answer(world.approvals.pending()[0])
    reply = await world.act("type", "pw", action=SetValue(value="new"))
    assert reply.status == "succeeded"
    assert reply.terminal is not None
    assert reply.terminal.receipt.effect == "executed_unverified"
    assert world.app.nodes["pw"].value == "new"
    assert '"new"' not in json.dumps(to_value(reply))  # nor does what was typed come back


@pytest.mark.parametrize("label", ["Password", "Master passphrase", "PIN", "Passwort", "Mot de passe", "Hasło", "密码"])
def test_a_field_whose_label_calls_it_a_password_is_one_from_the_start(label: str) -> None:
    assert covered(SecretFields(), tree(field("f", label, PASSWORD))) == {"f"}
    caption = Node(handle="l", role="label", name=label)
    beside = field("f", "", PASSWORD, labelled_by=("l",))
    assert covered(SecretFields(), tree(caption, beside)) == {"f"}


@pytest.mark.parametrize("label", ["Name", "Pinned", "Spinner", "Compass", "Passenger", "Passport number", ""])
def test_a_field_of_another_name_is_none(label: str) -> None:
    assert not names_a_secret(label)
    assert covered(SecretFields(), tree(field("f", label, "x"))) == set()


def test_only_fields_are_secret_by_their_label() -> None:
    assert covered(SecretFields(), tree(button("b", "Show password"))) == set()


def test_what_lies_in_a_secret_field_is_secret_too_and_stays_so() -> None:
    fields = SecretFields()
    inner = field("inner", "", PASSWORD)
    assert covered(fields, tree(masked(), inner, parents=(-1, 0, 1))) == {"pw", "inner"}
    # The field is taken apart: its part shows alone.
    assert covered(fields, tree(inner)) == {"inner"}


def test_a_rule_names_fields_by_a_part_of_their_label() -> None:
    ibans = tree(field("f", "Your IBAN (optional)", "DE89"), field("g", "Name", "carol"))
    assert covered(SecretFields(), ibans, ("field:iban",)) == {"f"}
    assert covered(SecretFields(), ibans, ("png",)) == set()
    assert covered(SecretFields(), ibans, ("value",)) == {"f", "g"}
    assert not is_redacted_field("Name", ("iban", "fieldname"))
    for label in ("ACCOUNT\u00a0 number", "\uff21ccount Number"):
        assert is_redacted_field(label, ("field: account  number",))


async def test_a_field_that_a_rule_names_is_read_out_by_nothing() -> None:
    world = World([field("f", "IBAN", "DE89 3704"), field("g", "Name", "carol")], policy=REDACT)
    host = host_of(world)
    session = await agent(host)
    surface = world.app.surface.surface_id
    told: Any = await host.call(session, "observe", {"surface": surface, "targets": True})
    assert "carol" in json.dumps(told)
    assert "3704" not in json.dumps(told)


def test_the_same_tree_is_the_same_tree_and_nothing_is_copied_where_nothing_is_secret() -> None:
    fields, surface = SecretFields(), MemoryApp(()).surface
    plain, secret = tree(field("f", "Name", "x")), tree(field("f", "PIN", "x"))
    assert fields.cover(surface, plain) is plain
    assert fields.cover(surface, secret) is fields.cover(surface, secret)
    assert cover(fields.cover(surface, secret).nodes[1]) is fields.cover(surface, secret).nodes[1]


def test_past_what_is_remembered_every_field_of_the_process_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECRET_FIELDS_MAX", 3)
    fields = SecretFields()
    pins = [field(f"f{number}", "PIN", "x") for number in range(4)]
    plain = field("plain", "Name", "carol")
    assert covered(fields, tree(*pins[:3], plain)) == {"f0", "f1", "f2"}
    assert covered(fields, tree(pins[0], plain)) == {"f0"}
    assert covered(fields, tree(pins[3], plain)) == {"f3", "plain"}
    assert covered(fields, tree(button("b", "Save"), plain)) == {"plain"}


def test_fields_of_the_longest_unseen_process_are_forgotten_past_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECRET_APPS_MAX", 2)
    fields = SecretFields()
    apps = [MemoryApp((), name=f"app{number}", pid=number + 1).surface for number in range(3)]
    clear = msgspec.structs.replace(masked(), role="text", secret=False)
    for app in apps[:2]:
        fields.cover(app, tree(masked()))
    assert is_secret(fields.cover(apps[0], tree(clear)).nodes[1])
    fields.cover(apps[2], tree(masked()))
    assert is_secret(fields.cover(apps[0], tree(clear)).nodes[1])
    assert not is_secret(fields.cover(apps[1], tree(clear)).nodes[1])
