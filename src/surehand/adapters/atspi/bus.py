"""The accessibility bus: which applications are there, who they are, and how each is reached.

Promises: an application that leaves is known at once by the bus's own signal, one that comes as soon as the list is
asked for, and nothing is polled; an application is reached on its own socket where it offers one and the kernel says
that the process at its end is the one that the bus knows; an application that does not answer is `hung` until a probe
that costs nothing comes back, and nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

from surehand import limits
from surehand.adapters.atspi import calls, events, identity
from surehand.adapters.atspi.calls import APPLICATION, ROOT_PATH, Channel
from surehand.adapters.atspi.profile import Profile, profile_of
from surehand.adapters.atspi.transport import (
    BUS_NAME,
    BUS_PATH,
    PEER,
    Call,
    CallError,
    Connection,
    Failure,
    Reply,
    Signal,
    connect,
)
from surehand.adapters.atspi.tree import ApplicationSilent, ApplicationTree
from surehand.errors import AppNotFound, SurehandError, Unavailable
from surehand.model.scene import AppIdentity

_REGISTRY_PATH: Final = "/org/a11y/atspi/registry"
_MATCHES: Final = (
    f"type='signal',interface='{events.OBJECT}'",
    f"type='signal',interface='{events.WINDOW}'",
    f"type='signal',interface='{events.DOCUMENT}'",
    f"type='signal',interface='{calls.CACHE}'",
    f"type='signal',sender='{BUS_NAME}',interface='{BUS_NAME}',member='NameOwnerChanged'",
)


class Application:
    """One application on the bus, with its maintained tree."""

    def __init__(
        self,
        owner: str,
        who: AppIdentity,
        toolkit: str,
        profile: Profile,
        on_bus: Channel,
        own: Connection | None,
        own_again: Callable[[], Awaitable[Connection | None]] | None = None,
    ) -> None:
        self.owner = owner
        self.identity = who
        self.toolkit = toolkit
        self.profile = profile
        #: The way over the bus; signals come this way, so only here does an answer mean that they have arrived.
        self.on_bus = on_bus
        self.own = own
        self._own_again = own_again
        self._acting: Connection | None = None
        self._acted: asyncio.Future[list[Reply]] | None = None
        self.channel = on_bus if own is None else Channel(own, "")
        self.tree = ApplicationTree(owner, self.channel, profile)
        self.lock = asyncio.Lock()
        #: How many signals cast doubt; `stir` waits for the next.
        self.signals = 0
        self._waiting: set[asyncio.Future[None]] = set()
        #: How many signals meant that places may have changed, and when the last one came.
        self.layouts = 0
        self.layout_at = 0.0
        self._moves_seen = 0
        self.signal_at: dict[str, float] = {}
        self.probe: asyncio.Future[Any] | None = None
        #: Device pixels per unit of its own, as its windows showed.
        self.scale_milli = 1000

    @property
    def hung(self) -> bool:
        """Whether it did not answer and has not come back."""
        return self.probe is not None and not self.probe.done()

    def path_of(self, handle: str) -> str | None:
        """Return the path that a handle names, None for one of another application."""
        owner, slash, rest = handle.partition("/")
        return slash + rest if owner == self.owner and slash else None

    def take(self, signal: Signal, now: float) -> None:
        """Let a signal cast its doubts."""
        weight = events.take(signal, self.tree)
        if weight == "nothing":
            return
        if weight == "layout":
            self.layouts += 1
            self.layout_at = now
        window = self.tree.window_of(signal.path)
        if window is not None:
            self.signal_at[window] = now
        self.signals += 1
        self._wake()

    def note_moves(self, now: float) -> bool:
        """Count what was found elsewhere after its first signal as the signal about places that it was."""
        if self._moves_seen == self.tree.moved:
            return False
        self._moves_seen = self.tree.moved
        self.layouts += 1
        self.layout_at = now
        return True

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def stir(self, seen: int) -> None:
        """Return when `signals` is no longer `seen`, or the application is gone."""
        if self.signals == seen:
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)

    def call_hung(self) -> None:
        """Remember that it does not answer; the probe ends when it does, or when it is gone.

        A ping would not do: GTK 4 and Qt answer it on a thread of their own while their main loop is stuck.
        """
        if not self.hung:
            call = self.on_bus.ask(ROOT_PATH, calls.ACCESSIBLE, "GetRole")
            self.probe = self.on_bus.connection.start_many(
                [call], timeout_ms=limits.HUNG_PROBE_MS_MAX, total_ms=limits.HUNG_PROBE_MS_MAX
            )

    async def way_to_act(self) -> Connection:
        """Return the connection on which to act: apart from the one on which we read, where it offers that.

        A GTK 3 handler that shows a dialog and waits for its answer does so in a main loop of its own, within our call;
        until then nothing else on the connection of that call is answered. Reads must go on, or nobody could see the
        dialog and answer it.
        """
        if self.own is None or self._own_again is None:
            return self.channel.connection
        if self._acted is not None and not (self._acted.done() and isinstance(self._acted.result()[0], list)):
            self._leave_acting()
        self._acted = None
        if self._acting is None or self._acting.closed:
            self._acting = await self._own_again()
            if self._acting is None:
                # Where its socket was another program's is now; asking there again could wait for that one.
                self._own_again = None
        return self._acting or self.own

    def act_over(self, connection: Connection | None) -> None:
        """Act over this connection first."""
        self._acting = connection

    def acted(self, behind: asyncio.Future[list[Reply]]) -> None:
        """Remember the question sent behind an act: where it stays unanswered another act takes another connection."""
        self._acted = behind

    def _leave_acting(self) -> None:
        if self._acting is not None:
            self._acting.close()
            self._acting = None

    def close(self) -> None:
        """Let go of its sockets."""
        self.signals += 1
        self._wake()
        self._leave_acting()
        if self.own is not None:
            self.own.close()


class Bus:
    """The bus, its applications, and those that could not be reached.

    Args:
        address: Of the accessibility bus.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._registry = ""
        self._lock = asyncio.Lock()
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._slow: set[str] = set()
        self.applications: dict[str, Application] = {}
        #: Unique names that are listed and could not be looked at, and why.
        self.unreachable: dict[str, SurehandError] = {}

    @property
    def connection(self) -> Connection:
        """The connection to the bus.

        Raises:
            Unavailable: it was lost or never made.
        """
        if self._connection is None or self._connection.closed:
            raise Unavailable(
                "the accessibility bus is not connected",
                fix="check that at-spi-bus-launcher runs in this desktop",
            )
        return self._connection

    async def start(self) -> None:
        """Connect and register for events, first: GTK 3 refuses bulk reads before somebody listens (C41)."""
        self._connection = await connect(self._address, hello=True, on_signal=self._take)
        rules = [Call(BUS_NAME, BUS_PATH, BUS_NAME, "AddMatch", "s", (rule,)) for rule in _MATCHES]
        await self._all_answered(rules)
        # The registry is started by the first call that names it.
        await self._all_answered([Call(calls.REGISTRY, ROOT_PATH, PEER, "Ping")], timeout_ms=limits.APP_READ_MS_MAX)
        self._registry = await self._owner_of(calls.REGISTRY)
        registrations = [
            Call(self._registry, _REGISTRY_PATH, calls.REGISTRY, "RegisterEvent", "sass", (event, [], ""))
            for event in events.REGISTERED_EVENTS
        ]
        await self._all_answered(registrations)

    async def _all_answered(self, wanted: list[Call], timeout_ms: int = limits.APP_CALL_MS_MAX) -> None:
        for call, reply in zip(wanted, await self.connection.call_many(wanted, timeout_ms=timeout_ms), strict=True):
            if isinstance(reply, Failure):
                raise Unavailable(
                    "the accessibility registry does not answer",
                    fix="restart the accessibility bus of this desktop",
                    details={"call": f"{call.interface}.{call.member}", "kind": reply.kind, "dbus_error": reply.name},
                )

    async def _owner_of(self, name: str) -> str:
        return str((await self.connection.call(BUS_NAME, BUS_PATH, BUS_NAME, "GetNameOwner", "s", (name,)))[0])

    # --- signals ----------------------------------------------------------------------------------------------

    def _take(self, signal: Signal) -> None:
        now = asyncio.get_running_loop().time()
        application = self.applications.get(signal.sender)
        if application is not None:
            application.take(signal, now)
        elif signal.sender == BUS_NAME and signal.member == "NameOwnerChanged":
            match signal.body:
                case [str(name), str(), ""]:
                    self._forget(name)

    def _forget(self, owner: str) -> None:
        application = self.applications.pop(owner, None)
        self.unreachable.pop(owner, None)
        self._slow.discard(owner)
        if application is not None:
            application.close()

    # --- applications -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Bring the list of applications up to date with what the registry lists now.

        New applications are looked at side by side; one that is slow is waited for no longer than
        `limits.APP_PATIENCE_MS` and joins when it answers.
        """
        async with self._lock:
            # The registry's answer comes after every signal of its own about the list.
            try:
                reply = await self.connection.call(self._registry, ROOT_PATH, calls.ACCESSIBLE, "GetChildren")
            except CallError as error:
                raise Unavailable(
                    "the accessibility registry of this desktop is gone or does not answer",
                    fix="its display or bus may have ended: `surehand desktop list` says, or start another one",
                    details={"kind": error.failure.kind},
                ) from error
            listed = [name for name, _ in calls.references(reply) or ()][: limits.APPS_MAX]
            for owner in (self.applications.keys() | self.unreachable.keys() | self._slow) - set(listed):
                self._forget(owner)
            for owner in listed:
                if owner not in self.applications and owner not in self._joining:
                    self._joining[owner] = asyncio.create_task(self._join(owner))
        # Whoever kept somebody waiting once keeps nobody waiting again.
        waiting = {owner: task for owner, task in self._joining.items() if owner not in self._slow}
        if waiting:
            await asyncio.wait(waiting.values(), timeout=limits.APP_PATIENCE_MS / 1000)
            self._slow.update(owner for owner, task in waiting.items() if not task.done())

    async def _join(self, owner: str) -> None:
        try:
            application = await self._look_at(owner)
        except AppNotFound:
            self._forget(owner)
        except SurehandError as error:
            self.unreachable[owner] = error
            self._slow.add(owner)
        else:
            self.unreachable.pop(owner, None)
            self._slow.discard(owner)
            self.applications[owner] = application
        finally:
            self._joining.pop(owner, None)

    async def _look_at(self, owner: str) -> Application:
        on_bus = Channel(self.connection, owner)
        replies = await on_bus.call_many(
            [
                on_bus.get(ROOT_PATH, APPLICATION, "ToolkitName"),
                on_bus.get(ROOT_PATH, APPLICATION, "Version"),
                on_bus.get(ROOT_PATH, calls.ACCESSIBLE, "Name"),
                on_bus.ask(ROOT_PATH, APPLICATION, "GetApplicationBusAddress"),
                Call(BUS_NAME, BUS_PATH, BUS_NAME, "GetConnectionUnixProcessID", "s", (owner,)),
            ]
        )
        failures = {reply.kind for reply in replies if isinstance(reply, Failure)}
        if "gone" in failures:
            raise AppNotFound("the application ended")
        if failures - {"refused"}:
            raise ApplicationSilent("the application did not answer in time", details={"application": owner})
        toolkit, version, name, address = (calls.string(reply) or "" for reply in replies[:4])
        bus_pid = calls.integer(replies[4]) or 0
        # A bus in a pid namespace of its own does not see who is at the other end, and says 0.
        pid = identity.host_pid(bus_pid, self.connection.peer_pid) if bus_pid > 0 else None
        own = await self._own_socket(address, pid)
        if own is not None:
            pid = own.peer_pid
        who = identity.identify(pid or 0, name)
        label = " ".join(part for part in (toolkit, version) if part)
        again = functools.partial(self._own_socket, address, pid)
        application = Application(owner, who, label, profile_of(toolkit, version), on_bus, own, again)
        if own is not None:
            # Now, because the name of its socket holds its pid, which in a namespace of its own others have too: the
            # next program takes the name over.
            application.act_over(await again())
        return application

    async def _own_socket(self, address: str, pid: int | None) -> Connection | None:
        """Return the application's own socket, unless the bus vouches for another process than the one at its end.

        An application that names somebody else's socket gains nothing even where the bus does not know: whoever is
        there answers with references to its own name, and all of them are refused.
        """
        if not address:
            return None
        with contextlib.suppress(Unavailable):
            own = await connect(address, hello=False)
            if pid is None or own.peer_pid == pid:
                return own
            own.close()
        return None

    async def close(self) -> None:
        """Let go of every connection."""
        for task in list(self._joining.values()):
            task.cancel()
        await asyncio.gather(*self._joining.values(), return_exceptions=True)
        for application in self.applications.values():
            application.close()
        self.applications.clear()
        if self._connection is not None:
            self._connection.close()
