"""What one decision does: precedence, covering, obligations, errors."""

from __future__ import annotations

import timeit

import msgspec
import pytest

from surehand import limits
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.evaluate import compile_policy, decide, deny_all
from surehand.core.policy.model import CONSEQUENTIAL, Match, ObservedMatch, Rule, matcher
from surehand.errors import InvalidRequest, TooLarge
from tests.rules_kit import document


def rule(effect="allow", rule_id="r1", *, match=None, **changes):
    return Rule(id=rule_id, effect=effect, reason=f"{rule_id} says so", match=Match(**(match or {})), **changes)


def outcome(given, *rules):
    return decide(compile_policy(rules, DEFAULT_RULES, "rev"), given, "d1").outcome


def answer(given, *rules):
    return decide(compile_policy(rules, DEFAULT_RULES, "rev"), given, "d1")


SHARED = {"isolation": "shared"}


class TestPrecedence:
    def test_deny_beats_question_beats_allowance_whatever_the_order(self):
        allow, ask, deny = rule("allow", "a"), rule("require_approval", "q"), rule("deny", "d")
        assert answer(document(), allow, ask, deny).rule == "d"
        assert answer(document(), deny, ask, allow).rule == "d"
        assert answer(document(), allow, ask).rule == "q"
        assert outcome(document(), allow) == "allow"

    def test_nothing_that_matches_is_a_deny(self):
        decision = decide(compile_policy((), (), "rev"), document(), "d1")
        assert (decision.outcome, decision.rule, decision.policy_revision) == ("deny", "default", "rev")

    def test_the_first_of_the_deciding_kind_names_the_answer(self):
        assert answer(document(), rule("deny", "d1"), rule("deny", "d2")).rule == "d1"
        assert answer(document(), rule("deny", "d1")).reason == "d1 says so"

    def test_an_approval_answers_questions_only(self):
        asked = rule("require_approval")
        assert outcome(document(approved=True), asked) == "allow"
        assert outcome(document(approved=True), asked, rule("deny")) == "deny"


class TestCovering:
    @pytest.mark.parametrize("category", sorted(CONSEQUENTIAL))
    def test_each_consequential_category_asks_until_it_is_covered_by_name(self, category):
        given = document({"categories": [category]})
        assert answer(given, rule()).rule == "default.consequential"
        assert outcome(given, rule(covers=(category,))) == "allow"
        other = next(name for name in sorted(CONSEQUENTIAL) if name != category)
        assert outcome(given, rule(covers=(other,))) == "require_approval"

    def test_every_category_that_is_present_must_be_covered(self):
        given = document({"categories": ["purchase", "upload"]})
        assert outcome(given, rule(covers=("purchase",))) == "require_approval"
        assert (
            outcome(given, rule("allow", "a", covers=("purchase",)), rule("allow", "b", covers=("upload",))) == "allow"
        )

    def test_a_rule_that_does_not_match_covers_nothing(self):
        given = document({"categories": ["purchase"]})
        assert outcome(given, rule(), rule(match={"principal": ("other",)}, covers=("purchase",))) == "require_approval"

    def test_a_question_may_cover_and_still_asks(self):
        given = document(facts={"sensitive_app": True})
        assert outcome(given) == "deny"
        asked = rule("require_approval", match={"app": ("exe:/usr/bin/mousepad",)}, covers=("sensitive_app",))
        assert outcome(given, asked) == "require_approval"
        assert outcome(document(facts={"sensitive_app": True}, approved=True), asked) == "allow"

    @pytest.mark.parametrize("category", ["own_surface", "denied_app"])
    @pytest.mark.parametrize("approved", [False, True])
    def test_own_surfaces_and_denied_applications_never_give_way(self, category, approved):
        everything = rule(covers=tuple(sorted(CONSEQUENTIAL | {"sensitive_app", "shared_desktop"})))
        assert outcome(document(facts={"categories": (category,)}, approved=approved), everything) == "deny"
        assert outcome(document({"categories": [category]}, approved=approved), everything) == "deny"

    def test_what_the_screen_says_it_really_is_cannot_be_allowed_as_that(self):
        # A window that claims to be a terminal does not profit from a rule that lets terminals run programs.
        seen = {"effect": "process.run", "categories": ["process_run"]}
        terminals = rule(match={"action": ("process.run",)}, covers=("process_run",))
        assert outcome(document(seen), terminals) == "require_approval"
        assert outcome(document(seen), rule("deny", match={"action": ("process.run",)})) == "deny"


