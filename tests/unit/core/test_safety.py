"""The safety kernel: what no policy can switch off."""

from __future__ import annotations

import msgspec
import pytest

from surehand.core import safety
from surehand.core.policy.evaluate import decide
from surehand.core.policy.toml_rules import parse_policy
from surehand.errors import InvalidRequest, PolicyDenied, SecureSurface, UnsupportedAction
from surehand.model.actions import TARGET_KINDS, Click, Clipboard, Invoke, Release, SetValue
from surehand.model.query import Filter, Query
from surehand.model.targets import NoTarget, QueryTarget, SurfaceTarget
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.rules_kit import document, element, node

ALLOW_ALL = """
version = 1
[[rule]]
id = "all"
effect = "allow"
reason = "the operator allows everything that can be allowed"
covers = ["credentials", "destructive", "external", "install", "process_run", "purchase", "send_publish", "settings",
          "shared_desktop", "upload"]
"""
BY_NAME = QueryTarget(surface="m-memory", query=Query(filters=(Filter(role="button"),)))
QUERY = QueryTarget(surface="w1", query=Query(filters=(Filter(role="button"),)))


class Invented(msgspec.Struct, tag="format_disk", tag_field="kind"):
    """An action that no table lists."""


def test_an_unknown_action_is_refused():
    safety.check_known_action(Invoke())
    with pytest.raises(UnsupportedAction):
        safety.check_known_action(Invented())


def test_an_unfenced_action_is_refused():
    safety.check_fenced(Invoke(), element())
    safety.check_fenced(Clipboard(op="read"), NoTarget())
    safety.check_fenced(Release(), NoTarget())
    for action, target in (
        (Invoke(), NoTarget()),
        (Invoke(), SurfaceTarget(ref="w1")),
        (Click(), NoTarget()),
        (Invented(), element()),
    ):
        with pytest.raises(InvalidRequest):
            safety.check_fenced(action, target)


def test_everything_the_table_lets_aim_at_nothing_is_known_here():
    assert {kind for kind, targets in TARGET_KINDS.items() if "none" in targets} == safety._UNAIMED


def test_a_secret_goes_into_secret_fields_only():
    secret = SetValue(secret_ref="vault:mail")  # noqa: S106 a name, not a secret
    safety.check_secret_use(secret, node(role="text", secret=True))
    safety.check_secret_use(secret, node(role="password"))
    safety.check_secret_use(SetValue(value="x"), node(role="text"))
    for place in (None, node(role="text"), node(role="label")):
        with pytest.raises(SecureSurface):
            safety.check_secret_use(secret, place)


def test_isolation_and_trust_are_the_hosts_word():
    host = {"isolation": "shared", "trust_level": "A"}
    safety.check_host_facts(document(facts={"isolation": "shared"}).facts, **host)
    for facts in ({"isolation": "isolated"}, {"isolation": "shared", "trust_level": "B"}):
        with pytest.raises(PolicyDenied):
            safety.check_host_facts(document(facts=facts).facts, **host)


@pytest.mark.parametrize("lie", [{"isolation": "isolated"}, {"trust_level": "B"}])
async def test_facts_that_say_otherwise_stop_the_operation_whatever_policy_says(lie):
    world = World(isolation="shared", policy=ALLOW_ALL)
    told = world.gateway.facts.document

    def lying(run):
        found = told(run)
        return msgspec.structs.replace(found, facts=msgspec.structs.replace(found.facts, **lie))

    assert (await world.act("honest")).status == "succeeded"
    world.gateway.facts.document = lying
    reply = await world.act("lie")
    assert (reply.status, reply.error["code"], reply.error["gate"]) == ("refused", "policy_denied", "policy")
    assert len(world.app.effects) == 1


async def test_no_rule_opens_what_the_kernel_refuses():
    world = World([button("save", "Save"), field("text", "Name", "x")], policy=ALLOW_ALL)
    refused = [
        await world.act("secret", "text", action=SetValue(secret_ref="vault:mail")),  # noqa: S106 - a name
        await world.act("query", action=Invoke(), risk="external", target=BY_NAME),
    ]
    assert [reply.status for reply in refused] == ["refused", "approval_required"]
    assert world.app.effects == []


COVERED = parse_policy(
    """
version = 1
[[rule]]
id = "mail"
effect = "allow"
reason = "the operator said so"
covers = ["send_publish", "destructive", "external"]
"""
)


class TestQueries:
    def decided(self, observed=None, approved=False, facts=None, target=QUERY):
        given = document(observed, facts=facts, approved=approved)
        return safety.raise_for_query(decide(COVERED, given, "d1"), given, target)

    def test_a_query_is_never_enough_for_something_consequential(self):
        for raised in (
            self.decided({"categories": ["send_publish"]}),
            self.decided(facts={"categories": ("destructive",)}),
        ):
            assert (raised.outcome, raised.rule) == ("require_approval", "kernel.query")

    def test_approval_or_an_element_or_nothing_consequential_is(self):
        assert self.decided({"categories": ["send_publish"]}, approved=True).outcome == "allow"
        assert self.decided({"categories": ["send_publish"]}, target=element()).outcome == "allow"
        assert self.decided({"name": "Save"}).outcome == "allow"

    def test_a_deny_stays_a_deny(self):
        given = document({"categories": ["destructive"]}, risk="external")
        denied = decide(parse_policy(""), document({"categories": ["own_surface"]}), "d1")
        assert safety.raise_for_query(denied, given, QUERY).outcome == "deny"
