"""The asynchronous face of the SQLite journal: implements `ports.Journal`.

Guarantees:
- An append that returned is durable. One that raised `Conflict`, `PermitInvalid`, `InvalidRequest`, `TooLarge` or
  `Unavailable` wrote nothing. One that raised `CommitUnknown`, or whose caller was cancelled, may have written.
- Appends of concurrent callers share commits; a refused one leaves the others alone; waiting ones are bounded.
- The first sign of damage makes the journal read-only: every append raises `JournalRecovery` with the fix, reads of
  records that are whole go on.
- One process holds the file for writing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar

import msgspec

from surehand import limits
from surehand.adapters.journal_sqlite import files
from surehand.adapters.journal_sqlite.reading import Reader
from surehand.adapters.journal_sqlite.room import Room
from surehand.adapters.journal_sqlite.sieve import Sieve
from surehand.adapters.journal_sqlite.store import Answer, Store, Work
from surehand.adapters.journal_sqlite.verifying import Verification, verify
from surehand.core import chain
from surehand.errors import CommitUnknown, JournalRecovery, SurehandError, Unavailable
from surehand.model.events import Event, NewEvent
from surehand.ports import Clock
from surehand.signing.private_files import create_private, private_directory

#: What the plain tier does not give; doctor and the start of the daemon say it (spec §7).
PLAIN_LACKS: Final = (
    "payloads are readable by whoever can read the file",
    "whoever can write the file can rewrite the whole chain, or drop its end, unseen",
)


P = ParamSpec("P")
T = TypeVar("T")


class _Item(msgspec.Struct, frozen=True):
    work: Work
    size: int
    future: asyncio.Future[list[Event]]
    loop: asyncio.AbstractEventLoop


def _identity(path: Path) -> str:
    """Return a name that this file has and no other that is there: which file it is, not what it is called."""
    found = path.stat()
    return hashlib.sha256(f"surehand/journal\0{found.st_dev}:{found.st_ino}".encode()).hexdigest()[:32]


class SqliteJournal:
    """A journal in one SQLite file, made by `open`."""

    durable: Final = True

    def __init__(
        self,
        path: Path,
        lease: files.Lease,
        store: Store,
        readers: tuple[Reader, Reader],
        verification: Verification,
    ) -> None:
        self._path = path
        self._identity = _identity(path)
        self._lease = lease
        self._store = store
        self._inline, self._background = readers
        self._verification = verification
        self._fault = verification.fault
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._room = Room(limits.COMMIT_QUEUE_MAX, limits.COMMIT_QUEUE_BYTES_MAX)
        #: The last append that waits for each stream.
        self._waiting: dict[str, asyncio.Future[list[Event]]] = {}
        self._sieve = self._watch(_sieve_of, self._inline)
        self._closing = False
        #: Groups that have ended, with their answers; the writer's alone.
        self._ended: list[tuple[list[_Item], list[Answer]]] = []
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="journal-reader")
        self._thread = threading.Thread(target=self._write, name="journal-writer", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        randomness: Callable[[int], bytes] = os.urandom,
        mode: Literal["auto", "full", "tail"] = "auto",
        vfs: str | None = None,
    ) -> SqliteJournal:
        """Open a journal, making it where there is none; verifies it, so call it before the loop has work to do.

        Args:
            path: The file; its directory must be ours alone and is made where missing.
            clock: For the times of events.
            randomness: For event ids.
            mode: `full` verifies the whole log, `tail` its end, `auto` chooses by length.
            vfs: The name of another SQLite file layer, for fault injection.

        Raises:
            PermissionMissing: owner, mode or kind of a file is wrong; names the fix.
            Unavailable: another process has it (names the pid), or the disk refuses.
            JournalRecovery: the file is no journal of this format and tier; nothing was written.
                A journal that fails verification does not raise here: it opens read-only, see `recovery`.
        """
        path, lease = files.prepare(path, vfs=vfs)
        connections = []
        try:
            files.check_size(path)
            for write in (True, False, False):
                connections.append(files.connect(path, write=write, vfs=vfs))
                files.check_marks(path, connections[-1])
            verification = verify(path, connections[1], mode)
            store = Store(path, connections[0], verification.head, clock=clock, randomness=randomness)
            readers = (Reader(path, connections[1]), Reader(path, connections[2]))
        except BaseException:
            for connection in reversed(connections):
                connection.close()
            lease.release()
            raise
        return cls(path, lease, store, readers, verification)

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def recovery(self) -> JournalRecovery | None:
        """Return why the journal is read-only, or None."""
        return self._fault

    def facts(self) -> dict[str, Any]:
        """Return what doctor says of the journal."""
        verified = self._verification
        return {
            "kind": "sqlite",
            "path": str(self._path),
            "identity": self._identity,
            "tier": files.TIER,
            "lacks": list(PLAIN_LACKS),
            "events": self._store.head.seq,
            "verified": {"path": verified.path, "events": verified.events, "ms": verified.ms},
            "read_only": None if self._fault is None else self._fault.to_value(),
        }

    # --- appending ----------------------------------------------------------------------------------------------

    async def append(self, events: Sequence[NewEvent]) -> list[Event]:
        """Append all events in one transaction, in order; see `ports.Journal.append`."""
        return await self.consume({}, events)

    async def consume(self, keys: Mapping[str, int], events: Sequence[NewEvent]) -> list[Event]:
        """Append and count one use of every key; see `ports.Journal.consume`.

        The events that are returned carry the caller's own payload dictionaries.
        """
        self._check_writable()
        chain.check_uses(keys, events)
        drafts = chain.drafts(events)
        if not drafts:
            return []
        size = sum(len(new.payload) + len(new.context) for new in drafts)
        if not self._room.enter_now(size):
            await self._enter(size)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Event]] = loop.create_future()
        for new in drafts:
            self._note(new.event.stream, future)
        self._queue.put(_Item(Work(drafts, dict(keys)), size, future, loop))
        return await future

    async def _enter(self, size: int) -> None:
        """Wait for room, in which time the journal may have been closed."""
        await self._room.enter(size)
        try:
            self._check_writable()
        except SurehandError:
            self._room.leave(size)
            raise

    def _note(self, stream: str, future: asyncio.Future[list[Event]]) -> None:
        """Make the stream known before anything of it is written."""
        if self._sieve is not None and stream not in self._waiting and stream not in self._store.ends:
            self._sieve.add(stream)
        self._waiting[stream] = future

    def known(self, stream: str) -> bool:
        """Return whether the stream has any event committed or waiting."""
        if self._sieve is not None and not self._sieve.may_hold(stream):
            return False
        return stream in self._waiting or stream in self._store.ends or self._watch(self._inline.version, stream) > 0

    # --- reading ------------------------------------------------------------------------------------------------

    async def stream(self, stream: str, *, after_version: int = 0, limit: int = 1000) -> list[Event]:
        """Return a page of one stream; only an empty page is the end. See `ports.Journal.stream`."""
        first = min(limit, limits.JOURNAL_INLINE_EVENTS)
        events = self._watch(self._inline.stream, stream, after_version, first)
        if len(events) < first or first == limit:
            return events
        rest = await self._read(self._background.stream, stream, events[-1].stream_version, limit - first)
        return events + rest

    async def read(self, *, after_seq: int = 0, limit: int = 1000) -> list[Event]:
        """Return a page of the whole log; only an empty page is the end. See `ports.Journal.read`."""
        return await self._read(self._background.log, after_seq, limit, self._store.head.seq)

    async def streams_ending(self, event_type: str, *, limit: int = 1000) -> list[str]:
        """Return streams that end in this type, oldest first; an open claim counts as the end of its stream."""
        return await self._read(self._background.streams_ending, event_type, limit)

    async def latest(self, prefix: str, *, before_seq: int | None = None, limit: int = 100) -> list[tuple[str, int]]:
        """Return streams whose names begin so with the number of their last event, newest first."""
        before = self._store.head.seq + 1 if before_seq is None else before_seq
        return await self._read(self._background.latest, prefix, before, limit)

    async def uses(self, key: str) -> int:
        """Return how often a key was consumed."""
        return self._watch(self._inline.uses, key)

    async def head(self) -> tuple[int, str]:
        """Return the last sequence number and record hash."""
        return self._store.head

    async def copy_to(self, target: Path) -> None:
        """Write a closed copy of what is committed, for the auditor; appends go on meanwhile.

        Raises:
            Unavailable: something is at `target` already, or the disk refuses.
        """
        target = private_directory(target.parent) / target.name
        if not create_private(target, b""):
            raise Unavailable(f"{target} exists", fix="name a file that does not")
        await self._read(self._background.copy_to, target)

    async def close(self) -> None:
        """Write what waits, then close the file and let another process have it."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._shut)

    def _shut(self) -> None:
        self._thread.join()
        self._pool.shutdown()
        # The writer's connection is the last, so that closing it moves the write-ahead log into the file.
        self._inline.close()
        self._background.close()
        self._store.close()
        self._lease.release()

    # --- inside -------------------------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if self._fault is not None:
            raise _read_only(self._fault)
        if self._closing:
            raise Unavailable("the journal is closed")

    def _watch(self, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return read(*arguments, **named)
        except JournalRecovery as error:
            self._fault = self._fault or error
            raise

    async def _read(self, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self._watch(read, *arguments, **named))

    def _write(self) -> None:
        """Run the writer's thread: gather what waits, commit it together, answer in one call to the loop.

        Where more waits already, a group is answered when the next one is about to be committed: so the loop works
        on the answers while the disk works on the commit.
        """
        while group := self._gather():
            self._ended.append((group, self._commit([item.work for item in group])))
            if self._queue.empty():
                self._answer_ended()
        self._answer_ended()

    def _gather(self) -> list[_Item]:
        """Wait for an append and take those behind it that one commit holds; nothing at the end."""
        group: list[_Item] = []
        size = 0
        with contextlib.suppress(queue.Empty):
            while (item := self._queue.get(block=not group)) is not None:
                group.append(item)
                size += item.size
                if len(group) == limits.COMMIT_GROUP_MAX or size >= limits.COMMIT_GROUP_BYTES_MAX:
                    return group
            if group:
                self._queue.put(None)  # the end comes after this group
        return group

    def _commit(self, group: list[Work]) -> list[Answer]:
        fault: SurehandError
        if self._fault is not None:
            return [_read_only(self._fault) for _ in group]
        try:
            return self._store.commit(group, self._answer_ended)
        except JournalRecovery as error:
            fault = self._fault = error
        except SurehandError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 the writer must outlive any defect and answer everybody who waits
            fault = self._fault = CommitUnknown(f"the journal's writer met a defect: {error!r}")
        return [_again(fault) for _ in group]

    def _answer_ended(self) -> None:
        """Answer every group that has ended and was not answered yet."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Item, Answer]]] = {}
        for group, answers in self._ended:
            for item, answer in zip(group, answers, strict=True):
                by_loop.setdefault(item.loop, []).append((item, answer))
        self._ended.clear()
        for loop, pairs in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed, and with it everybody who waited
                loop.call_soon_threadsafe(self._settle, pairs)

    def _settle(self, pairs: list[tuple[_Item, Answer]]) -> None:
        for item, answer in pairs:
            self._room.leave(item.size)
            for new in item.work.drafts:
                if self._waiting.get(new.event.stream) is item.future:
                    del self._waiting[new.event.stream]
            if item.future.done():
                continue  # its caller was cancelled
            if isinstance(answer, SurehandError):
                item.future.set_exception(answer)
            else:
                item.future.set_result(answer)


def _sieve_of(reader: Reader) -> Sieve | None:
    """Return the sieve of all streams; None for a journal of so many that filling it would delay the start."""
    names = reader.stream_names(limits.SIEVE_STREAMS_MAX + 1)
    return Sieve(names) if len(names) <= limits.SIEVE_STREAMS_MAX else None


def _read_only(fault: JournalRecovery) -> JournalRecovery:
    """Return the error of an append that came after the fault: of it nothing was written."""
    return JournalRecovery(fault.message, fix=fault.fix, details=dict(fault.details))


def _again(error: SurehandError) -> SurehandError:
    """Return an equal error: one object raised at many callers would gather all their tracebacks."""
    return type(error)(
        error.message,
        code=error.code,
        fix=error.fix,
        gate=error.gate,
        details=dict(error.details),
        observed=dict(error.observed),
        retry_safe=error.retry_safe,
    )
