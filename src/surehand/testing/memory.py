"""An application that exists only in memory, with its observer and actor: for tests of the path itself and benchmarks.

It is no stand-in for a toolkit: it answers at once, truthfully, and can be told to fail at a named point. What it was
made to do is in `effects`, the ground truth of such a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from surehand.errors import SurehandError, TargetNotFound, Unavailable, WindowNotFound
from surehand.model.actions import Action, Invoke, SetValue, Toggle, kind_of
from surehand.model.scene import AppIdentity, CapabilityFact, LiveNode, Node, Surface, Tree
from surehand.model.tables import TableSlice
from surehand.ports import Attempt, Dispatched, TextSlice
from surehand.runtime.session import Desk

_STATES = frozenset({"enabled", "visible", "showing", "focusable"})


def button(handle: str, name: str, **facts: Any) -> Node:
    """Return a button."""
    return Node(
        handle=handle,
        role="button",
        name=name,
        states=_STATES,
        actions=("click",),
        capabilities=frozenset({"invoke"}),
        **facts,
    )


def field(handle: str, name: str, value: str, **facts: Any) -> Node:
    """Return a text field."""
    return Node(
        handle=handle,
        role="text",
        name=name,
        value=value,
        text_chars=len(value),
        states=_STATES | {"editable"},
        capabilities=frozenset({"set_value", "set_text"}),
        **facts,
    )


class MemoryApp:
    """One window with a flat list of nodes below it, but for those that are `inside` of one before them."""

    backend = "memory"

    def __init__(self, nodes: Sequence[Node], *, name: str = "memory", pid: int = 4242) -> None:
        self.surface = Surface(
            surface_id=f"m-{name}",
            desktop="memory",
            app=AppIdentity(key=f"exe:/opt/{name}", pid=pid, process_generation="1", uid=0, executable=f"/opt/{name}"),
            backend=self.backend,
            toolkit="memory",
            title=name,
            role="window",
            place="window",
            states=_STATES | {"active"},
        )
        self.root = Node(handle="root", role="window", name=name, states=_STATES)
        self.nodes = {node.handle: node for node in nodes}
        self.inside: dict[str, str] = {}
        self.version = 1
        self.effects: list[tuple[str, str, str]] = []
        #: Runs instead of the acting call; returns what the actor reports.
        self.acting: Callable[[Attempt], Dispatched] | None = None
        #: Awaited between the last read and `enter`.
        self.before_enter: Callable[[], None] | None = None
        #: Awaited after `enter`, before the answer.
        self.hold: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.reachable = True
        self._changed = asyncio.Event()
        self._tree: Tree | None = None

    # --- changing it ------------------------------------------------------------------------------------------

    def change(self, handle: str, **facts: Any) -> None:
        """Change facts of a node; its handle stays."""
        self.nodes[handle] = msgspec.structs.replace(self.nodes[handle], **facts)
        self._touch()

    def remove(self, handle: str) -> None:
        """Take a node away."""
        del self.nodes[handle]
        self._touch()

    def add(self, node: Node) -> None:
        """Add a node at the end."""
        self.nodes[node.handle] = node
        self._touch()

    def _touch(self) -> None:
        self.version += 1
        self._tree = None
        self._changed.set()
        self._changed = asyncio.Event()

    def desk(self, **facts: Any) -> Desk:
        """Return a desk with this application alone on it."""
        root = msgspec.structs.replace(self.surface, surface_id="desktop-memory", role="desktop", place="")
        return Desk(name="memory", isolation="isolated", root=root, observers=(self,), actors=(self,), **facts)

    # --- the observer -----------------------------------------------------------------------------------------

    async def surfaces(self, pid: int | None = None) -> tuple[Surface, ...]:
        """Return the one window."""
        return (self.surface,) if self.reachable and pid in (None, self.surface.app.pid) else ()

    def windows(self, surface_id: str) -> tuple[Surface, ...]:
        """Return the one window."""
        return (self.surface,) if surface_id == self.surface.surface_id else ()

    async def read(self, surface_id: str, *, places: bool = True) -> Tree:
        """Return the tree; its places cost nothing."""
        del places
        self._check(surface_id)
        if self._tree is None:
            nodes = (self.root, *self.nodes.values())
            at = {node.handle: place for place, node in enumerate(nodes)}
            parents = (-1, *(at[self.inside.get(handle, "root")] for handle in self.nodes))
            self._tree = Tree(nodes=nodes, parents=parents, version=self.version, trust="events")
        return self._tree

    def _check(self, surface_id: str) -> None:
        if surface_id != self.surface.surface_id:
            raise WindowNotFound("no such window")
        if not self.reachable:
            raise Unavailable("the application does not answer")

    async def changed(self, surface_id: str, after_version: int, timeout_ms: int) -> bool:
        """Wait for a change."""
        self._check(surface_id)
        if self.version > after_version:
            return True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def mark(self, surface_id: str) -> int:
        """Return the version."""
        del surface_id
        return self.version

    async def stirred(self, surface_id: str, mark: int, timeout_ms: int) -> bool:
        """Wait for a change."""
        return await self.changed(surface_id, mark, timeout_ms)

    def busy(self, surface_id: str) -> tuple[int, bool]:
        """Say that it has been quiet for long."""
        self._check(surface_id)
        return 10_000, False

    async def live(
        self, surface_id: str, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> dict[str, LiveNode | None]:
        """Return the nodes as they are."""
        self._check(surface_id)
        return {handle: self._live(handle) for handle in (*handles, *around)}

    async def look(
        self, surface: Surface, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> tuple[tuple[Surface, ...], dict[str, LiveNode | None] | SurehandError]:
        """Return the one window, and the nodes as they are."""
        windows = await self.surfaces(surface.app.pid)
        try:
            return windows, await self.live(surface.surface_id, handles, around=around)
        except SurehandError as error:
            return windows, error

    def _live(self, handle: str) -> LiveNode | None:
        if handle == "root":
            return LiveNode(node=self.root, parent="")
        node = self.nodes.get(handle)
        return None if node is None else LiveNode(node=node, parent=self.inside.get(handle, "root"))

    async def text(self, surface_id: str, handle: str, start: int, end: int) -> TextSlice:
        """Return a node's value."""
        self._check(surface_id)
        live = self._live(handle)
        if live is None:
            raise TargetNotFound("the element is gone")
        whole = live.node.value or ""
        return TextSlice(text=whole[start : None if end < 0 else end], start=start, total_chars=len(whole))

    async def document(self, surface_id: str, handle: str) -> TextSlice:
        """Return a node's value."""
        return await self.text(surface_id, handle, 0, -1)

    async def table(self, surface_id: str, handle: str, row_start: int, rows: int) -> TableSlice | None:
        """Return None: rows are nodes."""
        del handle, row_start, rows
        self._check(surface_id)
        return None

    async def selection(self, surface_id: str, handle: str) -> tuple[int, int] | None:
        """Nothing is ever selected."""
        self._check(surface_id)
        return None if handle not in self.nodes else (0, 0)

    async def equals(self, surface_id: str, handle: str, expected: str) -> bool | None:
        """Compare."""
        self._check(surface_id)
        return self.nodes[handle].value == expected

    async def dead_letters(self) -> tuple[dict[str, Any], ...]:
        """Nobody is silent."""
        return ()

    async def close(self) -> None:
        """Nothing to close."""

    # --- the actor --------------------------------------------------------------------------------------------

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return invoke and set_value."""
        return tuple(
            CapabilityFact(action=kind, target_kind="element", route="memory", background="guarded")
            for kind in ("invoke", "set_value", "toggle")
            if surface.role != "desktop"
        )

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Take invoke, set_value and toggle on elements."""
        known = isinstance(action, Invoke | SetValue | Toggle) and node is not None and surface.role != "desktop"
        return "memory" if known else None

    async def perform(self, attempt: Attempt) -> Dispatched:
        """Do it, once."""
        if attempt.node is None:
            raise TypeError("only elements are routed here")
        live = await self.live(attempt.surface.surface_id, attempt.fence_handles)
        if self.before_enter is not None:
            self.before_enter()
            live = await self.live(attempt.surface.surface_id, attempt.fence_handles)
        attempt.enter(live)
        self.entered.set()
        answer = Dispatched(status="done", route="memory") if self.acting is None else self.acting(attempt)
        if answer.status != "no_effect":
            self._effect(attempt)
        if self.hold is not None:
            await self.hold.wait()
        return answer

    def _effect(self, attempt: Attempt) -> None:
        action, node = attempt.action, attempt.node
        if node is None:
            return
        value = action.value or "" if isinstance(action, SetValue) else ""
        if attempt.secret is not None:
            value = attempt.secret.reveal()
        self.effects.append((kind_of(action), node.handle, value))
        if isinstance(action, SetValue) and node.handle in self.nodes:
            self.change(node.handle, value=value, text_chars=len(value))

    async def release_all(self) -> None:
        """Nothing is held."""
