"""What an operator looks through: pages of operations and questions, the rules in force, what policy would say."""

from __future__ import annotations

import json

import pytest

from surehand import limits
from surehand.errors import InvalidRequest, TooLarge
from surehand.model.actions import SetValue
from surehand.model.record import to_value
from surehand.runtime.config import PolicyChoice
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.unit.policy.test_policies import Clock, policies, write
from tests.unit.runtime.test_people import Scene

SECRET = "hunter2 and more"  # noqa: S105 - what must not be found in any page
POLICY = """
version = 1
[[rule]]
id = "ask-to-pay"
effect = "require_approval"
reason = "money"
[rule.match]
action = ["desktop.invoke"]
[[rule]]
id = "no-open"
effect = "deny"
reason = "not this one"
[rule.match]
observed = {name = ["Open"]}
"""


@pytest.fixture
async def scene():
    nodes = [button("pay", "Pay 10"), button("open", "Open"), field("name", "Name", "old")]
    found = await Scene(World(nodes, policy=POLICY)).open()
    yield found
    await found.host.close()


async def listed(scene, **sought):
    return (await scene.control("operations", **sought))["operations"]


async def test_operations_are_listed_newest_first_with_what_became_of_them(scene):
    await scene.world.act("set", "name", action=SetValue(value=SECRET))
    await scene.act("no", handle="open")
    await scene.act("ask", handle="pay")
    found = await listed(scene)
    assert [(one["operation_id"], one["outcome"]) for one in found] == [
        ("ask", "waiting"),
        ("no", "refused"),
        ("set", "succeeded"),
    ]
    assert found[0]["categories"] == ["purchase"]
    assert (found[1]["rule"], found[1]["code"], found[1]["reason"]) == ("no-open", "policy_denied", "not this one")
    assert (found[2]["effect"], found[2]["verified"], found[2]["rule"]) == (
        "desktop.set_value",
        "verified",
        "default.isolated",
    )
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ("sought", "names"),
    [
        ({"principal": "uid:1000"}, ["ask", "no", "set"]),
        ({"principal": "uid:1"}, []),
        ({"app": "MEMORY"}, ["ask", "no", "set"]),
        ({"app": "mousepad"}, []),
        ({"action": "desktop.set_value"}, ["set"]),
        ({"action": "desktop."}, ["ask", "no", "set"]),
        ({"outcome": "refused"}, ["no"]),
        ({"category": "purchase"}, ["ask"]),
        ({"text": "NOT THIS"}, ["no"]),
        ({"text": "no-open"}, ["no"]),
        ({"text": SECRET}, []),
        ({"since_ms": 0}, ["ask", "no", "set"]),
        ({"until_ms": 0}, []),
        ({"since_ms": limits.TIME_MS_MAX}, []),
    ],
)
async def test_operations_are_found_by_what_is_known_of_them(scene, sought, names):
    await scene.world.act("set", "name", action=SetValue(value=SECRET))
    await scene.act("no", handle="open")
    await scene.act("ask", handle="pay")
    assert [one["operation_id"] for one in await listed(scene, **sought)] == names


async def test_pages_hold_every_operation_once_and_one_that_goes_on_moves_to_the_front(scene):
    for number in range(5):
        await scene.act(f"op-{number}", handle="pay")
    first = await scene.control("operations", limit=2)
    assert [one["operation_id"] for one in first["operations"]] == ["op-4", "op-3"]
    pending = next(one for one in scene.world.approvals.pending() if one.operation_id == "op-2")
    await scene.world.answer(pending, "deny", reason="<script>no</script>")
    second = await scene.control("operations", limit=2, before_seq=first["next"])
    assert [one["operation_id"] for one in second["operations"]] == ["op-1", "op-0"]
    assert (await listed(scene, limit=1))[0]["operation_id"] == "op-2"
    third = await scene.control("operations", limit=2, before_seq=second["next"])
    assert (third["operations"], third["next"]) == ([], None)


async def test_a_rare_thing_is_looked_for_so_far_and_then_whoever_asks_decides(scene, monkeypatch):
    monkeypatch.setattr(limits, "OPERATIONS_LOOKED_MAX", 3)
    for number in range(4):
        await scene.act(f"op-{number}", handle="pay")
    found = await scene.control("operations", text="op-0")
    assert (found["operations"], found["looked_at"]) == ([], 3)
    found = await scene.control("operations", text="op-0", before_seq=found["next"])
    assert [one["operation_id"] for one in found["operations"]] == ["op-0"]


