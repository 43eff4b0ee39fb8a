"""The safety kernel: what no policy can switch off (spec §6.3). One function per check; each raises or returns.

Here are the checks that would otherwise stand nowhere. The rest of the kernel stands where it cannot be gone around:

- bounds: in the construction of every record, and in the frames of the wire before anything is decoded;
- a scene's age and who its elements are: `scene.fence.check_reference` and `check_fence`;
- a durable journal: a claim that is not stored raises, and the table of `lifecycle` knows no way past it;
- permits: `permit.check_permit`, and the journal's count of their one use;
- secrets: `release.release_node`, `release.check_readable`, `release.release_output`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from surehand.core.input.keys import copies
from surehand.core.policy.model import CONSEQUENTIAL
from surehand.core.release import is_secret
from surehand.errors import InvalidRequest, PolicyDenied, SecureSurface, UnsupportedAction
from surehand.model.actions import TARGET_KINDS, Action, Drag, Press, SelectText, kind_of, secret_of
from surehand.model.decision import Decision, Facts, PolicyInput
from surehand.model.record import Record, tag_of
from surehand.model.scene import Node
from surehand.model.secrets import SecretField
from surehand.model.targets import NoTarget, QueryTarget, Target

#: What takes a text elsewhere. A tuple: a union would be put together again at every question.
_TAKING: Final = (SelectText, Drag)
#: Actions that can change something and are nevertheless aimed at nothing: there is nothing yet, or everything.
_UNAIMED: Final = frozenset({"app", "open", "clipboard", "abort", "physical_state", "screenshot", "release", "tab"})


class Host(Record, frozen=True, kw_only=True):
    """What only the host states: how isolated the desktop is, and how far the agent's code is kept from ours."""

    isolation: Literal["isolated", "display_only", "shared"]
    trust_level: Literal["A", "B"]


def check_known_action(action: Action) -> None:
    """Refuse an action that the table does not list."""
    if kind_of(action) not in TARGET_KINDS:
        raise UnsupportedAction(f"no action is called {kind_of(action)}", gate="shape")


def check_fenced(action: Action, target: Target) -> None:
    """Refuse an acting request without a target that can be fenced, before authority is looked at (spec §3.3)."""
    kind = kind_of(action)
    target_kind = tag_of(type(target))
    if target_kind not in TARGET_KINDS.get(kind, ()):
        raise InvalidRequest(f"{kind} cannot be aimed at a target of kind {target_kind}", gate="shape")
    if isinstance(target, NoTarget) and kind not in _UNAIMED:
        raise InvalidRequest(f"{kind} needs a fenced target", gate="shape")


def check_secret_use(action: Action, node: Node | None, fields: Iterable[SecretField] = ()) -> None:
    """Refuse a secret anywhere but in a field that is marked secret (spec §3.2), or that it is bound to by name.

    Args:
        action: What is to be done.
        node: Where.
        fields: Those of the secret's binding. Whatever is in them can be read on the screen, which whoever enrolled the
            secret agreed to for them alone.
    """
    if secret_of(action) is None or (node is not None and is_secret(node)):
        return
    if node is None or (node.role, node.name) not in {(field.role, field.name) for field in fields}:
        raise SecureSurface(
            "an enrolled secret goes only into a field that is marked secret, or that it is bound to by name",
            gate="first_fence",
            fix="Aim at the password field itself.",
        )


def check_untold(action: Action, node: Node | None, *, known: bool) -> None:
    """Refuse what takes the text of a secret field elsewhere: selecting (its end tells how long it is too), dragging.

    Args:
        action: What is to be done.
        node: Where.
        known: Whether the field was secret once, however its application shows it now.
    """
    if isinstance(action, _TAKING) and node is not None and (known or is_secret(node)):
        raise _kept_there()


def copies_anything(action: Action) -> bool:
    """Say whether keys are pressed that copy what is selected where the keyboard is."""
    return isinstance(action, Press) and any(copies(chord) for chord in action.chords)


def check_not_copied(nodes: Iterable[Node]) -> None:
    """Refuse to press keys that copy while a secret field of the window has the keyboard, whatever is aimed at."""
    if any("focused" in node.states and is_secret(node) for node in nodes):
        raise _kept_there()


def _kept_there() -> SecureSurface:
    return SecureSurface(
        "nothing is selected in a field that holds a secret, nor copied or dragged out of it",
        gate="first_fence",
        fix="set_value and type_text with clear replace what is in it",
    )


def check_host_facts(facts: Facts, *, isolation: str, trust_level: str) -> None:
    """Refuse facts that claim another isolation or trust level than the host states of the session."""
    if facts.isolation != isolation or facts.trust_level != trust_level:
        raise PolicyDenied("isolation and trust level are stated by the host only", gate="policy")


def raise_for_query(decision: Decision, document: PolicyInput, target: Target) -> Decision:
    """Turn an allow into a question where a query alone would pick the target of something consequential (spec §3.3).

    Not even a rule that covers the category helps: the rule's author cannot have seen which element it will be.
    """
    if decision.outcome != "allow" or document.approved or not isinstance(target, QueryTarget):
        return decision
    observed = document.facts.observed.get("categories", ())
    if CONSEQUENTIAL.isdisjoint(document.facts.categories) and CONSEQUENTIAL.isdisjoint(observed):
        return decision
    return msgspec.structs.replace(
        decision,
        outcome="require_approval",
        rule="kernel.query",
        reason="A query picked the target of something consequential; a person must see which element it is.",
    )
