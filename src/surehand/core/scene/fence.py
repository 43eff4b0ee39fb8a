"""The fences of spec §8.3: the right thing or nothing.

`check_reference` decides whether a reference is one we handed out and may still be acted upon. `check_fence` decides
whether the element still is what was observed and means what it meant; it runs twice with the same code, first on the
maintained scene (`SceneView`), then on nodes read live a moment before the effect.

Promises that an element passes only if its handle is alive, its fingerprint and its context recompute to the observed
hashes from what is there now, it hangs where it hung, and it is enabled and visible; that the refusal names the first
difference as observed data; and that nothing else refuses: not a newer generation, a position, a label or a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from surehand.core.release import cover_live, is_secret
from surehand.core.scene.context import Context, Key, Part, context_hash, contexts_of, key_of, part_texts
from surehand.core.scene.describe import closest
from surehand.core.scene.identity import chain_hash, fingerprint_hash, identify
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.tree import Memo, index_of
from surehand.errors import BehindModal, InvalidRequest, StaleTarget, TargetNotActionable, TargetNotFound
from surehand.model.scene import LiveNode, Node, Scene, Surface, Tree
from surehand.model.targets import ElementTarget

Live = Mapping[str, LiveNode | None]

_OBSERVE_AGAIN: Final = "observe again and choose the element anew"
_LABELS: Final[Memo[Scene, dict[str, int]]] = Memo()
#: By the element's place; no more of them than the scene has targets.
_REFERENCES: Final[Memo[Scene, dict[int, ElementTarget]]] = Memo()
#: The places of dialogs inside a window.
_MODALS: Final[Memo[Tree, tuple[int, ...]]] = Memo()
#: What a person opens or scrolls to reach: an element inside may be out of sight and still be meant.
_OPENABLE: Final = frozenset({"menu", "menubar", "menuitem", "combobox", "list", "table", "tree", "treeitem"})
_SCROLLED: Final = frozenset({"scrollpane", "document"})
_OUT_OF_SIGHT: Final = _OPENABLE | _SCROLLED
#: What a person sees right now; it passes whatever an action needs of that.
_IN_SIGHT: Final = frozenset({"visible", "showing"})


def index_of_label(scene: Scene, label: str) -> int | None:
    """Return the place of a label's element in a scene, or None."""
    return _LABELS.get(scene, _places_of_labels).get(label)


def _places_of_labels(scene: Scene) -> dict[str, int]:
    return {target.label: target.index for target in scene.targets}


def _none_yet(_: object) -> dict[int, Any]:
    return {}


def reference(scene: Scene, index: int) -> ElementTarget:
    """Return the fenced reference to an element, as handed out."""
    target = scene.targets[index]
    return ElementTarget(
        scene_id=scene.scene_id,
        generation=scene.generation,
        element_id=target.label,
        provenance_hash=scene.provenance_hash,
        fingerprint_hash=target.fingerprint_hash,
        context_hash=target.context_hash,
    )


def _handed_out(scene: Scene, index: int) -> ElementTarget:
    """Return the reference to an element again; what is acted on a second time is not put together twice."""
    known = _REFERENCES.get(scene, _none_yet)
    found = known.get(index)
    if found is None:
        found = known[index] = reference(scene, index)
    return found


