"""Requests to people: an agent asks a person to do what it cannot or should not, and waits until it is handed back.

Guarantees:
- From the request on its session does not act; once a person has taken over, no agent of that principal acts on that
  desktop, whatever session it comes with. Whatever is held is let go of.
- Only the control side takes, hands back and declines. An agent may take its request back until a person took over.
- A request is durable before it is shown, and an answer before it is told. The journal keeps who, when and what kind;
  of the words of both sides it keeps length and keyed hash, for they may hold what must not be kept (a code, a name).
- What an agent says is escaped for every face. A person's note is the operator's guidance, in a field of its own.
- A request that nobody takes up ends as unanswered; one that a restart of the daemon lost is recorded and told as lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from surehand import limits
from surehand.core.hashing import Digest
from surehand.core.redaction import redacted
from surehand.core.scene.describe import escape
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError, TooLarge
from surehand.model.events import NewEvent
from surehand.ports import Clock, Journal
from surehand.runtime.brakes import Brakes, Hold, Scope
from surehand.runtime.notices import Notices
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session

Kind = Literal["captcha", "second_factor", "choice", "other"]
Publish = Callable[[str, dict[str, Any]], None]

_ENDED: Final = frozenset({"done", "declined", "unanswered", "withdrawn", "lost"})
#: Event types of a request's stream in which it is still open: a stream that ends in one was lost with its daemon.
_OPEN_EVENTS: Final = ("human.requested.v1", "human.taken.v1")


@dataclass(slots=True)
class Ask:
    """One request. `status` is asking (not on record yet), waiting, taken, or how it ended."""

    request_id: str
    session: Session
    kind: Kind
    reason: str
    requested_at_ms: int
    expires_at_ms: int
    status: str = "asking"
    note: str = ""
    #: A person's answer is on its way to the disk.
    answering: bool = False
    timer: asyncio.TimerHandle | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing becomes of it any more."""
        return self.status in _ENDED

    def told(self) -> dict[str, Any]:
        """Return what the agent is told of it."""
        value: dict[str, Any] = {"request_id": self.request_id, "kind": self.kind, "status": self.status}
        if self.note:
            value["operator_note"] = self.note
        return value

    def shown(self) -> dict[str, Any]:
        """Return what people are shown: the agent's words escaped, so that they stay within their quotes."""
        desk = self.session.desk
        return {
            "request_id": self.request_id,
            "principal": self.session.principal,
            "client": {name: escape(text) for name, text in self.session.client.items()},
            "desktop": "" if desk is None else desk.name,
            "kind": self.kind,
            "status": self.status,
            "agent_says": escape(self.reason),
            "requested_at_ms": self.requested_at_ms,
            "expires_at_ms": self.expires_at_ms,
            "agent_gone": self.session.closed,
        }


