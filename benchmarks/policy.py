"""What does one decision cost, and what do the other pure rules on an operation's path cost beside it?

Prints one table in microseconds; every line is a ratio to one decision of the shipped office policy in the same run.
"""

from __future__ import annotations

import sys
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.rules_kit import SECRET, document, node, request, scope, surface

from surehand.core import hashing, permit, redaction
from surehand.core.lifecycle import Happening, Operation
from surehand.core.outcome import Known, terminal_of
from surehand.core.policy.evaluate import decide
from surehand.core.policy.inputs import policy_input
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


if __name__ == "__main__":
    main()
