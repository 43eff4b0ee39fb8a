"""Delivers checked units of input on one display, and takes everything back.

Promises: a unit is checked and sent under one server grab; the final fence runs under the grab of the first unit,
after its checks and before its first event; the grab ends within `limits.GRAB_GATE_MS_MAX` even when the event loop
is busy; nothing is pressed that the guard was not told of; what a delivery pressed is released however it ends, a
leased button after `limits.HOLD_MS_MAX`; a lent keycode is given back only after every application that was sent it
has read it, so that a slow one never reads something else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from surehand import limits
from surehand.adapters.x11.acknowledge import Acknowledgements
from surehand.adapters.x11.connection import XServer, XThread
from surehand.adapters.x11.fence import Fence
from surehand.adapters.x11.input import Injector
from surehand.adapters.x11.keyboard import Note
from surehand.adapters.x11.windows import WindowInfo
from surehand.core.input.ledger import Held
from surehand.errors import SurehandError, Timeout, Unavailable
from surehand.model.scene import LiveNode
from surehand.ports import Attempt, Dispatched

_PAUSE_S: Final = 0.001

T = TypeVar("T")
Live = Mapping[str, LiveNode | None]
#: Checks one unit and returns what sends it; None when keycodes must be given back before. Runs on the X thread with
#: the server grabbed.
Unit = Callable[[], Callable[[], None] | None]
#: Reads what the final fence compares, when the delivery's turn has come; may refuse.
ReadLive = Callable[[], Awaitable[Live]]


class _Line:
    """The line between nothing and an effect, crossed once. Used on the event loop."""

    def __init__(self, attempt: Attempt, live: Live) -> None:
        self.attempt = attempt
        self._live = live
        self.crossed = False

    def cross(self) -> None:
        self.attempt.enter(self._live)
        self.crossed = True


class Delivery:
    """One display's input connection. Methods run on the event loop; units run on the X thread.

    Args:
        display: Such as `:95`.
        xauthority: Path of the authority file, or None.
        note: Takes the guard's notes; raises when there is no guard.
    """

    def __init__(self, display: str, xauthority: str | None, note: Note) -> None:
        self._note = note
        self._thread = XThread(display, xauthority, "input")
        self._acknowledgements = Acknowledgements(self._thread)
        self._injector: Injector | None = None
        self._fence: Fence | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._leases: dict[Held, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        #: Windows that were sent lent keycodes and have not shown yet that they read them.
        self._reading: dict[int, WindowInfo] = {}

    async def open(self) -> None:
        """Connect.

        Raises:
            Unavailable: no X server, or one without XTEST, XKB or XRes.
        """
        self._loop = asyncio.get_running_loop()
        await self._thread.open()
        await self._thread.run(self._start)

    async def close(self) -> None:
        """Let everything go and disconnect."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(Unavailable):  # a server that is gone holds nothing
            await self.release_all()
            await self._thread.run(lambda _: self.injector.keyboard.give_back())
        await self._thread.close()

    @property
    def injector(self) -> Injector:
        """Keys, buttons, motion: for units only."""
        if self._injector is None:
            raise Unavailable("the input connection is not open", fix="await open() first")
        return self._injector

    @property
    def fence(self) -> Fence:
        """The checks: for units only."""
        if self._fence is None:
            raise Unavailable("the input connection is not open", fix="await open() first")
        return self._fence

    async def ask(self, question: Callable[[XServer], T]) -> T:
        """Run something that sends no input on the X thread."""
        return await self._thread.run(question)

    async def deliver(
        self,
        attempt: Attempt,
        window: WindowInfo,
        read_live: ReadLive,
        units: Sequence[Unit],
        route: str,
        *,
        pointer: bool = False,
        paced: bool = False,
    ) -> Dispatched:
        """Send the units in order, each checked.

        With `pointer` each one only after the server passed the last on, with `paced` also after the application took
        it in. Those of a secret only after that, and after `read_live` found the element as it has to be.

        Returns:
            `done` when the application took everything in, `sent` when it did not in time, `unknown` when a check
            failed after the first unit. `output` has `delivered` and `units`.

        Raises:
            SurehandError: before anything was sent. Whatever `attempt` raises passes.
        """
        async with self._turn:
            try:
                # Read in turn, and before the server is grabbed: an application may need the server to answer.
                line = _Line(attempt, await read_live())
                return await self._deliver(line, window, read_live, units, route, pointer=pointer, paced=paced)
            finally:
                await asyncio.shield(self._let_go())

    async def once(self, attempt: Attempt, check: Callable[[], None], send: Callable[[XServer], None]) -> None:
        """Check, cross the line and send one thing that presses nothing."""

        def job(server: XServer) -> None:
            with server.grabbed():
                server.drain()
                check()
                self._on_loop(lambda: attempt.enter({}))
                send(server)
                server.sync()

        await self._thread.run(job)

    async def release_all(self) -> None:
        """Let go of everything held, leases included."""
        for timer in self._leases.values():
            timer.cancel()
        self._leases.clear()
        await self._thread.run(lambda _: self.injector.release_all())

    async def end_lease(self, held: Held, place: tuple[int, int] | None) -> None:
        """Release a leased button, at `place` when given."""

        def release(server: XServer) -> None:
            if place is not None:
                self.injector.move(*place)
            self.injector.release(held)
            server.sync()

        if (timer := self._leases.pop(held, None)) is not None:
            timer.cancel()
        await self._thread.run(release)

    def lease(self, held: Held) -> None:
        """Keep a button down beyond its delivery, for a minute at most. For units only."""
        self._require_loop().call_soon_threadsafe(self._start_lease, held)

    def leased(self, held: Held) -> bool:
        """Return whether a button is held by a lease."""
        return held in self._leases

    def end_all_leases(self) -> None:
        """Release leased buttons soon (the person acts, or their time is over)."""
        if self._leases:
            self._later(self.release_all())

    # --- inside ---------------------------------------------------------------------------------------------

    def _start(self, server: XServer) -> None:
        injector, fence = Injector(server, self._note), Fence(server)
        self._acknowledgements.start(server, self._require_loop())

        def handle(event: Any) -> None:
            injector.handle(event)
            fence.handle(event)
            self._acknowledgements.handle(event)

        server.handler = handle
        self._injector, self._fence = injector, fence

    async def _deliver(
        self,
        line: _Line,
        window: WindowInfo,
        read_live: ReadLive,
        units: Sequence[Unit],
        route: str,
        *,
        pointer: bool,
        paced: bool,
    ) -> Dispatched:
        through = True
        for index, unit in enumerate(units):
            line.attempt.checkpoint(index)
            try:
                if index and line.attempt.secret is not None:
                    await self._look_again(window, read_live)
                await self._one(line, window, unit)
            except SurehandError as error:
                if not line.crossed:
                    raise
                return Dispatched(
                    status="unknown",
                    route=route,
                    detail=f"{index} of {len(units)} units were delivered, then: {error.message}",
                    output={"delivered": index, "units": len(units), "error": error.to_value()},
                )
            if pointer:
                through = await self._pointer_is_through()
            if paced:
                await self._acknowledgements.wait(window, limits.APP_CALL_MS_MAX)
        taken = through and await self._acknowledgements.wait(window, limits.APP_CALL_MS_MAX)
        if taken:
            self._reading.pop(window.id, None)
        output = {"delivered": len(units), "units": len(units)}
        return Dispatched(status="done" if taken else "sent", route=route, output=output)

    async def _look_again(self, window: WindowInfo, read_live: ReadLive) -> None:
        """Ask before more of a secret goes out: an application may move the keyboard on as it reads what came so far.

        Raises:
            SurehandError: the keyboard is elsewhere, or nobody knows.
        """
        if not await self._acknowledgements.wait(window, limits.APP_CALL_MS_MAX):
            raise Timeout("the application has not read the keys it was sent", fix="wait until it answers")
        await read_live()

    async def _one(self, line: _Line, window: WindowInfo, unit: Unit) -> None:
        def job(server: XServer) -> bool:
            with server.grabbed():
                server.drain()
                send = unit()
                if send is None:
                    return False
                if not line.crossed:
                    self.injector.require_guard()
                    self._on_loop(line.cross)
                send()
                server.sync()
            return True

        while not await self._thread.run(job):
            if not await self._all_read():
                raise Timeout("an application has not read the keys it was sent", fix="wait until it answers")
            await self._thread.run(lambda _: self.injector.keyboard.give_back())
        if self.injector.keyboard.lent:
            self._reading[window.id] = window

    async def _pointer_is_through(self) -> bool:
        loop = self._require_loop()
        until = loop.time() + limits.APP_CALL_MS_MAX / 1000
        while not await self._thread.run(lambda _: self.injector.pointer_is_through()):
            if loop.time() >= until:
                return False
            await asyncio.sleep(_PAUSE_S)  # the server has no event for it
        return True

    def _on_loop(self, call: Callable[[], None]) -> None:
        """Run `call` on the event loop and wait for it, but not for ever: the server is grabbed meanwhile."""
        future: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - handed over to the X thread
                future.set_exception(error)
            else:
                future.set_result(None)

        self._require_loop().call_soon_threadsafe(run)
        try:
            future.result(limits.GRAB_GATE_MS_MAX / 1000)
        except concurrent.futures.TimeoutError:
            if future.cancel():
                raise Timeout("the daemon was too busy to send input safely", fix="try again") from None
            future.result()

    async def _let_go(self) -> None:
        """Release what was pressed, and give keycodes back now or as soon as they have been read."""
        keep = tuple(self._leases)
        try:
            await self._thread.run(lambda _: self.injector.release_all(keep))
            if self.injector.keyboard.lent:
                if self._reading:
                    self._later(self._give_back_when_read())
                else:
                    await self._thread.run(lambda _: self.injector.keyboard.give_back())
        except Unavailable:
            return  # a server that is gone holds nothing

    async def _all_read(self) -> bool:
        for key, window in list(self._reading.items()):
            if await self._acknowledgements.wait(window, limits.KEYMAP_SETTLE_MS_MAX):
                self._reading.pop(key, None)
        return not self._reading

    async def _give_back_when_read(self) -> None:
        loop = self._require_loop()
        until = loop.time() + limits.LENT_MS_MAX / 1000
        while self.injector.keyboard.lent:
            patient = not await self._all_read() and loop.time() < until
            if patient:
                continue  # each round has waited for the applications
            async with self._turn:
                # A delivery in between may have lent more.
                if not self._reading or loop.time() >= until:
                    self._reading.clear()
                    await self._thread.run(lambda _: self.injector.keyboard.give_back())

    def _start_lease(self, held: Held) -> None:
        loop = self._require_loop()
        self._leases[held] = loop.call_later(limits.HOLD_MS_MAX / 1000, self.end_all_leases)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(SurehandError):  # a server that is gone holds nothing
                await work

        task = self._require_loop().create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _require_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise Unavailable("the input connection is not open", fix="await open() first")
        return self._loop