class People:
    """Every request to people in this daemon."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        digest: Digest,
        notices: Notices,
        *,
        publish: Publish = lambda _kind, _value: None,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._digest = digest
        self._notices = notices
        self.publish = publish
        #: Set by the host, as is `publish`.
        self.brakes = Brakes()
        self._asks: dict[str, Ask] = {}
        self._ending: set[asyncio.Task[None]] = set()

    # --- the agent's side -------------------------------------------------------------------------------------

    async def ask(self, session: Session, kind: Kind, reason: str) -> Ask:
        """Ask, or find what this session asked with the same words and has not heard the end of.

        Raises:
            Unavailable: the session has no desktop.
            TooLarge: too many are open.
        """
        desk = desk_of(session)
        for one in self._asks.values():
            if one.session is session and (one.kind, one.reason) == (kind, reason):
                return one
        self._check_room(session)
        now = self._clock.wall_ms()
        ask = Ask(secrets.token_hex(8), session, kind, reason, now, now + limits.HUMAN_MS_MAX)
        self._asks[ask.request_id] = ask
        session.waits_for.add(ask.request_id)
        try:
            await self._record(ask, "human.requested.v1", session.principal, kind=kind, reason=reason)
        except BaseException:
            self._end(ask, "withdrawn")
            del self._asks[ask.request_id]
            raise
        if ask.status == "asking":
            ask.status = "waiting"
            ask.timer = asyncio.get_running_loop().call_later(limits.HUMAN_MS_MAX / 1000, self._time_is_over, ask)
            self._tell(ask, "requested")
        for actor in desk.actors if session.holds else ():
            with contextlib.suppress(SurehandError):
                await actor.release_all()
        return ask

    def _check_room(self, session: Session) -> None:
        unheard = [one for one in self._asks.values() if one.session is session and one.ended]
        for one in unheard[: -limits.HUMAN_SESSION_MAX]:
            del self._asks[one.request_id]
        asks = [one for one in self._asks.values() if not one.ended]
        for what, most, count in (
            ("of this session", limits.HUMAN_SESSION_MAX, sum(one.session is session for one in asks)),
            (
                "of this principal",
                limits.HUMAN_PRINCIPAL_MAX,
                sum(one.session.principal == session.principal for one in asks),
            ),
            ("of all agents", limits.HUMAN_OPEN_MAX, len(asks)),
        ):
            if count >= most:
                raise TooLarge(
                    f"{count} requests {what} are open, which is the limit",
                    fix="wait until a person has answered some, or withdraw one",
                )

    async def wait(self, ask: Ask, wait_ms: int) -> None:
        """Wait until the request has ended or the time is over."""
        until = self._clock.monotonic_ms() + wait_ms
        while not ask.ended and (left_ms := until - self._clock.monotonic_ms()) > 0:
            await self._notices.wait(left_ms)

    def heard(self, ask: Ask) -> None:
        """The agent is told of the end; asking with the same words is a new request from now on."""
        if ask.ended:
            self._asks.pop(ask.request_id, None)

    async def withdraw(self, ask: Ask) -> None:
        """Take a request back that no person has taken up.

        Raises:
            AuthorityDenied: a person has; only they hand it back.
        """
        if ask.status == "taken":
            raise AuthorityDenied(
                "a person has taken over, and only they hand it back",
                gate="authority",
                details={"what": "handed_over", "request_id": ask.request_id},
            )
        if not ask.ended:
            self._end(ask, "withdrawn")
            del self._asks[ask.request_id]  # whoever took it back knows
            await self._record(ask, "human.withdrawn.v1", ask.session.principal)

    def find(self, session: Session, request_id: str) -> Ask | None:
        """Return a request of this principal, also of an earlier session: whoever comes back may wait on."""
        ask = self._asks.get(request_id)
        return ask if ask is not None and ask.session.principal == session.principal else None

    async def fate(self, session: Session, request_id: str) -> dict[str, Any]:
        """Return what became of a request of this principal that is not open.

        Raises:
            InvalidRequest: there never was one.
        """
        events = await self._journal.stream(_stream(request_id))
        if not events or events[0].actor != session.principal:
            raise InvalidRequest("no request of yours has that id", details={"request_id": request_id})
        last = events[-1].type.split(".")[1]
        status = {"returned": "done", "requested": "withdrawn"}.get(last, last)
        return {"request_id": request_id, "kind": str(events[0].payload["kind"]), "status": status}

    async def session_ends(self, session: Session) -> None:
        """Withdraw what a session still waits for; what a person has taken stays theirs until they hand it back."""
        for ask in [one for one in self._asks.values() if one.session is session]:
            if ask.status != "taken":
                with contextlib.suppress(SurehandError):
                    await self.withdraw(ask)
                self._asks.pop(ask.request_id, None)

    # --- the control side -------------------------------------------------------------------------------------

    def open(self) -> list[dict[str, Any]]:
        """Return what waits for a person or is with one, oldest first."""
        return [one.shown() for one in self._asks.values() if one.status in {"waiting", "taken"}]

    async def take(self, request_id: str, person: str) -> dict[str, Any]:
        """Take over: no agent of that principal acts on that desktop until it is handed back.

        Raises:
            InvalidRequest: no such open request.
        """
        ask = self._found(request_id)
        if ask.status == "waiting":
            # At once: whatever the agent has in flight stops before the disk is waited for.
            ask.status = "taken"
            self.brakes.on(_hold_of(ask, person, self._clock.wall_ms()))
            if ask.timer is not None:
                ask.timer.cancel()
            await self._record(ask, "human.taken.v1", person)
            self._tell(ask, "taken")
        return ask.shown()

    async def answer(
        self, request_id: str, person: str, answer: Literal["done", "declined"], note: str
    ) -> dict[str, Any]:
        """Hand back, or decline; durable before the agent is told.

        Raises:
            InvalidRequest: no such open request.
        """
        ask = self._found(request_id)
        kind = "human.returned.v1" if answer == "done" else "human.declined.v1"
        ask.answering = True
        try:
            await self._record(ask, kind, person, note=note)
        finally:
            ask.answering = False
        if not ask.ended:
            ask.note = note
            self._end(ask, answer)
            if ask.session.closed:
                del self._asks[request_id]  # nobody is there to hear it
        return ask.shown()

    def _found(self, request_id: str) -> Ask:
        ask = self._asks.get(request_id)
        if ask is None or ask.answering or ask.status not in {"waiting", "taken"}:
            raise InvalidRequest(
                "no such open request", fix="`surehand requests list` shows them", details={"request_id": request_id}
            )
        return ask

    # --- both ---------------------------------------------------------------------------------------------------

    def _end(self, ask: Ask, status: str) -> None:
        """Let the agent act again; what happened on the screen meanwhile its next look shows."""
        ask.status = status
        ask.session.waits_for.discard(ask.request_id)
        self.brakes.off(ask.request_id)
        if ask.timer is not None:
            ask.timer.cancel()
        self._tell(ask, status)

    def _tell(self, ask: Ask, what: str) -> None:
        self._notices.tell(ask.session.session_id, {"human": ask.told()})
        self.publish(f"human.{what}", ask.shown())

    def _time_is_over(self, ask: Ask) -> None:
        if ask.status == "waiting" and not ask.answering:
            self._end(ask, "unanswered")
            task = asyncio.get_running_loop().create_task(self._note_unanswered(ask))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _note_unanswered(self, ask: Ask) -> None:
        with contextlib.suppress(SurehandError):
            await self._record(ask, "human.unanswered.v1", "daemon")

    async def _record(self, ask: Ask, event: str, actor: str, **facts: str) -> None:
        payload: dict[str, Any] = {
            name: redacted(text, self._digest) if name in {"reason", "note"} else text for name, text in facts.items()
        }
        context = {"session": ask.session.session_id}
        await self._journal.append(
            [NewEvent(stream=_stream(ask.request_id), type=event, actor=actor, payload=payload, context=context)]
        )

    async def restore(self) -> None:
        """Record as lost what an earlier run left open: nobody is asked any more, and no hand-over holds."""
        for event in _OPEN_EVENTS:
            while streams := await self._journal.streams_ending(event, limit=limits.APPEND_EVENTS_MAX):
                await self._journal.append(
                    [NewEvent(stream=one, type="human.lost.v1", actor="daemon", payload={}) for one in streams]
                )

    async def close(self) -> None:
        """Let nothing run on."""
        for ask in self._asks.values():
            if ask.timer is not None:
                ask.timer.cancel()
        if self._ending:
            await asyncio.wait(self._ending)


def _hold_of(ask: Ask, person: str, now_ms: int) -> Hold:
    scope = Scope(desktop=ask.session.desktop, principal=ask.session.principal)
    return Hold(hold_id=ask.request_id, what="handed_over", scope=scope, by=person, since_ms=now_ms)


def _stream(request_id: str) -> str:
    return f"human:{request_id}"