class SceneView(Mapping[str, LiveNode]):
    """A scene's nodes as if just read: what the first fence compares with."""

    def __init__(self, scene: Scene) -> None:
        self._index = index_of(scene.tree)

    def __getitem__(self, handle: str) -> LiveNode:
        place = self._index.by_handle[handle]
        parent = self._index.parents[place]
        return LiveNode(node=self._index.nodes[place], parent=self._index.nodes[parent].handle if parent >= 0 else "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.by_handle)

    def __len__(self) -> int:
        return len(self._index.by_handle)


def check_reference(
    target: ElementTarget,
    referenced: Scene | None,
    current: Scene,
    *,
    session: str,
    now_ms: int,
    labels: LabelTable | None = None,
) -> int:
    """Return the element's place in the referenced scene, once the reference itself is in order.

    Args:
        target: What the caller sent.
        referenced: The session's kept scene with that id, or None.
        current: The session's newest scene of the same surface.
        session: The caller's session.
        now_ms: Monotonic milliseconds.
        labels: The session's table, to tell an invented label from one that is gone.

    Raises:
        StaleTarget: the scene is not known in this session, is too old, or its process or window was replaced.
        InvalidRequest: generation or hashes are not the ones that were handed out.
        TargetNotFound: the scene has no such label.
    """
    if referenced is None or referenced.session != session or referenced.scene_id != target.scene_id:
        # One answer for unknown, forgotten and foreign: it must not tell what other sessions have.
        raise StaleTarget(
            "that scene is not one of this session's recent ones", fix=_OBSERVE_AGAIN, details={"what": "scene"}
        )
    index = index_of_label(referenced, target.element_id)
    if index is None:
        issued = labels is not None and labels.issued(target.element_id)
        raise TargetNotFound(
            f"{target.element_id} is not in that scene"
            if issued
            else f"{target.element_id} is no label this session was given",
            fix=_OBSERVE_AGAIN,
            details={"element": target.element_id},
        )
    if _handed_out(referenced, index) != target:
        raise InvalidRequest(
            f"the reference to {target.element_id} is not as it was handed out",
            fix="send the reference exactly as observed",
            details={"element": target.element_id},
        )
    if current.provenance_hash != referenced.provenance_hash:
        _refuse_provenance(referenced, current, target.element_id)
    if now_ms > referenced.expires_at_ms:
        raise StaleTarget(
            f"the scene was observed {now_ms - referenced.observed_at_ms} ms ago and may not be acted upon any more",
            fix="observe again",
            details={"what": "expired", "element": target.element_id},
        )
    return index


def _refuse_provenance(referenced: Scene, current: Scene, label: str) -> NoReturn:
    what = "scene"
    for name in referenced.provenance.__struct_fields__:
        if getattr(referenced.provenance, name) != getattr(current.provenance, name):
            what = name
            break
    raise StaleTarget(
        f"the scene's {what.replace('_', ' ')} is not what it was",
        fix=_OBSERVE_AGAIN,
        details={"what": what, "element": label},
    )


# --- what has to be read -------------------------------------------------------------------------------------------


_Identity = tuple[str, tuple[tuple[str, str, str], ...]]


class _Label(NamedTuple):
    """One part of a context: the places of its nodes, and those that join them to the path, each once."""

    part: Part
    places: tuple[int, ...]
    joins: tuple[int, ...]


class _Meant(NamedTuple):
    """What the fences of one element read and compare with. It follows from the tree, so all of them share it.

    `path` leads from the element to its window. `identity` and `key` are what the two hashes cover, as observed. `seen`
    is every node that is read with what it hung on, None for a window; empty where any of them was dead or is secret.
    """

    path: tuple[int, ...]
    seen: tuple[tuple[Node, str | None], ...]
    labels: tuple[_Label, ...]
    handles: tuple[str, ...]
    identity: _Identity
    fingerprint_hash: str
    key: Key
    context_hash: str


#: By the element's place; no more of them than the tree has nodes.
_MEANT: Final[Memo[Tree, dict[int, _Meant]]] = Memo()


def fence_handles(scene: Scene, index: int) -> tuple[str, ...]:
    """Return the handles the final fence needs: the element, its ancestors up to the window, the nodes its context
    was computed from, and what joins these to its ancestors; each once, the element first.
    """  # noqa: D205
    return _meant(scene.tree, index).handles


def _meant(tree: Tree, index: int) -> _Meant:
    known = _MEANT.get(tree, _none_yet)
    found = known.get(index)
    if found is None:
        found = known[index] = _work_out(tree, index)
    return found


def _work_out(tree: Tree, index: int) -> _Meant:
    places = index_of(tree)
    path = (index, *places.ancestors(index))
    context: Context = contexts_of(tree).contexts[index]
    labels = []
    for part in context.parts:
        own = tuple(places.by_handle[handle] for handle in part.handles)
        joins = dict.fromkeys(join for place in own for join in _branch(tree, place, path))
        labels.append(_Label(part, own, tuple(joins)))
    wanted = dict.fromkeys((*path, *(join for label in labels for join in label.joins)))
    nodes, parents = tree.nodes, tree.parents
    seen = tuple((nodes[one], nodes[parents[one]].handle if parents[one] >= 0 else None) for one in wanted)
    return _Meant(
        path=path,
        seen=() if any("defunct" in node.states or is_secret(node) for node, _ in seen) else seen,
        labels=tuple(labels),
        handles=tuple(dict.fromkeys(nodes[place].handle for place in wanted)),
        identity=_identity([nodes[place] for place in path]),
        fingerprint_hash=identify(tree).fingerprints[index],
        key=key_of(context.parts),
        context_hash=context.hash,
    )


def _identity(path: Sequence[Node]) -> _Identity:
    """Return what the fingerprint of the first node covers; the others are its ancestors, up to the window."""
    return path[0].name, tuple((node.role, node.toolkit_role, node.app_id) for node in path)


def _fingerprint(path: Sequence[Node]) -> str:
    chain = ""
    for node in reversed(path):
        chain = chain_hash(chain, node)
    return fingerprint_hash(chain, path[0])


def _branch(tree: Tree, place: int, path: Sequence[int]) -> list[int]:
    """Return a node and its ancestors up to, without, the first that is on the path."""
    branch: list[int] = []
    while place >= 0 and place not in path:
        branch.append(place)
        place = tree.parents[place]
    return branch


# --- the fence -----------------------------------------------------------------------------------------------------


def check_fence(
    scene: Scene,
    index: int,
    live: Live,
    *,
    current: Scene | None = None,
    enabled: bool = True,
    visible: bool = True,
    on_screen: bool = False,
) -> None:
    """Refuse unless the element of `scene` at `index` still is what it was and means what it meant.

    Args:
        scene: The scene in which the caller saw the element.
        index: The element's place in it.
        live: At least the nodes of `fence_handles`, as they are now; None where dead.
        current: The newest scene, for the candidates that a refusal names.
        enabled: Whether the action needs an enabled element.
        visible: Whether it needs one that a person can see or bring into sight.
        on_screen: Whether it needs one that shows right now (the pointer's actions).

    Raises:
        StaleTarget: naming the difference in `observed["difference"]` as `{what, before, now}`.
        TargetNotActionable: disabled or hidden.
    """
    states = scene.tree.nodes[index].states
    if _is_as_seen(scene, index, live) and "enabled" in states and states >= _IN_SIGHT:
        return
    _Fence(scene, index, live, current).check(enabled=enabled, visible=visible or on_screen, on_screen=on_screen)


def _is_as_seen(scene: Scene, index: int, live: Live) -> bool:
    """Say whether nothing at all has changed, in any fact of what is read: then nothing needs comparing."""
    meant, target = _meant(scene.tree, index), scene.targets[index]
    for node, parent in meant.seen:
        now = live.get(node.handle)
        if now is None or now.node != node or (parent is not None and now.parent != parent):
            return False
    hashes = (meant.fingerprint_hash, meant.context_hash)
    return bool(meant.seen) and hashes == (target.fingerprint_hash, target.context_hash)


class _Fence:
    """One comparison of then and now."""

    def __init__(self, scene: Scene, index: int, live: Live, current: Scene | None) -> None:
        self._scene = scene
        self._target = scene.targets[index]
        self._nodes = scene.tree.nodes
        self._parents = scene.tree.parents
        self._index = index
        self._meant = _meant(scene.tree, index)
        self._live = live
        self._current = current

    def check(self, *, enabled: bool, visible: bool, on_screen: bool) -> None:
        path = self._compare()
        if enabled and "enabled" not in path[0].states:
            self._not_actionable("disabled", "the element is disabled", "wait until it is enabled")
        if visible:
            self._check_visible(path, on_screen=on_screen)

    def _compare(self) -> list[Node]:
        """Compare fact by fact and name the first difference that matters; return the path as it is now."""
        now = self._now(self._index)
        if now is None:
            self._stale("gone", self._nodes[self._index].name, None)
        self._check_own(now.node)
        path = self._check_path()
        self._check_fingerprint(path)
        self._check_context()
        return path

    def _now(self, place: int) -> LiveNode | None:
        found = self._live.get(self._nodes[place].handle)
        if found is None or "defunct" in found.node.states:
            return None
        # What is a secret to us stays one, though its application shows it in clear (runtime/covering.py).
        return cover_live(found) if is_secret(self._nodes[place]) else found

    def _check_own(self, now: Node) -> None:
        was = self._nodes[self._index]
        for what in ("role", "toolkit_role", "app_id", "name", "secret"):
            before, after = getattr(was, what), getattr(now, what)
            if before != after:
                self._stale(what, before, after)

    def _check_path(self) -> list[Node]:
        """Every ancestor is alive, of its kind, and in its place. Its name matters only where it is context."""
        found: list[Node] = []
        for place in self._meant.path:
            now = self._now(place)
            was = self._nodes[place]
            if now is None:
                self._stale("parent", self._spoken(was), None)
            parent = self._parents[place]
            if parent >= 0 and now.parent != self._nodes[parent].handle:
                self._stale("parent", self._spoken(self._nodes[parent]), self._spoken_handle(now.parent))
            if (now.node.role, now.node.toolkit_role, now.node.app_id) != (was.role, was.toolkit_role, was.app_id):
                self._stale("parent", self._spoken(was), self._spoken(now.node))
            found.append(now.node)
        return found

    def _check_fingerprint(self, path: list[Node]) -> None:
        """Recompute from what is there now; the checks above only exist to name the difference."""
        # What reads as it did has the hash that it had.
        same = _identity(path) == self._meant.identity
        if (self._meant.fingerprint_hash if same else _fingerprint(path)) != self._target.fingerprint_hash:
            self._stale("fingerprint", self._spoken(self._nodes[self._index]), self._spoken(path[0]))

    def _check_context(self) -> None:
        key: list[tuple[str, tuple[str, ...]]] = []
        for part, places, joins in self._meant.labels:
            for place in joins:
                self._check_joined(part, place)
            nodes: list[Node] = []
            for place in places:
                now = self._now(place)
                if now is None:
                    self._stale("context", part.text, None, kind=part.kind)
                nodes.append(now.node)
            texts = part_texts(part.kind, nodes)
            if texts != part.texts:
                now_text = part._replace(texts=texts).text
                self._stale("context", part.text, now_text, kind=part.kind)
            key.append((part.kind, texts))
        read = tuple(key)
        same = read == self._meant.key
        if (self._meant.context_hash if same else context_hash(read)) != self._target.context_hash:
            self._stale("context", self._target.context, None)

    def _check_joined(self, part: Part, place: int) -> None:
        """A label counts only where it stood: the same text in another row labels another thing."""
        now = self._now(place)
        if now is None:
            self._stale("context", part.text, None, kind=part.kind)
        if now.parent != self._nodes[self._parents[place]].handle:
            self._stale("context", part.text, self._spoken_handle(now.parent), kind=part.kind)

    def _check_visible(self, nodes: list[Node], *, on_screen: bool) -> None:
        if "visible" not in nodes[0].states:
            self._not_actionable("hidden", "the element is hidden", "make it visible first")
        if "showing" in nodes[0].states:
            return
        if on_screen:
            self._not_actionable("hidden", "the element is not on the screen", "scroll it into view or open its menu")
        # The outermost thing out of sight says why: inside a menu or a scrolled area is in reach, a hidden page is not.
        outermost = max(place for place, node in enumerate(nodes) if "showing" not in node.states)
        around = nodes[outermost + 1 :]
        in_reach = nodes[outermost].role in _OPENABLE or any(node.role in _OUT_OF_SIGHT for node in around)
        if not in_reach or any("visible" not in node.states and node.role not in _OPENABLE for node in nodes):
            self._not_actionable("hidden", "the element is on a part that does not show", "bring that part up first")

    # --- refusing ---

    @staticmethod
    def _spoken(node: Node) -> str:
        return f"{node.role} {node.name}".strip()

    def _spoken_handle(self, handle: str) -> str | None:
        """Handles are ours and mean nothing to a reader; say what stands there, if it was seen."""
        now = self._live.get(handle)
        if now is not None:
            return self._spoken(now.node)
        if self._current is not None:
            tree = index_of(self._current.tree)
            if (place := tree.by_handle.get(handle)) is not None:
                return self._spoken(tree.nodes[place])
        return None

    def _observed(self, difference: dict[str, Any]) -> dict[str, Any]:
        observed: dict[str, Any] = {"difference": difference}
        if self._current is not None:
            candidates = closest(self._current, self._nodes[self._index], self._target.context)
            if candidates:
                observed["candidates"] = candidates
        return observed

    def _stale(self, what: str, before: object, now: object, *, kind: str | None = None) -> NoReturn:
        difference: dict[str, Any] = {"what": what, "before": before, "now": now}
        details: dict[str, Any] = {"what": what, "element": self._target.label}
        if kind is not None:
            details["context"] = kind
        said = {
            "gone": "is gone",
            "name": "has another name",
            "context": f"now belongs to something else ({kind or 'context'})",
            "parent": "is somewhere else",
        }.get(what, "is another kind of element")
        raise StaleTarget(
            f"{self._target.label} {said}", fix=_OBSERVE_AGAIN, details=details, observed=self._observed(difference)
        )

    def _not_actionable(self, what: str, message: str, fix: str) -> NoReturn:
        raise TargetNotActionable(
            message,
            fix=fix,
            details={"what": what, "element": self._target.label},
            observed={"name": self._nodes[self._index].name},
        )


# --- modal windows -------------------------------------------------------------------------------------------------


def blocking_modal(surface: Surface, surfaces: Sequence[Surface], front_to_back: Sequence[str] = ()) -> Surface | None:
    """Return the modal window of the same application that keeps a person from using `surface`, or None.

    `front_to_back` names surface ids as they are stacked, where known. Of two modal windows the one in front, else the
    active one, is usable.
    """
    rank = {surface_id: place for place, surface_id in enumerate(front_to_back)}
    for other in surfaces:
        if other.surface_id == surface.surface_id or "modal" not in other.states or not _is_up(other):
            continue
        if _same_process(surface, other) and ("modal" not in surface.states or _is_above(other, surface, rank)):
            return other
    return None


def _same_process(one: Surface, other: Surface) -> bool:
    return (
        one.desktop == other.desktop
        and one.app.pid == other.app.pid
        and one.app.process_generation == other.app.process_generation
    )


def _is_up(surface: Surface) -> bool:
    return "iconified" not in surface.states and bool(surface.states & {"showing", "visible"})


def _is_above(other: Surface, surface: Surface, rank: Mapping[str, int]) -> bool:
    if other.surface_id in rank and surface.surface_id in rank:
        return rank[other.surface_id] < rank[surface.surface_id]
    return "active" in other.states and "active" not in surface.states


def check_modal(scene: Scene, index: int, surfaces: Sequence[Surface] = (), front_to_back: Sequence[str] = ()) -> None:
    """Refuse an element behind a modal window of its application or a modal dialog inside its window.

    Raises:
        BehindModal: with the dialog's title in `observed["dialog"]`.
    """
    # The window's own state as it is now, not as it was when the scene was made.
    own = next((one for one in surfaces if one.surface_id == scene.surface.surface_id), scene.surface)
    blocker = blocking_modal(own, surfaces, front_to_back)
    label = scene.targets[index].label
    if blocker is not None:
        raise behind_modal(blocker.title, label, blocker.surface_id)
    tree = index_of(scene.tree)
    for place in _MODALS.get(scene.tree, _modals):
        if place != index and not tree.contains(place, index):
            raise behind_modal(tree.nodes[place].name, label, scene.surface.surface_id)


def _modals(tree: Tree) -> tuple[int, ...]:
    return tuple(place for place, node in enumerate(tree.nodes) if "modal" in node.states and "showing" in node.states)


def behind_modal(title: str, label: str | None = None, surface_id: str | None = None) -> BehindModal:
    """Return the refusal of what is behind a modal window, whose title is observed data."""
    details = {"element": label, "surface": surface_id}
    return BehindModal(
        f"{label or 'it'} is behind a modal dialog of its application",
        fix="answer the dialog first",
        details={name: value for name, value in details.items() if value is not None},
        observed={"dialog": title},
    )
