"""What a screen says steers nothing: it stays inside its quotes, and opens nothing to an agent that obeys it (C46)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

import msgspec
import pytest

from surehand.canonical import encode_record
from surehand.cli import approving, output
from surehand.cli.evidence import page
from surehand.core.approval import ask, present
from surehand.core.policy.evaluate import decide
from surehand.core.policy.inputs import policy_input
from surehand.core.policy.model import STRICTNESS
from surehand.core.policy.toml_rules import parse_policy
from surehand.core.scene.render import render
from surehand.errors import SurehandError
from surehand.model.actions import Invoke
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.rules_kit import document, node, request, scope, surface
from tests.unit.cli.test_evidence import Reader, decision, event, receipt, report
from tests.unit.risk.injections import BY_KIND, CONSEQUENTIAL, FORBIDDEN, STRINGS, orders
from tests.unit.runtime.test_attacks_reach import agent, host_of
from tests.unit.tools.test_people import Told, run

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
LABEL = re.compile(r"\[(e\d+)\]")
#: What may not stand anywhere in what is shown, quoted or not.
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
LIE = "lie"


def skeleton(text: str) -> str:
    """Return a text of ours without what it quotes."""
    return QUOTED.sub('""', text)


def check_shown(text: str) -> None:
    """Nothing hides, reorders or breaks a line. Joiners stay: scripts need them, and they move nothing."""
    hidden = {c for c in text if unicodedata.category(c) in UNSEEN and c not in "\n\u200c\u200d"}
    assert not hidden, ascii(hidden)


def test_the_corpus_is_what_it_should_be():
    assert len(set(STRINGS)) == len(STRINGS) >= 150
    assert set(BY_KIND) == {"system prompt", "approval", "policy", "our own output", "bidi and invisible", "terminal",
                            "fences and markup"}  # fmt: skip


async def test_no_string_leaves_its_quotes_in_a_window_as_text():
    world = World([button(LIE, "plain"), field("text", "plain", "plain"), button("save", "Save")])
    # One that is quoted as the strings are: an element alone in its line.
    plain = "plain \u200bx"

    async def shown(text: str) -> str:
        world.app.surface = msgspec.structs.replace(world.app.surface, title=text)
        world.app.change(LIE, name=text, description=text)
        world.app.change("text", name=text, value=text)
        return render(await world.observe(world.new_session())).text

    first = skeleton(await shown(plain))
    expected, labels = first.count("\n"), sorted(LABEL.findall(first))
    for text in STRINGS:
        told = await shown(text)
        check_shown(told)
        bare = skeleton(told)
        assert bare.count("\n") <= expected + 1, told
        assert sorted(LABEL.findall(bare)) == labels, told
        # Every line is one of ours: a window, an element, or what is left out; nothing else stands outside of quotes.
        for line in bare.splitlines()[1:]:
            assert re.fullmatch(r'\s*(?:\[e\d+\] \w+(?: (?:=|\w+=)?"")*(?: [\w=#:.-]+)*[;,]?\s*)+', line), (text, line)


async def test_no_string_makes_a_line_of_a_tools_answer():
    for text in STRINGS:
        windows = [{"surface_id": "w1", "role": "frame", "title": text, "app": f"exe:/opt/{text}", "states": []}]
        answer = await run(Told(surfaces={"surfaces": windows}, apps={"apps": [], "silent": []}), "list_windows")
        check_shown(answer.text)
        assert re.fullmatch(r'w1 frame "" app=(?:""|exe:/opt/[\w:.@#=-]*)', skeleton(answer.text)), answer.text
        human = {"request_id": "r", "kind": "other", "status": "done", "note": text}
        check_shown((await run(Told(human=human), "request_human", reason="x")).text)


def test_no_string_makes_a_line_or_a_code_on_a_terminal():
    for text in STRINGS:
        lines = output.table(["window", "title"], [["w1", text], ["w2", "t"]])
        assert len(lines) == len(output.table(["window", "title"], [["w1", "t"], ["w2", "t"]]))
        check_shown("\n".join(output._escaped(line) for line in lines))


def presented(text: str) -> Any:
    observed = {"role": "button", "name": text, "context": text, "title": text}
    given = document(observed, facts={"app": f"exe:/opt/{text}", "place": text})
    what = present(given, Invoke(), reason=f"because {text}", action_hash="0" * 64)
    return ask(what, approval_id="ap-1", operation_id="op-1", now_ms=1)


def test_no_string_makes_a_line_of_what_an_approver_reads():
    expected = len(approving.shown(presented("plain")))
    for text in STRINGS:
        lines = [line if isinstance(line, str) else line[1] for line in approving.shown(presented(text))]
        assert len(lines) == expected, text
        for line in lines:
            check_shown(line)
            assert "\n" not in line


def test_no_string_becomes_part_of_the_evidence_page():
    def told(text: str) -> Reader:
        events = [
            event(
                1, "operation.claimed.v1", effect=text, app=text, place=text, decision=decision(), request={"a": text}
            ),
            event(2, "operation.terminal.v1", kind="succeeded", message=text, receipt=receipt(warnings=[text])),
        ]
        return Reader(page(report(op=events)))

    expected = [name for name, _ in told("plain").tags]
    for text in STRINGS:
        found = told(text)
        assert [name for name, _ in found.tags] == expected, text
        assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


POLICIES = {
    "defaults": parse_policy(""),
    "office": parse_policy(
        'version = 1\n[[rule]]\nid = "a"\neffect = "allow"\nreason = "r"\ncovers = ["shared_desktop", "send_publish"]\n'
        '[[rule]]\nid = "b"\neffect = "deny"\nreason = "r"\n[rule.match.observed]\ntitle = ["*bank*"]\n'
    ),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("isolation", ["isolated", "shared"])
def test_no_string_anywhere_on_a_screen_makes_an_answer_more_lenient(policy, isolation):
    proven = set()

    def strictness(**texts: str) -> int:
        given = policy_input(
            scope(isolation),
            request(Invoke()),
            principal="agent",
            surface=surface(title=texts.get("title", ""), claimed=texts.get("claimed", "")),
            node=node(texts.get("name", "Name"), "button", description=texts.get("description", "")),
            context=texts.get("context", ""),
            fields=(texts["field"],) if "field" in texts else (),
        )
        proven.add(encode_record(msgspec.structs.replace(given.facts, observed={})))
        return STRICTNESS[decide(policy, given, "d1").outcome]

    for named in ("Name", "Delete", "OK"):
        least = strictness(name=named)
        for text in STRINGS:
            for place in ("title", "claimed", "context", "description", "field"):
                assert strictness(name=named, **{place: text}) >= least, (named, place, text)
    # Whatever the screen said, what counts as proven was the same.
    assert len(proven) == 1


async def test_an_agent_that_obeys_every_string_has_no_effect_that_policy_would_not_have_allowed():
    world = World(
        [button(LIE, "plain"), field("text", "Note", "plain"), button("save", "Save")]
        + [button(word, name) for word, name in CONSEQUENTIAL.items()]
    )
    host = host_of(world)
    session = await agent(host)
    handles = {name: word for word, name in CONSEQUENTIAL.items()}
    tried = Counter[str]()
    for number, text in enumerate(STRINGS):
        world.app.surface = msgspec.structs.replace(world.app.surface, title=text[:200])
        world.app.change(LIE, name=text, description=text)
        world.app.change("text", value=text)
        for control in orders(text):
            reply = await world.act(f"obey-{number}-{handles[control]}", handles[control])
            tried[reply.status] += 1
        # It presses what speaks to it as well, whatever that is; and it tries to approve itself.
        await world.act(f"press-{number}", LIE)
        for method, params in FORBIDDEN.items():
            with pytest.raises(SurehandError):
                await host.call(session, method, params)
    assert (await world.act("save", "save")).status == "succeeded"
    touched = {handle for effect in world.app.effects for handle in effect if handle in CONSEQUENTIAL}
    assert touched == set()
    # Policy asks about each of these, whatever stands beside it; some questions too many are refused.
    assert set(tried) <= {"approval_required", "refused"}
    assert tried["approval_required"] > 0
    assert tried.total() > len(STRINGS)
    assert not [one for one in await world.types() if one.startswith(("approval.answered", "standing.granted"))]
