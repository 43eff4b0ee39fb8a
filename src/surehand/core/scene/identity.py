"""Who an element is: the fingerprint of spec §8.3.

A fingerprint covers role, toolkit role, the id the application set, the element's own name exactly, and the chain of
its ancestors. The chain carries each ancestor's role, toolkit role and set id but not its name: names around an
element are its context (`context.py`), which knows which of them identify, while a window title that gains an
asterisk or a count must not make every element of the window a stranger.

Promises that an unchanged node is not hashed again in the next tree.
"""

from __future__ import annotations

from typing import Final

from surehand import canonical
from surehand.core.scene.tree import Memo, index_of
from surehand.errors import InvalidRequest
from surehand.model.scene import Node, Tree

CHAIN_DOMAIN: Final = "surehand/chain/v1"
FINGERPRINT_DOMAIN: Final = "surehand/fingerprint/v1"


def hash_texts(domain: str, value: list[object]) -> str:
    """Return the digest of texts an application gave us; lone surrogates in them are spelled out first.

    A request with a lone surrogate is refused, but an application may show one, and its window must stay usable.
    """
    try:
        return canonical.hash_value(domain, value)
    except InvalidRequest:
        return canonical.hash_value(domain, [_encodable(part) for part in value])


def _encodable(part: object) -> object:
    if isinstance(part, str):
        return part.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(part, list | tuple):
        return [_encodable(inner) for inner in part]
    return part


def chain_hash(parent_chain: str, node: Node) -> str:
    """Return the hash of the path that ends at `node`; `parent_chain` is "" for the root."""
    return hash_texts(CHAIN_DOMAIN, [parent_chain, node.role, node.toolkit_role, node.app_id])


def fingerprint_hash(chain: str, node: Node) -> str:
    """Return the fingerprint of a node whose own chain hash is `chain`."""
    return hash_texts(FINGERPRINT_DOMAIN, [chain, node.name])


class Identities:
    """Chain and fingerprint hashes of every node of one tree."""

    __slots__ = ("chains", "fingerprints")

    def __init__(self, chains: list[str], fingerprints: list[str]) -> None:
        self.chains: Final = chains
        self.fingerprints: Final = fingerprints


_IDENTITIES: Final[Memo[Tree, Identities]] = Memo()


def identify(tree: Tree, previous: Tree | None = None) -> Identities:
    """Return the identities of a tree; nodes that are the same objects as in `previous` are not hashed again."""
    found = _IDENTITIES.peek(tree)
    return found if found is not None else _IDENTITIES.keep(tree, _identify(tree, previous))


def _identify(tree: Tree, previous: Tree | None) -> Identities:
    known = _IDENTITIES.peek(previous)
    old_nodes: tuple[Node, ...] = ()
    old_parents: tuple[int, ...] = ()
    old_index: dict[str, int] = {}
    old_chains: list[str] = []
    old_fingerprints: list[str] = []
    if previous is not None and known is not None:
        old_nodes, old_parents, old_index = previous.nodes, previous.parents, index_of(previous).by_handle
        old_chains, old_fingerprints = known.chains, known.fingerprints
    old_count = len(old_nodes)
    chains: list[str] = []
    fingerprints: list[str] = []
    # Siblings share their path and often their names, so most hashes of a first read are found here.
    paths: dict[tuple[str, str, str, str], str] = {}
    names: dict[tuple[str, str], str] = {}
    for index, (node, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True)):
        parent_chain = chains[parent] if parent >= 0 else ""
        old = index if index < old_count and old_nodes[index] is node else old_index.get(node.handle, -1)
        if old >= 0 and old_nodes[old] is node:
            old_parent = old_parents[old]
            if (old_chains[old_parent] if old_parent >= 0 else "") == parent_chain:
                chains.append(old_chains[old])
                fingerprints.append(old_fingerprints[old])
                continue
        path = (parent_chain, node.role, node.toolkit_role, node.app_id)
        if (chain := paths.get(path)) is None:
            chain = paths[path] = chain_hash(parent_chain, node)
        named = (chain, node.name)
        if (fingerprint := names.get(named)) is None:
            fingerprint = names[named] = fingerprint_hash(chain, node)
        chains.append(chain)
        fingerprints.append(fingerprint)
    return Identities(chains, fingerprints)