class TestMatching:
    @pytest.mark.parametrize(
        ("pattern", "text", "matches"),
        [
            ("abc", "abc", True),
            ("abc", "abcd", False),
            ("a*", "a", True),
            ("a*", "ba", False),
            ("*c", "abc", True),
            ("a*c", "ac", True),
            ("a*c", "abcbc", True),
            ("aba*aba", "aba", False),
            ("a*b*c", "a-b-c", True),
            ("a*b*c", "a-c-b", False),
            ("*", "", True),
            ("**", "x", True),
            ("a.c", "abc", False),
            ("[ab]", "a", False),
            ("*\n*", "a\nb", True),
        ],
    )
    def test_a_star_stands_for_any_characters_and_nothing_else_is_special(self, pattern, text, matches):
        assert bool(matcher((pattern,))(text)) is matches

    def test_an_attackers_text_costs_linear_time(self):
        hostile = "a" * limits.POLICY_OBSERVED_CHARS_MAX
        test = matcher(("*a" * limits.POLICY_STARS_MAX + "b",))
        assert not test(hostile)
        assert timeit.timeit(lambda: test(hostile), number=100) < 1.0

    @pytest.mark.parametrize("name", ["DELETE", "de\u200blete", "Delete", "_Delete", "\uff24elete"])
    def test_observed_text_is_compared_as_a_reader_sees_it(self, name):
        deny = rule("deny", match={"observed": ObservedMatch(name=("delete",))})
        assert outcome(document({"name": name}), deny) == "deny"

    def test_a_missing_observed_text_matches_nothing(self):
        deny = rule("deny", match={"observed": ObservedMatch(name=("*",))})
        assert outcome(document({"role": "button"}), deny) == "allow"
        assert outcome(document({"name": 5}), deny) == "allow"

    @pytest.mark.parametrize(
        "app",
        ["exe:/usr/bin/python3", "exe:/usr/bin/python3.11", "exe:/opt/bin/node", "exe:/bin/bash", "exe:/usr/bin/env"],
    )
    @pytest.mark.parametrize("pattern", ["exact", "exe:*", "*"])
    def test_an_interpreter_opens_nothing(self, app, pattern):
        # C50: as an identity it stands for every program it could run.
        allowed = rule(match={"app": (app if pattern == "exact" else pattern,)}, covers=("shared_desktop",))
        assert outcome(document(facts={**SHARED, "app": app}), allowed) == "require_approval"
        denied = rule("deny", match={"app": (app,)})
        assert outcome(document(facts={"app": app}), denied) == "deny"

    def test_a_script_has_an_identity_of_its_own(self):
        one = "script:/usr/bin/python3:/srv/a.py"
        allowed = rule(match={"app": (one,)}, covers=("shared_desktop",))
        assert outcome(document(facts={**SHARED, "app": one}), allowed) == "allow"
        assert (
            outcome(document(facts={**SHARED, "app": "script:/usr/bin/python3:/srv/b.py"}), allowed)
            == "require_approval"
        )

    @pytest.mark.parametrize(
        ("place", "denied"),
        [
            ("https://bank.example", True),
            ("https://www.bank.example", True),
            ("https://bank.example.evil.test", False),
            ("https://notbank.example", False),
        ],
    )
    def test_an_origin_is_matched_whole(self, place, denied):
        # C45: policy is asked about the origin that is there, whatever led to it.
        deny = rule("deny", match={"place": ("https://bank.example", "https://*.bank.example")})
        assert (outcome(document(facts={"place": place}), deny) == "deny") is denied


class TestObligations:
    def test_the_strictest_of_all_that_match_hold(self):
        decision = answer(
            document(),
            rule("allow", "a", redact=("png",)),
            rule("require_approval", "b", approvals=2, redact=("text",)),
            rule("require_approval", "c", approvals=3, release="ask"),
        )
        assert decision.obligations.approvals_needed == 3
        assert decision.obligations.release == "ask"
        assert decision.obligations.redact == ("png", "text")

    def test_observed_rules_add_theirs(self):
        seen = rule("require_approval", "q", match={"observed": ObservedMatch(name=("save",))}, approvals=2)
        assert answer(document({"name": "Save"}), seen).obligations.approvals_needed == 2
        assert answer(document({"name": "Open"}), seen).obligations.approvals_needed == 1

    def test_a_deny_obliges_to_nothing(self):
        assert answer(document(), rule("deny"), rule(release="ask")).obligations.release == "always"


class TestErrors:
    def test_an_error_inside_is_a_deny_that_says_so(self):
        broken = msgspec.structs.replace(
            document(), facts=msgspec.structs.replace(document().facts, observed={"categories": 5})
        )
        decision = answer(broken, rule())
        assert (decision.outcome, decision.rule) == ("deny", "error")
        assert "TypeError" in decision.reason

    @pytest.mark.parametrize("observed", [{"categories": [[]]}, {"categories": [{}]}, {"categories": "purchase"}])
    def test_odd_observed_values_never_open(self, observed):
        given = document()
        odd = msgspec.structs.replace(given, facts=msgspec.structs.replace(given.facts, observed=observed))
        assert answer(odd, rule(covers=("purchase",))).outcome == "deny"

    def test_a_closed_policy_denies_everything_and_says_why(self):
        decision = decide(deny_all("the file is gone"), document(approved=True), "d1")
        assert (decision.outcome, decision.rule, decision.reason) == ("deny", "closed", "the file is gone")
        assert len(decide(deny_all("x" * 5000), document(), "d1").reason) == limits.REASON_CHARS_MAX


class TestBounds:
    def test_patterns_are_bounded_in_number_stars_and_length(self):
        Match(app=("a",) * limits.POLICY_PATTERNS_MAX)
        Match(app=("*" * limits.POLICY_STARS_MAX,))
        Match(app=("a" * limits.NAME_CHARS_MAX,))
        for app in (
            ("a",) * (limits.POLICY_PATTERNS_MAX + 1),
            ("*" * (limits.POLICY_STARS_MAX + 1),),
            ("a" * (limits.NAME_CHARS_MAX + 1),),
        ):
            with pytest.raises(TooLarge):
                Match(app=app)
        with pytest.raises(InvalidRequest):
            Match(app=("",))

    def test_approvals_are_bounded(self):
        rule(approvals=limits.APPROVALS_NEEDED_MAX)
        for approvals in (0, limits.APPROVALS_NEEDED_MAX + 1):
            with pytest.raises(InvalidRequest):
                rule(approvals=approvals)


def test_a_decision_of_a_small_policy_takes_microseconds():
    """A guard against an accident, not a benchmark: the bound is far above what was measured."""
    policy = compile_policy([rule(match={"app": (f"exe:/a{n}",)}) for n in range(5)], DEFAULT_RULES, "rev")
    given = document({"name": "Save", "role": "button"})
    best = min(timeit.repeat(lambda: decide(policy, given, "d1"), number=500, repeat=5)) / 500
    assert best < 150e-6
