"""From a tree to a session's scene: labels, fingerprints, contexts, generation (spec §2, §8.2).

The generation of a window is its count of target changes as one session saw them. It advances when an element
appears, goes, moves in the structure, or changes in anything an agent could have relied on: label, fingerprint,
context, name, value, description, states, actions, capabilities. It stands still when only bounds, row and column
numbers, the window's own record, or the adapter's version number change.

Promises that an unchanged tree costs a comparison of identities, and that unchanged targets are the same objects.
"""

from __future__ import annotations

from typing import Final

from surehand import canonical, limits
from surehand.core.scene.context import contexts_of
from surehand.core.scene.identity import identify
from surehand.core.scene.labels import LabelTable, assign, with_generation
from surehand.core.scene.tree import index_of
from surehand.model.scene import Node, Provenance, Scene, SceneTarget, Surface, Tree

PROVENANCE_DOMAIN: Final = "surehand/provenance/v1"


def provenance_of(surface: Surface, host_opt_ins: tuple[str, ...] = ()) -> Provenance:
    """Return where a scene of this surface comes from."""
    return Provenance(
        backend=surface.backend,
        desktop=surface.desktop,
        app=surface.app.key,
        process_generation=surface.app.process_generation,
        surface_id=surface.surface_id,
        host_opt_ins=host_opt_ins,
    )


def build_scene(
    tree: Tree,
    surface: Surface,
    previous: Scene | None,
    labels: LabelTable,
    *,
    session: str,
    scene_id: str,
    now_ms: int,
    host_opt_ins: tuple[str, ...] = (),
) -> tuple[Scene, LabelTable]:
    """Return the session's new scene of a surface and its label table from here on.

    Args:
        tree: What was read; nodes that did not change should be the same objects as in the previous tree.
        surface: The window's facts.
        previous: The session's last scene of the same surface, or None. Only makes this cheaper.
        labels: The session's table; give the returned one to the next build.
        session: The session the scene belongs to.
        scene_id: An id no other scene of the session has.
        now_ms: Monotonic milliseconds; the scene may be acted upon until `SCENE_ACT_MS_MAX` later.
        host_opt_ins: What the host switched on to see this much.

    Raises:
        InternalError: the tree is not one tree in document order.
    """
    provenance = provenance_of(surface, host_opt_ins)
    if previous is not None and previous.provenance == provenance:
        provenance, provenance_hash = previous.provenance, previous.provenance_hash
    else:
        provenance_hash = canonical.hash_record(PROVENANCE_DOMAIN, provenance)
        previous = None
    known = labels.surfaces.get(surface.surface_id)
    # A table that has moved on since `previous` may have retired its labels.
    if previous is not None and previous.tree is tree and known is not None and known.generation == previous.generation:
        targets, generation = previous.targets, previous.generation
    else:
        targets, labels = _targets(tree, surface.surface_id, provenance_hash, previous, labels)
        generation = labels.generation(surface.surface_id)
        if previous is None or generation != previous.generation or _changed(previous, tree, targets):
            generation += 1
        labels = with_generation(labels, surface.surface_id, generation)
    scene = Scene(
        scene_id=scene_id,
        session=session,
        generation=generation,
        surface=surface,
        provenance=provenance,
        provenance_hash=provenance_hash,
        tree=tree,
        targets=targets,
        observed_at_ms=now_ms,
        expires_at_ms=now_ms + limits.SCENE_ACT_MS_MAX,
    )
    return scene, labels


def _targets(
    tree: Tree, surface_id: str, provenance_hash: str, previous: Scene | None, labels: LabelTable
) -> tuple[tuple[SceneTarget, ...], LabelTable]:
    old_tree = previous.tree if previous is not None else None
    index_of(tree)
    fingerprints = identify(tree, old_tree).fingerprints
    contexts = contexts_of(tree, old_tree).contexts
    names, labels = assign(labels, surface_id, provenance_hash, tree.nodes, fingerprints)
    old = previous.targets if previous is not None else ()
    old_count = len(old)
    targets: list[SceneTarget] = []
    for place, (label, fingerprint, context) in enumerate(zip(names, fingerprints, contexts, strict=True)):
        if place < old_count:
            kept = old[place]
            if (
                kept.label == label
                and kept.fingerprint_hash == fingerprint
                and kept.context_hash == context.hash
                and kept.context_handles == context.handles
            ):
                targets.append(kept)
                continue
        targets.append(
            SceneTarget(
                label=label,
                index=place,
                fingerprint_hash=fingerprint,
                context=context.text,
                context_hash=context.hash,
                context_handles=context.handles,
            )
        )
    return tuple(targets), labels


def _changed(previous: Scene, tree: Tree, targets: tuple[SceneTarget, ...]) -> bool:
    if len(previous.targets) != len(targets) or previous.tree.parents != tree.parents:
        return True
    for old, new in zip(previous.targets, targets, strict=True):
        if old is not new and (
            old.label != new.label
            or old.fingerprint_hash != new.fingerprint_hash
            or old.context_hash != new.context_hash
        ):
            return True
    return any(
        old is not new and not _means_the_same(old, new)
        for old, new in zip(previous.tree.nodes, tree.nodes, strict=True)
    )


_GEOMETRY: Final = frozenset({"bounds", "row", "column"})
_MEANING: Final = tuple(name for name in Node.__struct_fields__ if name not in _GEOMETRY)


def _means_the_same(old: Node, new: Node) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in _MEANING)
