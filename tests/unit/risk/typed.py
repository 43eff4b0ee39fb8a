"""What the type checker must refuse: texts of a screen where policy's facts stand. Checked, never run.

Each line is an error, and says so: where one is an error no more, the check fails for an ignore that nothing needs.
"""

from __future__ import annotations

from surehand.core.policy import proof
from surehand.core.policy.categories import classify_app, observed_categories, proven_categories
from surehand.core.policy.vocabulary import Vocabulary
from surehand.core.risk.controls import Control
from surehand.model.actions import Invoke
from surehand.model.decision import Facts
from surehand.model.scene import Node, Surface


def facts_of_what_is_proven(surface: Surface, lists: Vocabulary) -> Facts:
    """Form facts as they should be formed."""
    found = classify_app(lists.apps, surface.app).proven | proven_categories(
        Invoke(), "desktop.invoke", "reversible", lists.words
    )
    return Facts(
        app=proof.application(surface.app),
        place=proof.place(surface),
        isolation="isolated",
        trust_level="A",
        backend="atspi",
        categories=tuple(found),
    )


def what_a_screen_says_is_no_fact(surface: Surface, node: Node, context: str, lists: Vocabulary) -> None:
    """Try every text that comes from a screen."""
    app, place = proof.application(surface.app), proof.place(surface)
    Facts(app=surface.app.claimed_name, place=place, isolation="isolated", trust_level="A", backend="x")  # type: ignore[arg-type]
    Facts(app=node.name, place=place, isolation="isolated", trust_level="A", backend="x")  # type: ignore[arg-type]
    Facts(app=app, place=surface.title, isolation="isolated", trust_level="A", backend="x")  # type: ignore[arg-type]
    Facts(app=app, place=context, isolation="isolated", trust_level="A", backend="x")  # type: ignore[arg-type]
    Facts(app=app, place=place, isolation=node.name, trust_level="A", backend="x")  # type: ignore[arg-type]
    Facts(app=app, place=place, isolation="isolated", trust_level=context, backend="x")  # type: ignore[arg-type]
    seen = observed_categories(Invoke(), lists.words, Control(name=node.name))
    Facts(app=app, place=place, isolation="isolated", trust_level="A", backend="x", categories=tuple(seen))  # type: ignore[arg-type]
    claimed = classify_app(lists.apps, surface.app).claimed
    Facts(app=app, place=place, isolation="isolated", trust_level="A", backend="x", categories=tuple(claimed))  # type: ignore[arg-type]
