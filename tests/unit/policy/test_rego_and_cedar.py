"""The engines in this process: what they are given, what they refuse, and what they make of mistakes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from surehand import limits
from surehand.adapters import policy_cedar, policy_rego
from surehand.adapters.policy_cedar import open_cedar
from surehand.adapters.policy_rego import open_rego
from surehand.core.policy import engine
from surehand.core.policy.engine import EngineFailure
from surehand.errors import InvalidRequest, Unavailable
from tests.rules_kit import document

PERMIT = "permit (principal, action, resource)"


def question(**changes):
    return engine.input_value(document(**changes), {})


def rego(text: str, data=None):
    return open_rego({"own.rego": f"package surehand\nimport rego.v1\n{text}\n"}, data or {}, revision="r1")


async def rego_failure(text: str) -> str:
    with pytest.raises(EngineFailure) as caught:
        await rego(text).ask([question()])
    return caught.value.kind


async def test_a_rego_policy_of_ones_own_is_asked():
    asked = rego('decision := {"outcome": "deny", "rule": "x", "reason": input.facts.app}')
    assert await asked.ask([question()]) == [{"outcome": "deny", "rule": "x", "reason": "exe:/usr/bin/mousepad"}]
    assert "Rego" in await asked.check()


def test_the_engine_and_the_patterns_of_queries_live_in_one_process():
    # Two copies of RE2 come in; in the other order the process aborts where a pattern is forgotten.
    program = textwrap.dedent("""
        import surehand.adapters.policy_rego
        from surehand.core.scene.patterns import pattern
        found = [pattern(f"x{number}").search(b"x7") is not None for number in range(300)]
        pattern.cache_clear()
        print(sum(found))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n")


async def test_what_a_rego_policy_leaves_undefined_is_undefined():
    assert await rego('decision := {"outcome": "allow"} if input.principal == "x"').ask([question()]) == [None]
    assert await rego("other := 1").ask([question()]) == [None]


async def test_rego_rules_that_contradict_each_other_are_an_error():
    assert await rego_failure("decision := 1 if input.principal\ndecision := 2 if input.action") == "error"


async def test_a_rego_answer_above_the_bound_is_too_large():
    long = '"' + "x" * limits.POLICY_ANSWER_BYTES_MAX + '"'
    assert await rego_failure(f"decision := {long}") == "too_large"


async def test_texts_with_quotes_reach_a_rego_policy_and_come_back():
    asked = rego(
        'decision := {"reason": input.parameters.text, "same": input.parameters.text == data.text}', {"text": 'a"\\\n'}
    )
    found = await asked.ask([question(parameters={"text": 'a"\\\n'})])
    assert found == [{"reason": 'a"\\\n', "same": True}]


@pytest.mark.parametrize("text", ['x := "a\\"b"', 'x := "\\n"', 'x := "\uf022"'])
def test_literals_that_the_engine_would_compare_wrongly_stop_the_load_with_their_place(text):
    with pytest.raises(InvalidRequest, match=r"own\.rego:3:6"):
        rego(text)


def test_data_that_could_be_taken_for_something_else_stops_the_load():
    with pytest.raises(InvalidRequest, match="private"):
        rego("x := 1", {"name": "\uf05c"})


def test_a_backslash_in_a_comment_or_a_pattern_does_no_harm():
    rego('# a "b\\"\nx if regex.match(`^a\\.b$`, input.action)')


def test_a_rego_file_that_does_not_compile_is_named_with_line_and_column(capfd):
    with pytest.raises(InvalidRequest, match=r"own\.rego:4:\d+: "):
        rego("decision := 1\nbroken if { foo( }")
    assert capfd.readouterr() == ("", "")


# --- Cedar ----------------------------------------------------------------------------------------------------------


async def cedar_answer(text: str, **changes):
    return (await open_cedar(text, revision="r1").ask([question(**changes)]))[0]


