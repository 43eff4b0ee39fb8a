"""Which desktops this daemon is attached to, and which it started itself.

A desk is opened once and shared by the sessions that ask for it; it is closed when its desktop dies or the daemon
ends. A desktop that somebody uses (`shared`) is attached only where the operator's configuration names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from surehand import limits
from surehand.errors import SurehandError, Unavailable
from surehand.runtime.current import CURRENT, paired_display
from surehand.runtime.desktops import DesktopRecord, IsolatedDesktop, find_desktop, list_desktops
from surehand.runtime.session import Desk

OpenDesk = Callable[[DesktopRecord], Awaitable[Desk]]

FindCurrent = Callable[[], Awaitable[DesktopRecord]]

ISOLATED: Final = "isolated"


async def no_current() -> DesktopRecord:
    """Find no desktop of a person's: none was paired."""
    paired_display((), {})  # raises
    raise Unavailable("no desktop of a person's was paired")


async def launch_in(record: DesktopRecord, argv: Sequence[str]) -> int:
    """Start a program in somebody else's desktop and return its pid."""
    async with await IsolatedDesktop.attach(record) as desktop:
        return await _launched(desktop, argv)


async def _launched(desktop: IsolatedDesktop, argv: Sequence[str]) -> int:
    """Start a program, see that it did not fail at once, and return its pid."""
    app = await desktop.launch(list(argv))
    await app.check_start()
    return app.pid


class Desks:
    """Opens and keeps desks."""

    def __init__(self, open_desk: OpenDesk, find_current: FindCurrent = no_current) -> None:
        self._open_desk = open_desk
        self._find_current = find_current
        self._desks: dict[str, Desk] = {}
        self._owned: dict[str, IsolatedDesktop] = {}
        #: The person's, once it was attached.
        self._shared: tuple[DesktopRecord, ...] = ()
        #: Those that agents asked for, oldest first.
        self._wished: list[str] = []
        #: Called with the name of a desktop where a person pressed the stop key.
        self.stopped: Callable[[str], None] = lambda _: None
        #: Whether a session works on a desktop of this name.
        self.in_use: Callable[[str], bool] = lambda _: True
        self._lock = asyncio.Lock()

    async def desk(self, wish: str | None) -> Desk | None:
        """Return the desk a connection asked for; None where it named none and there is not exactly one.

        Raises:
            PermissionMissing: a desktop that a person uses and that was not paired.
            Unavailable: no such desktop.
        """
        async with self._lock:
            if wish == CURRENT:
                return await self._attach(await self._find_current())
            if wish == ISOLATED:
                await self._make_room()
                record = await self._start(None)
                self._wished.append(record.name)
                return await self._attach(record)
            records = list_desktops()
            if wish is None:
                return await self._attach(records[0]) if len(records) == 1 else None
            return await self._attach(self._found(wish))

    def _found(self, name: str) -> DesktopRecord:
        """Return the running desktop of that name.

        Raises:
            Unavailable: there is none; of one that this daemon started it says why it ended.
        """
        try:
            return find_desktop(name)
        except Unavailable as error:
            owned = self._owned.get(name)
            raise (error if owned is None or owned.is_running else owned.gone()) from error.__cause__

    async def _make_room(self) -> None:
        """Let another desktop start for an agent: each one is a display server that outlives its session.

        The oldest that an agent asked for and that no session works on any more makes room; without one it is refused.
        """
        running = self._owned.keys() & {record.name for record in list_desktops()}
        if len(running) < limits.DESKTOPS_OWNED_MAX:
            return
        left = next((name for name in self._wished if name in running and not self.in_use(name)), None)
        if left is None:
            raise Unavailable(
                f"this daemon runs {len(running)} desktops, which is the limit",
                fix=f"use one of them by name ({', '.join(sorted(running))}), or have the operator stop one",
            )
        await self._stop(left)

    @staticmethod
    def choice() -> str:
        """Return what a client that named no desktop can do."""
        names = [record.name for record in list_desktops()]
        if not names:
            return "start one: surehand desktop start --name work, then surehand desktop launch work -- PROGRAM"
        return f"several desktops run; name one of {', '.join(sorted(names))} with --desktop (or desktop= in Python)"

    async def start(
        self,
        name: str | None,
        geometry: tuple[int, int],
        *,
        binds: Sequence[str] = (),
        writable: Sequence[str] = (),
    ) -> DesktopRecord:
        """Start a desktop that lives as long as the daemon, or until `stop`; `binds` is what its programs may read."""
        async with self._lock:
            return await self._start(name, geometry=geometry, extra_binds=binds, extra_writable=writable)

    async def _start(self, name: str | None, **options: Any) -> DesktopRecord:
        desktop = await IsolatedDesktop.start(name=name, **options)
        self._owned[desktop.name] = desktop
        return find_desktop(desktop.name)

    async def _attach(self, record: DesktopRecord) -> Desk:
        known = self._desks.get(record.name)
        if known is not None and known.generation == record.supervisor_generation:
            return known
        if known is not None:
            await self._drop(record.name)
        desk = await self._open_desk(record)
        if record.name == CURRENT:
            self._shared = (record,)
        # A desktop of the same name after a restart is another desktop.
        desk.generation = record.supervisor_generation
        if desk.on_stop is not None:
            desk.on_stop(lambda: self.stopped(record.name))
        self._desks[record.name] = desk
        return desk

    async def _drop(self, name: str) -> None:
        desk = self._desks.pop(name, None)
        if desk is not None:
            try:
                await desk.close()
            except (SurehandError, OSError):
                # It is gone; there is nothing left to release.
                return

    async def stop(self, name: str) -> None:
        """End a desktop that this daemon started.

        Raises:
            Unavailable: there is none of that name, or somebody else started it.
        """
        async with self._lock:
            await self._stop(name)

    async def _stop(self, name: str) -> None:
        desktop = self._owned.pop(name, None)
        if desktop is None:
            raise Unavailable(
                f"this daemon started no desktop called {name}",
                fix="`surehand desktop list` names what runs; one that a command started ends with that command",
            )
        if name in self._wished:
            self._wished.remove(name)
        await self._drop(name)
        await desktop.close()

    async def launch(self, name: str, argv: tuple[str, ...]) -> int:
        """Start a program in a desktop and return its pid."""
        owned = self._owned.get(name)
        if owned is not None and owned.is_running:
            return await _launched(owned, argv)
        return await launch_in(self._found(name), argv)

    def listed(self) -> list[dict[str, Any]]:
        """Return every desktop of this user that can be named."""
        return [
            {
                "name": record.name,
                "display": record.display,
                "isolation": record.isolation,
                # A person's has as many monitors as it has now; its pictures say how they lie.
                "geometry": [] if record.name == CURRENT else list(record.geometry),
                "attached": record.name in self._desks,
                "owned": record.name in self._owned,
            }
            for record in (*list_desktops(), *self._shared)
        ]

    def attached(self) -> dict[str, Desk]:
        """Return the desks in use."""
        return dict(self._desks)

    async def close(self) -> None:
        """Let go of every desk and end every desktop this daemon started."""
        async with self._lock:
            for name in list(self._desks):
                await self._drop(name)
            for desktop in self._owned.values():
                await desktop.close()
            self._owned.clear()
