"""What may leave: secret fields never do, and output goes through the obligations of its decision (spec §6.3, §3.5).

Guarantees: the value and even the length of a secret field are in nothing that is released; a resolved secret is
masked in every output; output that must be asked about and was not agreed to is withheld whole, with no byte of it in
the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from surehand.core.redaction import mask
from surehand.errors import SecureSurface
from surehand.model.decision import Obligations
from surehand.model.record import Record
from surehand.model.scene import LiveNode, Node

#: Roles whose content is secret even where the toolkit forgot to say so.
SECRET_ROLES: Final = frozenset({"password"})


class Released(Record, frozen=True, kw_only=True):
    """Output that may leave."""

    output: dict[str, Any] | None


class Withheld(Record, frozen=True, kw_only=True):
    """Output that may not. The reason holds nothing of it."""

    reason: str


def is_secret(node: Node) -> bool:
    """Say whether the node's content must never leave."""
    return node.secret or node.role in SECRET_ROLES


def release_node(node: Node) -> Node:
    """Return the node without what a secret field holds; other nodes as they are."""
    if not is_secret(node):
        return node
    if node.secret and node.value is None and node.text_chars is None:
        return node
    # The length of a password is worth having to whoever guesses it.
    return msgspec.structs.replace(node, secret=True, value=None, text_chars=None)


def release_live(live: LiveNode) -> LiveNode:
    """Return a live reading without what a secret field holds."""
    node = release_node(live.node)
    return live if node is live.node else msgspec.structs.replace(live, node=node)


def check_readable(node: Node) -> None:
    """Refuse to read the text of a secret field.

    Raises:
        SecureSurface: always for a secret field; no policy opens it.
    """
    if is_secret(node):
        raise SecureSurface(
            "this field holds a secret, which is never read out",
            gate="policy",
            fix="Compare it with a verification; the comparison is made where the secret is.",
        )


def release_output(
    output: dict[str, Any] | None, obligations: Obligations, *, secrets: Iterable[str] = (), agreed: bool = False
) -> Released | Withheld:
    """Decide what of an operation's output leaves quarantine.

    Args:
        output: What the actor returned.
        obligations: Of the decision the operation ran under.
        secrets: Every secret that was resolved in the session.
        agreed: Whether whoever must be asked has said yes to this output.
    """
    if output is None:
        return Released(output=None)
    if obligations.release == "ask" and not agreed:
        return Withheld(reason="its output needs a yes that was not given")
    kept = {name: "[redacted]" if name in obligations.redact else item for name, item in output.items()}
    return Released(output=mask(kept, secrets))
