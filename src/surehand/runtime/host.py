"""The host behind the daemon's sockets: channels, and one function per method (spec §11.2).

Guarantees: a method of one socket does not exist on the other; parameters are strict; a channel's session ends with
it, cancelling what was not dispatched and letting go of what is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any, Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest, SurehandError, Unavailable
from surehand.model.events import NewEvent
from surehand.model.record import convert
from surehand.runtime import halting
from surehand.runtime import params as p
from surehand.runtime.agent import AGENT
from surehand.runtime.attending import Attending
from surehand.runtime.control import CONTROL
from surehand.runtime.parts import Parts
from surehand.runtime.posture import posture
from surehand.runtime.pulse import Pulse
from surehand.runtime.session import Session, new_session_id
from surehand.runtime.watching import watch

Progress = Callable[[dict[str, Any]], None]

_SUBSCRIBE: Final = "events.subscribe"
_WATCH: Final = "watch"
_CONSOLE: Final = "console"


class Host:
    """Owner of adapters, keys, journal and policy; see `daemon.facade`."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._listeners: list[Progress] = []
        self._attending = Attending()
        parts.approvals.publish = self._publish
        parts.approvals.approvers.pages = lambda: self._attending.ports
        parts.people.publish = self._publish
        parts.approvals.leave.reviews.publish = self._publish
        parts.publish = self._publish
        parts.people.brakes = parts.brakes
        self._pulse = Pulse(lambda: self._publish("operations.changed", {}), limits.OPERATIONS_TOLD_MS)
        parts.operations.changed = self._pulse
        self._labels = (f"s{number}" for number in itertools.count(1))
        parts.desks.in_use = self._works_on
        parts.desks.stopped = self._stop_pressed
        self._stopping: set[asyncio.Task[Any]] = set()

    async def open_channel(
        self, *, principal: str, role: Literal["agent", "control"], client: dict[str, str], desktop: str | None
    ) -> Session:
        """Return a fresh session on the desktop the client asked for.

        Raises:
            Unavailable, PermissionMissing: there is no such desktop, or it may not be had.
        """
        desk = None if role == "control" else await self.parts.desks.desk(desktop)
        session = Session(
            session_id=new_session_id(),
            principal=principal,
            role=role,
            trust_level=self.parts.config.trust_level,
            authority_mode=self.parts.config.authority,
            desk=desk,
            journal=str(self.parts.describe_journal().get("identity", "")),
            client=client,
            no_desk="" if desk is not None else self.parts.desks.choice(),
            label=next(self._labels),
            brakes=self.parts.brakes,
        )
        self.parts.sessions[session.session_id] = session
        if role == "control":
            self._attend(self._attending.come(session.session_id, client.get("pid", "")))
        await self._note(session, "session.opened.v1", {"role": role, "desktop": "" if desk is None else desk.name})
        return session

    def _attend(self, pids: frozenset[int]) -> None:
        """Keep agents out of the windows that people read and answer in; what they were let read is asked anew."""
        if (pids, self._attending.ports) != (self.parts.facts.attended, self.parts.facts.own_ports):
            self.parts.facts.attend(pids, self._attending.ports)
            for session in self.parts.sessions.values():
                session.read_decisions.clear()

    def _stop_pressed(self, desktop: str) -> None:
        """Stop the agents of a desktop whose person pressed the stop key there."""
        stopping = halting.by_key(self.parts, desktop)
        if stopping is not None:
            task = asyncio.get_running_loop().create_task(stopping)
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _works_on(self, desktop: str) -> bool:
        sessions = self.parts.sessions.values()
        return any(one.desk is not None and one.desk.name == desktop and not one.closed for one in sessions)

    async def call(
        self, channel: Session, method: str, params: dict[str, Any], *, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Run one method.

        Raises:
            InvalidRequest: unknown here, or parameters that are not exactly right.
            SurehandError: what the method raises.
        """
        if channel.closed:
            raise Unavailable("this session has ended", fix="connect again")
        if channel.role == "control" and method == _SUBSCRIBE:
            return await self._subscribe(progress)
        if channel.role == "control" and method == _CONSOLE:
            return self._console(channel, convert(p.Console, params))
        if channel.role == "agent" and method == _WATCH:
            return await watch(self.parts, channel, convert(p.Watch, params), progress)
        table = AGENT if channel.role == "agent" else CONTROL
        entry = table.get(method)
        if entry is None:
            raise InvalidRequest(f"no method is called {method[:64]}", details={"role": channel.role})
        kind, function = entry
        return await function(self.parts, channel, convert(kind, params))

    def _console(self, channel: Session, args: p.Console) -> dict[str, Any]:
        """Keep agents out of a console page, its port and its browsers while its session lives; say the posture."""
        self._attend(self._attending.shows(channel.session_id, args.port, args.pids))
        return posture(self.parts)

    async def _subscribe(self, progress: Progress | None) -> dict[str, Any]:
        """Push what happens until the caller goes."""
        if progress is None:
            raise InvalidRequest("a subscription needs a connection that can be told things")
        self._listeners.append(progress)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._listeners.remove(progress)
        return {}

    def listen(self, listener: Progress) -> None:
        """Have what happens told to a part of this host, as to a person on the control socket."""
        self._listeners.append(listener)

    def _publish(self, kind: str, value: dict[str, Any]) -> None:
        for listener in list(self._listeners):
            listener({"event": kind, **value})

    async def close_channel(self, channel: Session) -> None:
        """End a session: cancel what is not dispatched, wait for what is, let go of what is held."""
        if channel.closed:
            return
        channel.closed = True
        tasks = self.parts.gateway.cancel_session(channel)
        if tasks:
            await asyncio.wait(tasks)
        await self.parts.people.session_ends(channel)
        alone = not any(other.desk is channel.desk and not other.closed for other in self.parts.sessions.values())
        if channel.desk is not None and (channel.holds or alone):
            # Pointer and keyboard are one for all: whatever anybody holds goes, and nothing stays down.
            for actor in channel.desk.actors:
                with contextlib.suppress(SurehandError):
                    await actor.release_all()
        self.parts.sessions.pop(channel.session_id, None)
        if channel.role == "control":
            self._attend(self._attending.go(channel.session_id))
        await self._note(channel, "session.closed.v1", {})

    async def _note(self, session: Session, kind: str, payload: dict[str, Any]) -> None:
        event = NewEvent(stream=f"session:{session.session_id}", type=kind, actor=session.principal, payload=payload)
        with contextlib.suppress(SurehandError):
            # A read-only journal refuses effects; looking is still possible.
            await self.parts.journal.append([event])

    async def close(self) -> None:
        """End every session, then everything else, the journal last."""
        for session in list(self.parts.sessions.values()):
            await self.close_channel(session)
        self._pulse.close()
        await self.parts.people.close()
        if self._stopping:
            await asyncio.wait(self._stopping)
        await self.parts.approvals.close()
        await self.parts.reads.close()
        await self.parts.desks.close()
        with contextlib.suppress(SurehandError):
            stopped = NewEvent(stream="daemon", type="daemon.stopped.v1", actor="daemon", payload={})
            await self.parts.journal.append([stopped])
        for closer in reversed(self.parts.closers):
            await closer()
        await self.parts.journal.close()