async def test_what_no_cedar_policy_permits_is_undefined_and_so_denied():
    assert await cedar_answer(f'{PERMIT} when {{ context.risk == "x" }};') is None


async def test_entities_stand_for_agents_applications_windows_and_origins():
    text = '@id("w") permit (principal == Agent::"agent", action == Action::"desktop.invoke", resource in App::"exe:/usr/bin/mousepad");'
    assert (await cedar_answer(text))["rule"] == "w"
    window = f'@id("w") {PERMIT} when {{ resource == Window::"exe:/usr/bin/mousepad#main" }};'
    assert (await cedar_answer(window))["rule"] == "w"
    origin = (
        f'@id("o") {PERMIT} when {{ resource == Origin::"https://example.org" && resource in Desktop::"isolated" }};'
    )
    assert (await cedar_answer(origin, facts={"place": "https://example.org"}))["rule"] == "o"
    assert (await cedar_answer(f'@id("a") {PERMIT} when {{ resource is App }};', facts={"place": ""}))["rule"] == "a"


async def test_a_cedar_policy_that_errs_denies_though_cedar_would_pass_it_by():
    text = f'{PERMIT};\nforbid (principal, action, resource) when {{ context.observed.name == "x" }};'
    with pytest.raises(EngineFailure) as caught:
        await cedar_answer(text)
    assert caught.value.kind == "error"


async def test_annotations_say_what_cedar_cannot():
    text = (
        f'@id("a") @reason("two look") @outcome("require_approval") @approvals("2") @covers("purchase external")\n'
        f'@release("ask") @redact("[\\"png\\"]")\n{PERMIT};\n@id("b") {PERMIT};'
    )
    found = engine.read_answer(await cedar_answer(text))
    assert (found.outcome, found.rule, found.reason) == ("require_approval", "a", "two look")
    assert found.covers == ("external", "purchase")
    assert (found.obligations.approvals_needed, found.obligations.release, found.obligations.redact) == (
        2,
        "ask",
        ("png",),
    )


@pytest.mark.parametrize(
    "notes",
    ['@covrs("x")', '@outcome("maybe")', '@approvals("0")', '@approvals("many")', '@approvals("17")', '@redact("png")',
     '@redact("[1]")'],
)  # fmt: skip
def test_annotations_that_cannot_be_read_stop_the_load(notes):
    with pytest.raises(InvalidRequest):
        open_cedar(f"{notes} {PERMIT};", revision="r1")


def test_an_outcome_on_a_forbid_stops_the_load():
    with pytest.raises(InvalidRequest):
        open_cedar('@outcome("allow") forbid (principal, action, resource);', revision="r1")


def test_a_cedar_file_that_does_not_parse_is_named_with_its_line():
    with pytest.raises(InvalidRequest, match="line 3"):
        open_cedar(f'{PERMIT};\n\n{PERMIT} when {{ context.x lik "a" }};\n', revision="r1")


def test_templates_stop_the_load():
    with pytest.raises(InvalidRequest, match="templates"):
        open_cedar("permit (principal == ?principal, action, resource);", revision="r1")


# --- both -----------------------------------------------------------------------------------------------------------


async def test_a_question_above_the_bound_is_not_put():
    large = question(parameters={"text": "x" * limits.POLICY_QUESTION_BYTES_MAX})
    for asked in (rego("decision := 1"), open_cedar(f"{PERMIT};", revision="r1")):
        with pytest.raises(EngineFailure) as caught:
            await asked.ask([large])
        assert caught.value.kind == "too_large"


def test_an_engine_whose_extra_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(policy_rego, "regopy", None)
    monkeypatch.setattr(policy_cedar, "cedarpy", None)
    with pytest.raises(Unavailable) as caught:
        rego("x := 1")
    assert caught.value.fix == "pip install 'surehand[rego]'"
    with pytest.raises(Unavailable) as caught:
        open_cedar("", revision="r1")
    assert caught.value.fix == "pip install 'surehand[cedar]'"
