"""What does one decision cost, on every engine, and what do the other pure rules on an operation's path cost beside it?

Prints two tables in one run. The first is in microseconds; every line is a ratio to one decision of the shipped office
policy. The second is in milliseconds: both looks of spec §6.1 at one request, from the question to the decision, with
200 rules that say the same on every engine; OPA is a real server on a Unix socket, where there is one.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests import policy_engines
from tests.rules_kit import SECRET, document, node, request, scope, surface

from surehand.core import hashing, permit, redaction
from surehand.core.lifecycle import Happening, Operation
from surehand.core.outcome import Known, terminal_of
from surehand.core.policy import engine
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.evaluate import compile_policy, decide
from surehand.core.policy.inputs import policy_input
from surehand.core.policy.model import Match, ObservedMatch, Rule
from surehand.core.policy.toml_rules import parse_policy
from surehand.model.decision import Obligations

OFFICE = (Path(__file__).resolve().parent.parent / "examples" / "policy" / "office.toml").read_text("utf-8")
MANY = "version = 1\n" + "".join(
    f'[[rule]]\nid = "r{n}"\neffect = "deny"\nreason = "r"\n[rule.match]\napp = ["exe:/opt/app{n}"]\n'
    for n in range(200)
)
FORWARD = (
    Happening.SHAPE_CHECKED, Happening.SESSION_BOUND, Happening.FOUND_FRESH, Happening.AUTHORISED,
    Happening.POLICY_ALLOWED, Happening.FENCE_HELD,
)  # fmt: skip


#: Milliseconds at p50 that the engines may take.
TARGETS = {"built-in": 0.1, "cedar": 1.2, "rego": 5.0, "opa": 6.0}
ROUNDS = 400


def two_hundred() -> list[Rule]:
    """An organisation's policy: applications, sites and people, and a few rules about what the screen says."""
    apps = [Rule(id=f"app{n}", effect="deny", reason="r", match=Match(app=(f"exe:/opt/app{n}",))) for n in range(100)]
    sites = [
        Rule(id=f"site{n}", effect="deny", reason="r", match=Match(place=(f"https://*.site{n}.example",)))
        for n in range(50)
    ]
    people = [
        Rule(
            id=f"agent{n}",
            effect="allow",
            reason="r",
            covers=("shared_desktop",),
            match=Match(
                principal=(f"uid:{n}",), app=("exe:/usr/bin/*",), action=("desktop.invoke", "desktop.select_*")
            ),
        )
        for n in range(46)
    ]
    seen = [
        Rule(
            id=f"word{n}",
            effect="require_approval",
            reason="r",
            match=Match(action=("desktop.invoke",), observed=ObservedMatch(name=(f"*word{n}*",))),
        )
        for n in range(4)
    ]
    return [*apps, *sites, *people, *seen]


async def each(ask) -> tuple[float, float]:
    """Return milliseconds at p50 and p95 of one call."""
    for _ in range(20):
        await ask()
    times = []
    for _ in range(ROUNDS):
        before = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - before) * 1e3)
    return statistics.median(times), statistics.quantiles(times, n=20)[18]


async def engines() -> None:
    rules = two_hundred()
    asked = document(
        {"title": "Untitled 1 - Mousepad", "role": "button", "name": "Save as a file", "categories": ["send_publish"]},
        principal="uid:7",
        facts={"isolation": "shared"},
    )
    built_in = compile_policy(rules, DEFAULT_RULES, "r1")
    defaults = engine.defaults_policy("r1")
    expected = decide(built_in, asked, "d1").outcome

    async def by_rules() -> str:
        return decide(built_in, asked, "d1").outcome

    def by(one):
        async def ask() -> str:
            answers = await one.ask(engine.questions(asked))
            return engine.decide_from(defaults, asked, answers, "d1").outcome

        return ask

    async def line(name: str, ask) -> None:
        assert await ask() == expected
        p50, p95 = await each(ask)
        within = "" if p50 <= TARGETS[name] else "   ABOVE"
        print(f"{name:<45} {p50:8.3f} ms   p95 {p95:8.3f} ms   at most {TARGETS[name]:.1f} ms{within}")

    await line("built-in", by_rules)
    await line("cedar", by(policy_engines.cedar_of(rules)))
    await line("rego", by(policy_engines.rego_of(rules)))
    if policy_engines.opa_program() is None:
        print("opa: no opa on PATH, and no Go that could build it")
        return
    with policy_engines.opa_server() as server:
        server.rules(rules)
        opa = server.engine()
        await line("opa", by(opa))
        await opa.close()


def once(job) -> float:
    """Return the best microseconds of one call over five rounds."""
    count = 2_000
    return min(timeit.repeat(job, number=count, repeat=5)) / count * 1e6


def main() -> None:
    office, defaults, many = parse_policy(OFFICE), parse_policy(""), parse_policy(MANY)
    asked, where, at, on = request(), surface(title="Untitled 1 - Mousepad"), node("Save as a file"), scope()
    seen = policy_input(on, asked, principal="agent", surface=where, node=at, context="Row carol")
    meaning = hashing.target_meaning(asked.target, app=where.app.key, place=where.place)
    action_hash = hashing.action_hash(asked, meaning, None)
    bound = {
        "request_hash": hashing.request_hash("agent", "op-1", action_hash),
        "decision_id": "d1",
        "obligations_hash": permit.obligations_hash(Obligations()),
        "session": "s1",
    }
    minted = permit.mint_permit(SECRET, **bound, nonce="n1", now_ms=0)
    known = Known(status="done", verification="not_asked")
    base = once(lambda: decide(office, seen, "d1"))
    lines = [
        ("decide, office policy (4 rules)", base),
        ("decide, defaults alone", once(lambda: decide(defaults, seen, "d1"))),
        ("decide, 200 rules of one application each", once(lambda: decide(many, seen, "d1"))),
        ("decide, nothing observed", once(lambda: decide(office, document(), "d1"))),
        (
            "policy_input",
            once(lambda: policy_input(on, asked, principal="agent", surface=where, node=at, context="Row carol")),
        ),
        ("action_hash", once(lambda: hashing.action_hash(asked, meaning, None))),
        ("mint_permit", once(lambda: permit.mint_permit(SECRET, **bound, nonce="n1", now_ms=0))),
        ("check_permit", once(lambda: permit.check_permit(SECRET, minted, **bound, now_ms=1))),
        ("six steps of the lifecycle", once(lambda: Operation().through(*FORWARD))),
        ("terminal_of", once(lambda: terminal_of(known))),
        ("request_value (redacted)", once(lambda: redaction.request_value(asked, on.digest))),
    ]
    for name, microseconds in lines:
        print(f"{name:<45} {microseconds:8.2f} µs   {microseconds / base:5.2f}")
    print("\nboth looks at one request, 200 rules:")
    asyncio.run(engines())


if __name__ == "__main__":
    main()
