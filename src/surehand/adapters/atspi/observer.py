"""The Observer port over AT-SPI: surfaces, maintained trees, live reads, texts, and who does not answer.

Promises: before a maintained tree is served, one answer of the application has come over the very connection that
carries its signals, so everything it had signalled is in; a toolkit whose events are incomplete is swept first; an
application that hangs costs its own time-out and nobody else's; a secret's text leaves through none of these methods.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi import calls, content, entries, letters, roles
from surehand.adapters.atspi.bus import Application, Bus
from surehand.adapters.atspi.calls import ROOT_PATH
from surehand.adapters.atspi.geometry import AS_IS, NOWHERE, Placement, WindowModal, WindowOrigin, place_window
from surehand.adapters.atspi.live import LiveReader
from surehand.adapters.atspi.transport import Connection, Failure, Reply
from surehand.adapters.atspi.tree import ApplicationSilent, ApplicationTree
from surehand.errors import SecureSurface, SurehandError, TargetNotFound, Unavailable, WindowNotFound
from surehand.model.scene import LiveNode, Surface, Tree
from surehand.model.tables import TableSlice
from surehand.ports import TextSlice

_DIALOG_ROLES: Final = frozenset(["alert", "dialog"])


class Window(NamedTuple):
    """Where a surface lives."""

    application: Application
    path: str


class AtspiObserver:
    """Observes the applications of one desktop. Call `start` first and `close` at the end.

    Args:
        a11y_bus_address: D-Bus address of the desktop's accessibility bus.
        desktop: The desktop's name, put into every surface.
        window_origin: Asks the window system where a window's content is; without it GTK 4 has no places.
        window_is_modal: Asks it whether a window is modal, for toolkits that do not say it themselves (C05).
        look_around: Brings the answers of these two up to date.
        native_windows: Tells of windows, so that those without accessibility can be named.
        opt_ins: What the host switched on to make this work; for provenance.
    """

    backend = "atspi"

    def __init__(
        self,
        a11y_bus_address: str,
        *,
        desktop: str,
        window_origin: WindowOrigin | None = None,
        window_is_modal: WindowModal | None = None,
        look_around: Callable[[], Awaitable[object]] | None = None,
        native_windows: letters.NativeWindows | None = None,
        opt_ins: tuple[str, ...] = (),
    ) -> None:
        self.desktop = desktop
        self.opt_ins = opt_ins
        self._locate = window_origin
        self._is_modal = window_is_modal
        self._look_around = look_around
        self._native_windows = native_windows
        self._bus = Bus(a11y_bus_address)
        self._windows: dict[str, Window] = {}
        self._layouts_seen: dict[str, int] = {}
        self._placed_at: dict[str, calls.Extents] = {}
        #: Windows in which everything may be somewhere else by now; paid by the next read that is about places.
        self._places_owed: set[str] = set()
        #: Tests set it to 0: then only signals, and not the time after one, make anything be read again.
        self._layout_ms = limits.APP_LAYOUT_MS

    async def start(self) -> None:
        """Connect, register for events, and learn who is there.

        Raises:
            Unavailable: the bus or its registry does not answer (C31).
        """
        await self._bus.start()
        await self._bus.refresh()

    async def close(self) -> None:
        """Let go of every connection."""
        await self._bus.close()

    # --- surfaces ---------------------------------------------------------------------------------------------

    async def surfaces(self, pid: int | None = None) -> tuple[Surface, ...]:
        """Return every showing top-level window of every application that answers, or of the one with this pid."""
        # Those that are known already are asked while the list of applications is on its way.
        tasks = {one: asyncio.create_task(self._surfaces_of(one)) for one in self._answering(pid)}
        try:
            await self._bus.refresh()
            for one in [one for one in self._answering(pid) if one not in tasks]:
                tasks[one] = asyncio.create_task(self._surfaces_of(one))
            if tasks:
                # One that is asked for by itself keeps no other waiting, so it has the time of any call to it.
                patience_ms = limits.APP_PATIENCE_MS if pid is None else limits.APP_CALL_MS_MAX
                await asyncio.wait(tasks.values(), timeout=patience_ms / 1000)
        except BaseException:
            for task in tasks.values():
                task.cancel()
            raise
        found: list[Surface] = []
        for application, task in tasks.items():
            if not task.done():
                application.call_hung()
                task.cancel()
                continue
            with contextlib.suppress(SurehandError):
                listed = task.result()
                if application.owner in self._bus.applications:
                    found.extend(listed)
        return tuple(found)

    def _answering(self, pid: int | None) -> list[Application]:
        return [
            one for one in self._bus.applications.values() if not one.hung and (pid is None or one.identity.pid == pid)
        ]

    async def _surfaces_of(self, application: Application) -> list[Surface]:
        # Asked before the turn is ours: what came before the answer is in either way, and nobody waits twice.
        barrier = self._ask_barrier(application, ROOT_PATH)
        looking = self._start_look()
        async with application.lock:
            await self._answer(application, barrier)
            await looking
            tree = application.tree
            if application.profile.trust != "events":
                tree.doubt(ROOT_PATH, entries.CHILDREN)
                tree.doubt_children(ROOT_PATH, entries.WINDOW_FACTS)
            await self._guard(application, tree.refresh_windows())
            return [self._surface(application, path) for path in self._showing_windows(application)]

    def _showing_windows(self, application: Application) -> list[str]:
        tree = application.tree
        found = [tree.entries[path] for path in tree.entries[ROOT_PATH].children if path in tree.entries]
        showing = [
            entry.path
            for entry in found
            if entry.role not in roles.PASSING_WINDOW_ROLES
            and not entry.failed & entries.CORE
            and entries.is_showing(entry, application.profile, above=True)
        ]
        known = {surface for surface, window in self._windows.items() if window.application is application}
        for path in showing:
            surface = _surface_id(application, path)
            self._windows[surface] = Window(application, path)
            known.discard(surface)
        for surface in known:
            key = application.owner + self._windows.pop(surface).path
            self._layouts_seen.pop(key, None)
            self._placed_at.pop(key, None)
            self._places_owed.discard(key)
        return showing

    def _surface(self, application: Application, path: str) -> Surface:
        placement = self._placement(application, path)
        entry = application.tree.entries[path]
        around = entries.Around(enabled=entries.is_enabled(entry, application.profile, above=True))
        node = entries.node_of(entry, around, owner=application.owner, placement=placement)
        return Surface(
            surface_id=_surface_id(application, path),
            desktop=self.desktop,
            app=application.identity,
            backend=self.backend,
            toolkit=application.toolkit,
            title=entry.name,
            role=node.role,
            place=roles.PLACES.get(entry.toolkit_role, node.role),
            bounds=node.bounds,
            states=node.states,
            handle=node.handle,
        )

    def _start_look(self) -> asyncio.Future[None]:
        """Begin to look at the window system, while the application is asked."""
        return asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        if self._look_around is not None:
            # Nothing can be pointed at on a display that is gone.
            with contextlib.suppress(Unavailable):
                await self._look_around()

    def _placement(self, application: Application, path: str) -> Placement:
        entry = application.tree.entries.get(path)
        relative = application.profile.window_extents
        if entry is None:
            return NOWHERE if relative else AS_IS
        placement = place_window(
            entry.extents,
            window_relative=relative,
            pid=application.identity.pid,
            title=entry.name,
            locate=self._locate,
        )
        if application.profile.unsaid_modal:
            application.tree.know_modal(path, self._says_modal(application, entry))
        if relative:
            return placement
        # Pop-ups have no window of their own title; an application has one scale.
        if placement.scale_milli != AS_IS.scale_milli:
            application.scale_milli = placement.scale_milli
        return Placement(scale_milli=application.scale_milli)

    def _says_modal(self, application: Application, entry: entries.Entry) -> bool:
        if self._is_modal is None or entry.extents is None:
            # Nobody to ask: refusing what stands behind a dialog is safe, pressing it is not.
            return entry.role in _DIALOG_ROLES
        return self._is_modal(application.identity.pid, entry.name, entry.extents[2:])

    # --- trees ------------------------------------------------------------------------------------------------

    async def read(self, surface_id: str, *, places: bool = True) -> Tree:
        """Return the surface's current tree; without `places` the bounds may be those of an earlier read.

        Raises:
            WindowNotFound: the surface is unknown or gone.
            Unavailable: the application hangs or is gone.
            AccessibilityDisabled: it shows no tree.
        """
        window = await self._window(surface_id)
        application = window.application
        await self._wait_for_hung(application)
        barrier = self._ask_barrier(application, window.path)
        # Without places and where the application says itself what is modal, the window system has nothing to add.
        looking = self._start_look() if places or application.profile.needs_windows else None
        async with application.lock:
            return await self._read(application, window.path, barrier, looking, places=places)

    async def _read(
        self,
        application: Application,
        path: str,
        barrier: asyncio.Future[list[Reply]],
        looking: asyncio.Future[None] | None,
        *,
        places: bool,
    ) -> Tree:
        tree = application.tree
        if tree.was_built(path):
            # What is already in doubt is read while the barrier is on its way; what comes before it, after it.
            self._doubt_silent(application, path)
            self._doubt_signalled(application, path)
            if self._is_settling(application):
                self._places_owed.add(application.owner + path)
            if tree.doubted:
                await self._guard(application, tree.refresh(path))
        self._doubt_since(application, path, await self._answer(application, barrier))
        if looking is not None:
            await looking
        await self._refresh(application, path, places=places)
        if path not in tree.entries or path not in tree.entries[ROOT_PATH].children:
            raise WindowNotFound("the window is gone")
        built = tree.build(path, self._placement(application, path))
        if len(built.nodes) == 1 and application.profile.family == "chromium":
            raise letters.without_tree()
        return built

    def _doubt_since(self, application: Application, path: str, now: calls.Extents | None) -> None:
        """Doubt what changed since the last read, by where the window is now and by what was signalled."""
        if application.tree.was_built(path):
            self._doubt_moved(application, path, now)
            self._doubt_signalled(application, path)
            return
        self._layouts_seen[application.owner + path] = application.layouts
        if now is not None:
            self._placed_at[application.owner + path] = now
            # The list of windows may have read its place before the window manager had placed it.
            application.tree.doubt(path, entries.EXTENTS)

    async def _refresh(self, application: Application, path: str, *, places: bool) -> None:
        """Read what is in doubt, and what turns out to be in doubt by that."""
        tree, loop = application.tree, asyncio.get_running_loop()
        while True:
            if places and application.owner + path in self._places_owed:
                self._places_owed.discard(application.owner + path)
                tree.doubt_places(path)
            if tree.doubted:
                await self._guard(application, tree.refresh(path))
                await self._guard(application, tree.refresh_windows())
            if not application.note_moves(loop.time()):
                return
            self._doubt_signalled(application, path)

    @staticmethod
    def _doubt_silent(application: Application, path: str) -> None:
        """Doubt what this toolkit changes without a signal."""
        tree, profile = application.tree, application.profile
        if profile.trust == "read":
            tree.doubt_all()
        elif profile.trust == "swept":
            tree.doubt(ROOT_PATH, entries.CHILDREN)
            tree.doubt_unsignalled(path)
        if profile.unsignalled_values:
            tree.doubt_values(path)

    def _doubt_moved(self, application: Application, path: str, now: calls.Extents | None) -> None:
        """Doubt the places of a window that was moved or resized without a signal.

        What counts is where it was when the places in it were read; the window's own record may be newer, because a
        list of windows brings it up to date and nothing else.
        """
        key = application.owner + path
        if now is not None and self._placed_at.get(key) != now:
            self._placed_at[key] = now
            application.tree.doubt(path, entries.EXTENTS)
            self._places_owed.add(key)

    def _doubt_signalled(self, application: Application, path: str) -> None:
        """Doubt what signals imply beyond the facts they name."""
        tree, profile = application.tree, application.profile
        key = application.owner + path
        if self._layouts_seen.get(key) == application.layouts:
            return
        self._layouts_seen[key] = application.layouts
        if profile.unsignalled_inserts:
            tree.doubt_containers(path)
        if profile.unsignalled_states:
            tree.doubt_states(path)
        if not profile.signals_places:
            self._places_owed.add(key)

    def _is_settling(self, application: Application) -> bool:
        """Return whether places may still change unannounced after the last signal about them."""
        since_ms = (asyncio.get_running_loop().time() - application.layout_at) * 1000
        return since_ms < self._layout_ms

    @staticmethod
    def _ask_barrier(application: Application, path: str) -> asyncio.Future[list[Reply]]:
        """Ask over the bus: when it answers, all that the application signalled before has been taken.

        The answer asked for is the window's extents, which also shows a window that was moved or resized unsignalled.
        """
        channel = application.on_bus
        kind = calls.WINDOW_COORDINATES if application.profile.window_extents else calls.SCREEN_COORDINATES
        return channel.connection.start_many([channel.ask(path, calls.COMPONENT, "GetExtents", "u", kind)])

    @staticmethod
    async def _answer(application: Application, barrier: asyncio.Future[list[Reply]]) -> calls.Extents | None:
        reply = (await barrier)[0]
        if isinstance(reply, Failure) and reply.kind != "refused":
            application.call_hung()
            raise letters.silent(application)
        return calls.extents(reply)

    async def _guard(self, application: Application, reading: Any) -> None:
        try:
            await reading
        except ApplicationSilent as error:
            application.call_hung()
            raise letters.silent(application) from error

    async def _wait_for_hung(self, application: Application) -> None:
        """Give a hung application its own time-out to come back."""
        if application.hung and application.probe is not None:
            await asyncio.wait([application.probe], timeout=limits.APP_CALL_MS_MAX / 1000)
            if application.hung:
                raise letters.silent(application)

    async def _window(self, surface_id: str) -> Window:
        window = self._windows.get(surface_id)
        if window is not None and window.application.owner in self._bus.applications:
            return window
        await self.surfaces()
        window = self._windows.get(surface_id)
        if window is None:
            raise WindowNotFound("no such window", fix="list the surfaces again")
        return window

    async def fresh_read(self, surface_id: str) -> Tree:
        """Return the surface's tree read by direct calls alone, past everything that is maintained.

        For tests and doctor: it must equal what `read` serves but for `version`.
        """
        window = await self._window(surface_id)
        application = window.application
        profile = application.profile._replace(bulk=False)
        tree = ApplicationTree(application.owner, application.channel, profile)
        if profile.unstable_trees:
            tree.expect_items(application.tree)
        await tree.refresh_windows()
        await tree.refresh(window.path)
        placement = self._placement(application, window.path)
        tree.know_modal(window.path, application.tree.entries[window.path].modal)
        return tree.build(window.path, placement)

    async def changed(self, surface_id: str, after_version: int, timeout_ms: int) -> bool:
        """Wait until the surface's tree has a version above `after_version`; false at the time-out."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_ms / 1000
        while True:
            window = await self._window(surface_id)
            application = window.application
            seen = application.signals
            if (await self.read(surface_id, places=False)).version > after_version:
                return True
            left = ends_at - loop.time()
            if left <= 0:
                return False
            # Events are enough where they are complete; elsewhere look again now and then.
            patience = left if application.profile.trust == "events" else min(left, limits.APP_SWEEP_MS / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await application.stir(seen)
                    await asyncio.sleep(min(left, limits.EVENT_COALESCE_MS / 1000))

    def mark(self, surface_id: str) -> int:
        """Return how many signals of the surface's application cast doubt; another number once it is gone."""
        window = self._windows.get(surface_id)
        return -1 if window is None else window.application.signals

    async def stirred(self, surface_id: str, mark: int, timeout_ms: int) -> bool:
        """Wait until the application signals something more; see `ports.Observer`."""
        window = self._windows.get(surface_id)
        if window is None or window.application.owner not in self._bus.applications:
            raise WindowNotFound("no such window", fix="list the surfaces again")
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await window.application.stir(mark)
        except TimeoutError:
            return False
        return True

    def busy(self, surface_id: str) -> tuple[int, bool]:
        """Return milliseconds since the surface's last event, and whether it says it is busy loading."""
        window = self._windows.get(surface_id)
        if window is None:
            raise WindowNotFound("no such window", fix="list the surfaces again")
        since_s = asyncio.get_running_loop().time() - window.application.signal_at.get(window.path, 0.0)
        return int(since_s * 1000), window.application.tree.is_busy(window.path)

    # --- live -------------------------------------------------------------------------------------------------

    async def live(
        self, surface_id: str, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> dict[str, LiveNode | None]:
        """Read these nodes straight from the application in one batch; None where dead. See `ports.Observer`."""
        window = await self._window(surface_id)
        application = window.application
        paths = {handle: application.path_of(handle) for handle in (*handles, *around)}
        whole, others = ([path for one in part if (path := paths[one]) is not None] for part in (handles, around))
        if application.hung:
            raise letters.silent(application)
        channel = application.channel
        # The list of windows, the window system and the nodes are asked at the same time.
        question = channel.ask(ROOT_PATH, calls.ACCESSIBLE, "GetChildren")
        listing = channel.connection.start_many([question], held=True)
        looking = self._start_look()
        try:
            found = await LiveReader(application.tree).read(whole, others)
        except ApplicationSilent as error:
            application.call_hung()
            raise letters.silent(application) from error
        finally:
            await looking
        nodes = found.nodes(self._placement(application, window.path))
        await self._notice_windows(application, calls.references((await listing)[0]))
        return {handle: None if path is None else nodes[path] for handle, path in paths.items()}

    async def look(
        self, surface: Surface, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> tuple[tuple[Surface, ...], dict[str, LiveNode | None] | SurehandError]:
        """Return the windows of a surface's application and these nodes, asked at once. See `ports.Observer`."""
        listing = asyncio.ensure_future(self.surfaces(surface.app.pid))
        found: dict[str, LiveNode | None] | SurehandError
        try:
            await asyncio.sleep(0)  # its questions go first: they take the longer way, over the bus
            found = await self.live(surface.surface_id, handles, around=around)
        except SurehandError as error:
            found = error
        except BaseException:
            listing.cancel()
            raise
        return await listing, found

    async def _notice_windows(self, application: Application, listed: tuple[calls.Ref, ...] | None) -> None:
        """Read a window that came up a moment ago: a dialog may be in the way (C05)."""
        known = application.tree.entries[ROOT_PATH].children
        if listed is None or {path for _, path in listed} <= set(known):
            return
        async with application.lock:
            application.tree.doubt(ROOT_PATH, entries.CHILDREN)
            await self._guard(application, application.tree.refresh_windows())

    def windows(self, surface_id: str) -> tuple[Surface, ...]:
        """Return the windows of a surface's application as known now; asks nobody."""
        window = self._windows.get(surface_id)
        if window is None:
            return ()
        return tuple(self._surface(window.application, path) for path in self._showing_windows(window.application))

    async def text(self, surface_id: str, handle: str, start: int, end: int) -> TextSlice:
        """Read characters `start..end` (end −1: to the end) of an element that is not secret.

        Raises:
            SecureSurface: it is a secret, by what the application says right now.
            TargetNotFound: the element is dead.
            UnsupportedAction: it holds no text.
        """
        application, path = await self._readable(surface_id, handle)
        return await content.read_text(application, path, start, end, limits.TEXT_CHARS_PER_READ_MAX)

    async def document(self, surface_id: str, handle: str) -> TextSlice:
        """Read a text from its beginning, as much as is searched at once. Raises what `text` does."""
        application, path = await self._readable(surface_id, handle)
        return await content.read_text(application, path, 0, -1, limits.DOCUMENT_CHARS_MAX)

    async def table(self, surface_id: str, handle: str, row_start: int, rows: int) -> TableSlice | None:
        """Read rows of a table; see `ports.Observer`. Raises what `text` does."""
        application, path = await self._readable(surface_id, handle)
        entry = application.tree.entries.get(path)
        if entry is None or not content.has_cells(application, entry):
            return None
        return await content.read_table(application, path, row_start, rows)

    async def _readable(self, surface_id: str, handle: str) -> tuple[Application, str]:
        """Return where an element is that lives and is no secret, by what its application says right now."""
        node = (await self.live(surface_id, [handle]))[handle]
        if node is None:
            raise TargetNotFound("the element is gone")
        application = (await self._window(surface_id)).application
        path = application.path_of(handle) or ""
        entry = application.tree.entries.get(path)
        if node.node.secret or (entry is not None and entry.is_password):
            raise SecureSurface("the element holds a secret")
        return application, path

    async def selection(self, surface_id: str, handle: str) -> tuple[int, int] | None:
        """Return an element's selection as (start, length), its caret as length 0; None where it tells neither."""
        application = (await self._window(surface_id)).application
        return await content.read_selection(application, application.path_of(handle) or "")

    async def equals(self, surface_id: str, handle: str, expected: str) -> bool | None:
        """Compare an element's whole text with `expected` here; only the answer leaves. None where it is not given.

        Password fields of most toolkits give bullets or nothing; that is no answer, not a difference.
        """
        application = (await self._window(surface_id)).application
        return await content.same_text(application, application.path_of(handle) or "", expected)

    # --- who does not answer ----------------------------------------------------------------------------------

    async def dead_letters(self) -> tuple[dict[str, Any], ...]:
        """Return applications that are present and do not answer or show no tree, each with its error value."""
        await self._bus.refresh()
        return tuple(letters.dead_letters(self._bus, self._native_windows))

    def pids(self) -> frozenset[int]:
        """Return the processes that are on the accessibility bus, silent ones too."""
        return frozenset(application.identity.pid for application in self._bus.applications.values())

    # --- for acting -------------------------------------------------------------------------------------------

    def application_of(self, surface_id: str) -> Application:
        """Return the application that owns a surface.

        Raises:
            WindowNotFound: the surface is unknown or gone.
        """
        window = self._windows.get(surface_id)
        if window is None or window.application.owner not in self._bus.applications:
            raise WindowNotFound("no such window", fix="list the surfaces again")
        return window.application

    async def way_to_act(self, handle: str) -> tuple[Connection, Callable[[asyncio.Future[list[Reply]]], None]]:
        """Return the connection to act on, and whom to give the question that is sent behind the act.

        Raises:
            TargetNotFound: its application is gone.
        """
        application = self._bus.applications.get(handle.partition("/")[0])
        if application is None:
            raise TargetNotFound("the element's application is gone")
        return await application.way_to_act(), application.acted

    def object_of(self, handle: str) -> tuple[Connection, str, str]:
        """Return the connection, the destination to name on it ("" on an own socket) and the path of an object.

        Raises:
            TargetNotFound: its application is gone.
        """
        owner, slash, rest = handle.partition("/")
        application = self._bus.applications.get(owner)
        if application is None or not slash:
            raise TargetNotFound("the element's application is gone")
        return application.channel.connection, application.channel.destination, slash + rest


def _surface_id(application: Application, path: str) -> str:
    name = f"{application.owner}{path}:{application.identity.process_generation}"
    return "w" + hashlib.sha256(name.encode()).hexdigest()[:16]
