"""The Observer port for windows whose application is on no accessibility bus (case C43): one element, the window.

Promises: a window is listed here only while its process is not on the accessibility bus, and only after it has had
time to get there; what is said of it is what the window system says, its title being the application's claim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from surehand import limits
from surehand.adapters.x11.screen import X11Screen
from surehand.adapters.x11.windows import Snapshot, WindowInfo
from surehand.errors import SurehandError, TargetNotFound, WindowNotFound
from surehand.model.scene import AppIdentity, LiveNode, Node, Surface, Tree
from surehand.model.tables import TableSlice
from surehand.ports import Clock, TextSlice

_ROLE: Final = "window"
_CAPABILITIES: Final = frozenset({"point"})


class BareWindows:
    """Observes what nobody else can.

    Args:
        screen: The display's windows (open).
        desktop: The desktop's name, put into every surface.
        clock: For how long a window has been there.
        described: Tells the pids of applications that accessibility describes.
        identify: Proves who a process is, from its pid and what its window claims.
    """

    backend = "x11"

    def __init__(
        self,
        screen: X11Screen,
        *,
        desktop: str,
        clock: Clock,
        described: Callable[[], Collection[int]],
        identify: Callable[[int, str], AppIdentity],
    ) -> None:
        self._screen = screen
        self._desktop = desktop
        self._clock = clock
        self._described = described
        self._identify = identify
        # What is there already had its time.
        long_ago = clock.monotonic_ms() - limits.ACCESSIBILITY_JOIN_MS
        self._seen_at = {window.id: long_ago for window in screen.snapshot.windows}
        self._known: dict[str, tuple[Surface, Tree, int]] = {}

    def note(self) -> None:
        """Take note of windows that came or went; cheap enough for every change."""
        now = self._clock.monotonic_ms()
        self._seen_at = {window.id: self._seen_at.get(window.id, now) for window in self._screen.snapshot.windows}

    def knows(self, surface_id: str) -> bool:
        """Return whether a surface is one of these."""
        return surface_id in self._known

    async def surfaces(self, pid: int | None = None) -> tuple[Surface, ...]:
        """Return every such window, or those of one process."""
        found = self._look(await self._screen.refresh())
        return tuple(surface for surface in found if pid in (None, surface.app.pid))

    async def read(self, surface_id: str, *, places: bool = True) -> Tree:
        """Return the window as a tree of one element.

        Raises:
            WindowNotFound: it is gone, or accessibility describes its application now.
        """
        del places  # they come with everything else
        self._look(await self._screen.refresh())
        return self._of(surface_id)[1]

    async def changed(self, surface_id: str, after_version: int, timeout_ms: int) -> bool:
        """Wait until title, place or state of the window changed."""

        def newer(snapshot: Snapshot) -> bool:
            self._look(snapshot)
            return self._of(surface_id)[1].version > after_version

        return await self._screen.wait_for(newer, timeout_ms)

    def mark(self, surface_id: str) -> int:
        """Return the version as last seen."""
        known = self._known.get(surface_id)
        return -1 if known is None else known[1].version

    async def stirred(self, surface_id: str, mark: int, timeout_ms: int) -> bool:
        """Wait until title, place or state of the window changed."""
        return await self.changed(surface_id, mark, timeout_ms)

    def busy(self, surface_id: str) -> tuple[int, bool]:
        """Return milliseconds since the window changed; what goes on inside it nobody knows."""
        return self._clock.monotonic_ms() - self._of(surface_id)[2], False

    async def live(
        self, surface_id: str, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> dict[str, LiveNode | None]:
        """Return the window as it is now."""
        node = (await self.read(surface_id)).nodes[0]
        asked = (*handles, *around)
        return {handle: LiveNode(node=node, parent="") if handle == node.handle else None for handle in asked}

    async def look(
        self, surface: Surface, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> tuple[tuple[Surface, ...], dict[str, LiveNode | None] | SurehandError]:
        """Return the windows of the process, and the window as it is now."""
        windows = await self.surfaces(surface.app.pid)
        try:
            return windows, await self.live(surface.surface_id, handles, around=around)
        except SurehandError as error:
            return windows, error

    def windows(self, surface_id: str) -> tuple[Surface, ...]:
        """Return the windows of a surface's process as last seen."""
        known = self._known.get(surface_id)
        if known is None:
            return ()
        return tuple(surface for surface, _, _ in self._known.values() if surface.app.pid == known[0].app.pid)

    async def text(self, surface_id: str, handle: str, start: int, end: int) -> TextSlice:
        """Refuse: pixels are no text.

        Raises:
            TargetNotFound: always.
        """
        del surface_id, handle, start, end
        raise TargetNotFound("the window gives no text", fix="take a screenshot")

    async def document(self, surface_id: str, handle: str) -> TextSlice:
        """Refuse like `text`."""
        return await self.text(surface_id, handle, 0, -1)

    async def table(self, surface_id: str, handle: str, row_start: int, rows: int) -> TableSlice | None:
        """Return None: pixels are no table."""
        del surface_id, handle, row_start, rows
        return None

    async def selection(self, surface_id: str, handle: str) -> tuple[int, int] | None:
        """Return None: no selection can be read."""
        del surface_id, handle
        return None

    async def equals(self, surface_id: str, handle: str, expected: str) -> bool | None:
        """Return None: no text can be compared."""
        del surface_id, handle, expected
        return None

    async def dead_letters(self) -> tuple[dict[str, Any], ...]:
        """Return nothing: the accessibility observer names these applications."""
        return ()

    async def close(self) -> None:
        """Forget everything; the screen is somebody else's."""
        self._known.clear()
        self._seen_at.clear()

    def _of(self, surface_id: str) -> tuple[Surface, Tree, int]:
        known = self._known.get(surface_id)
        if known is None:
            raise WindowNotFound("no such window", fix="list the surfaces again")
        return known

    def _look(self, snapshot: Snapshot) -> list[Surface]:
        now, described = self._clock.monotonic_ms(), self._described()
        self._seen_at = {window.id: self._seen_at.get(window.id, now) for window in snapshot.windows}
        found: dict[str, tuple[Surface, Tree, int]] = {}
        for window in snapshot.windows:
            waited_ms = now - self._seen_at[window.id]
            if window.pid is None or window.pid in described or waited_ms < limits.ACCESSIBILITY_JOIN_MS:
                continue
            surface = self._surface(window, window.pid)
            found[surface.surface_id] = self._kept(surface, _node(window), now)
        self._known = found
        return [surface for surface, _, _ in found.values()]

    def _kept(self, surface: Surface, node: Node, now: int) -> tuple[Surface, Tree, int]:
        """Return what is known of a window, unchanged as long as it is."""
        before = self._known.get(surface.surface_id)
        if before is not None and before[1].nodes[0] == node:
            return surface, before[1], before[2]
        version = 1 if before is None else before[1].version + 1
        return surface, Tree(nodes=(node,), parents=(-1,), version=version), now

    def _surface(self, window: WindowInfo, pid: int) -> Surface:
        app = self._identify(pid, window.wm_class)
        name = f"{window.id}:{app.process_generation}"
        node = _node(window)
        return Surface(
            surface_id="x" + hashlib.sha256(name.encode()).hexdigest()[:16],
            desktop=self._desktop,
            app=app,
            backend=self.backend,
            toolkit="",
            title=window.title,
            role=_ROLE,
            place=_ROLE,
            bounds=window.bounds,
            states=node.states,
            native_window=window.id,
            handle=node.handle,
        )


def _node(window: WindowInfo) -> Node:
    states = {"enabled", "visible"}
    if window.minimized or not window.viewable:
        states.add("iconified")
    else:
        states.add("showing")
    if window.active or window.focused:
        states.add("active")
    if window.modal:
        states.add("modal")
    return Node(
        handle=f"x11:{window.id}",
        role=_ROLE,
        name=window.title,
        states=frozenset(states),
        capabilities=_CAPABILITIES,
        bounds=window.bounds,
    )