@pytest.mark.parametrize(
    "sought",
    [
        {"limit": 0},
        {"limit": limits.OPERATIONS_PAGE_MAX + 1},
        {"text": "x" * (limits.SOUGHT_BYTES_MAX + 1)},
        {"outcome": "maybe"},
        {"principal": "a/b"},
        {"before_seq": -1},
        {"until_ms": limits.TIME_MS_MAX + 1},
        {"colour": "red"},
    ],
)
async def test_what_is_looked_for_is_bounded(scene, sought):
    with pytest.raises((InvalidRequest, TooLarge)):
        await scene.control("operations", **sought)
    await scene.control("operations", limit=limits.OPERATIONS_PAGE_MAX, text="x" * limits.SOUGHT_BYTES_MAX)


@pytest.mark.parametrize("method", ["operations", "operation", "approvals", "policy.rules", "policy.ask"])
async def test_an_agent_can_look_through_none_of_it(scene, method):
    with pytest.raises(InvalidRequest, match="no method is called"):
        await scene.host.call(scene.agent, method, {})


async def test_one_operation_is_shown_with_its_rule_in_plain_words_and_its_events(scene):
    await scene.act("no", handle="open")
    found = await scene.control("operation", principal="uid:1000", operation_id="no")
    assert found["rule_in_words"] == "No agent may do anything where the screen says that its name is Open."
    assert [one["type"] for one in found["events"]] == ["operation.refused.v1"]
    assert found["events"][0]["record_hash"] == found["summary"]["record_hash"]
    with pytest.raises(InvalidRequest, match="no such operation"):
        await scene.control("operation", principal="uid:1000", operation_id="other")


async def test_open_questions_come_in_pages_and_an_end_in_between_loses_none(scene):
    for number in range(5):
        await scene.act(f"op-{number}", handle="pay")
    everything = await scene.control("approvals")
    assert (len(everything["pending"]), everything["total"], everything["next"]) == (5, 5, None)
    page = await scene.control("approvals", limit=2)
    seen = [one["operation_id"] for one in page["pending"]]
    last = next(one for one in scene.world.approvals.pending() if one.approval_id == page["pending"][-1]["approval_id"])
    await scene.world.answer(last, "deny")
    while page["next"] is not None:
        page = await scene.control("approvals", limit=2, after=page["next"])
        seen += [one["operation_id"] for one in page["pending"]]
    assert seen == [one["operation_id"] for one in everything["pending"]]
    assert page["total"] == 4
    for bad in ("", "x.y", "-1.a", "9" * 40 + ".a"):
        with pytest.raises(InvalidRequest):
            await scene.control("approvals", after=bad)


async def test_questions_that_do_not_fit_one_answer_come_in_several(scene, monkeypatch):
    for number in range(3):
        await scene.act(f"op-{number}", handle="pay")
    size = len(str((await scene.control("approvals"))["pending"][0]))
    monkeypatch.setattr(limits, "REPORT_BYTES_MAX", 2 * size)
    page = await scene.control("approvals")
    assert 1 <= len(page["pending"]) < 3
    assert page["next"] is not None


async def test_the_rules_in_force_are_told_in_plain_words_in_pages(scene):
    found = await scene.control("policy.rules", limit=2)
    assert [(one["rule"], one["built_in"]) for one in found["rules"]] == [("ask-to-pay", False), ("no-open", False)]
    assert found["rules"][0]["in_words"] == "Any agent needs a person's yes to do desktop.invoke."
    rest = await scene.control("policy.rules", after=found["next"])
    assert all(one["built_in"] for one in rest["rules"])
    assert (len(found["rules"]) + len(rest["rules"]), rest["next"]) == (found["total"], None)


async def test_a_question_is_answered_by_the_policy_in_force_and_decides_nothing(scene, tmp_path):
    path = tmp_path / "p.toml"
    write(path, POLICY)
    scene.world.authority.policies = policies(PolicyChoice(file=str(path)), Clock(), journal=scene.world.journal)
    events = len(await scene.world.types())
    found = await scene.control("policy.ask", request='action = "desktop.invoke"\nobserved = {name = "Open"}\n')
    assert (found["outcome"], found["rule"]) == ("deny", "no-open")
    assert [look["with_screen"] for look in found["looks"]] == [False, True]
    document = {**to_value(scene.world.facts.reading(scene.agent, scene.world.app.surface))}
    assert (await scene.control("policy.ask", request=json.dumps(document)))["outcome"] == "allow"
    for bad in ("", "{", 'action = "fly"', "x" * (limits.POLICY_QUESTION_BYTES_MAX + 1)):
        with pytest.raises((InvalidRequest, TooLarge)):
            await scene.control("policy.ask", request=bad)
    assert len(await scene.world.types()) == events


async def test_what_is_asked_about_is_on_record_without_its_texts(scene):
    await scene.act("ask", handle="pay")
    event = next(one for one in await scene.world.journal.read() if one.type == "operation.approval_requested.v1")
    assert event.payload["effect"] == "desktop.invoke"
    assert event.payload["reason"] == "money"
    assert event.payload["categories"] == ["purchase"]
    assert "Pay 10" not in str(event.payload)
