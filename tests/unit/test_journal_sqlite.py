"""The SQLite journal's own matters: its files, its lease, its refusals, and what it does when the disk fails."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap

import apsw
import pytest

from surehand import limits
from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.adapters.journal_sqlite.room import Room
from surehand.core import chain
from surehand.errors import CommitUnknown, JournalRecovery, PermissionMissing, SurehandError, Unavailable
from surehand.model.events import NewEvent
from tests.journal_kit import SettableClock, claim, fill, filled, note, open_journal, tamper, terminal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "journal.db"


# --- files ------------------------------------------------------------------------------------------------------------


async def test_every_file_is_ours_alone(path):
    journal = open_journal(path)
    await journal.append([note()])
    names = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    assert names == {f"journal.db{end}": 0o600 for end in ("", "-wal", "-shm", ".lock")}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await journal.close()
    assert {entry.name for entry in path.parent.iterdir()} == {"journal.db", "journal.db.lock"}


async def test_what_was_written_is_there_after_reopening_and_the_chain_goes_on(path):
    await fill(path)
    journal = open_journal(path)
    assert journal.recovery is None
    head = await journal.head()
    assert head[0] == 8
    (event,) = await journal.append([note()])
    assert (event.seq, event.prev_hash) == (9, head[1])
    assert await journal.uses("standing/g1") == 3
    assert journal.known("operation:agent:op-1")
    await journal.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
@pytest.mark.parametrize("damage", ["link", "mode", "owner", "folder"])
async def test_a_file_that_is_not_ours_alone_is_refused_with_the_fix_and_left_alone(path, tmp_path, suffix, damage):
    await fill(path)
    target = path.with_name(path.name + suffix)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(target.read_bytes() if target.exists() else b"")
    if damage == "link":
        target.unlink(missing_ok=True)
        target.symlink_to(elsewhere)
    elif damage == "folder":
        target.unlink(missing_ok=True)
        target.mkdir(mode=0o700)
    else:
        target.touch(0o600)
        if damage == "mode":
            target.chmod(0o660)
        elif os.geteuid() == 0:
            os.chown(target, 12_345, 12_345)
        else:
            pytest.skip("only root can give files away")
    before = elsewhere.read_bytes()
    with pytest.raises(PermissionMissing) as refused:
        open_journal(path)
    assert refused.value.fix
    assert elsewhere.read_bytes() == before


async def test_what_is_wrong_with_a_file_is_said_in_its_own_words(path):
    await fill(path)
    tamper(path, "UPDATE meta SET value = 'protected' WHERE key = 'tier'")
    with pytest.raises(JournalRecovery, match="is of tier 'protected', this program was told 'plain'"):
        open_journal(path)
    path.write_bytes(b"")
    with pytest.raises(JournalRecovery, match="is empty: it was cut"):
        open_journal(path)


async def test_an_open_directory_is_refused(path):
    await fill(path)
    path.parent.chmod(0o755)
    with pytest.raises(PermissionMissing) as refused:
        open_journal(path)
    assert "chmod 0700" in refused.value.fix


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, but long enough to look at twice" * 100, b"SQLite format 3\x00"]
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path, content):
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SurehandError) as refused:
        open_journal(path)
    assert refused.value.code in {"journal_recovery", "backend_unavailable"}
    assert refused.value.fix
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 2",
        "UPDATE meta SET value = '2' WHERE key = 'version'",
        "UPDATE meta SET value = 'protected' WHERE key = 'tier'",
        "UPDATE meta SET value = 'other' WHERE key = 'format'",
        "DELETE FROM meta",
        "INSERT INTO meta VALUES ('more', 'x')",
        "DROP TABLE uses",
        "ALTER TABLE events ADD COLUMN more TEXT",
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE TABLE more(x)",
        "DROP INDEX events_by_stream",
    ],
)
async def test_a_foreign_newer_or_altered_format_is_refused_before_any_write(path, statement):
    await fill(path)
    tamper(path, statement)
    before = path.read_bytes()
    with pytest.raises(JournalRecovery) as refused:
        open_journal(path)
    assert refused.value.fix
    assert path.read_bytes() == before


def test_a_copy_can_be_taken_while_appends_go_on_and_verifies(path, tmp_path):
    async def run():
        journal = open_journal(path)
        await journal.append([note()])
        copying = asyncio.ensure_future(journal.copy_to(tmp_path / "copies" / "copy.db"))
        await asyncio.gather(*(journal.append([note()]) for _ in range(50)))
        await copying
        with pytest.raises(Unavailable):
            await journal.copy_to(tmp_path / "copies" / "copy.db")
        await journal.close()

    asyncio.run(run())
    copy = tmp_path / "copies" / "copy.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    opened = open_journal(copy)
    assert opened.recovery is None
    assert opened.facts()["events"] >= 1
    asyncio.run(opened.close())


# --- one writer -------------------------------------------------------------------------------------------------------


async def test_a_second_writer_is_refused_by_name_until_the_first_lets_go(path):
    journal = open_journal(path)
    with pytest.raises(Unavailable) as refused:
        open_journal(path)
    assert refused.value.details["holder_pid"] == str(os.getpid())
    assert str(os.getpid()) in refused.value.message
    await journal.append([note()])
    await journal.close()
    again = open_journal(path)
    assert (await again.head())[0] == 1
    await again.close()


def test_the_lease_of_a_killed_process_is_free(path):
    program = textwrap.dedent(f"""
        from pathlib import Path
        from tests.journal_kit import open_journal
        journal = open_journal(Path({str(path)!r}))
        print("open", flush=True)
        input()
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(Unavailable) as refused:
            open_journal(path)
        assert refused.value.details["holder_pid"] == str(child.pid)
        child.kill()
        child.wait(10)
    journal = open_journal(path)
    asyncio.run(journal.close())


async def test_a_write_by_another_program_makes_the_journal_read_only(path):
    journal = open_journal(path)
    await journal.append([note()])
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE events SET actor = 'someone'")
    connection.close()
    with pytest.raises(JournalRecovery, match="another program"):
        await journal.append([note()])
    with pytest.raises(JournalRecovery):
        await journal.append([note()])
    with pytest.raises(JournalRecovery):
        await journal.stream("daemon")
    await journal.close()


# --- what was verified ------------------------------------------------------------------------------------------------


async def test_the_start_says_what_it_verified(path, monkeypatch):
    monkeypatch.setattr(limits, "JOURNAL_VERIFY_START_EVENTS", 8)
    journal = open_journal(path)
    assert journal.facts()["verified"]["path"] == "empty"
    await journal.append([note() for _ in range(8)])
    await journal.close()
    for events, kind, seen in ((0, "full", 8), (1, "tail", 8), (20, "tail", 8)):
        journal = open_journal(path)
        await journal.append([note() for _ in range(events)])
        await journal.close()
        journal = open_journal(path)
        verified = journal.facts()["verified"]
        assert (verified["path"], verified["events"]) == (kind, seen)
        await journal.close()


async def test_damage_before_the_verified_end_shows_when_it_is_read_and_when_all_is_verified(path, monkeypatch):
    monkeypatch.setattr(limits, "JOURNAL_VERIFY_START_EVENTS", 3)
    await fill(path)
    tamper(path, "UPDATE events SET actor = 'someone' WHERE seq = 2")
    journal = open_journal(path)
    assert journal.recovery is None
    await journal.append([note()])
    with pytest.raises(JournalRecovery, match="event 2"):
        await journal.read()
    with pytest.raises(JournalRecovery):
        await journal.append([note()])
    await journal.close()
    journal = open_journal(path, mode="full")
    assert journal.recovery.details["seq"] == 2
    await journal.close()


@pytest.mark.parametrize(
    ("seq", "read", "reason"),
    [
        (
            2,
            lambda journal: journal.stream("operation:agent:op-0"),
            "version 1 of stream operation:agent:op-0 is missing",
        ),
        (
            3,
            lambda journal: journal.stream("operation:agent:op-0"),
            "version 2 of stream operation:agent:op-0 is missing",
        ),
        (3, lambda journal: journal.read(), "sequence 3 is missing"),
        (3, lambda journal: journal.read(after_seq=3), "sequence 3 is missing"),
    ],
)
async def test_an_event_that_is_gone_before_the_verified_end_is_missed_by_whoever_reads_over_it(
    path, monkeypatch, seq, read, reason
):
    monkeypatch.setattr(limits, "JOURNAL_VERIFY_START_EVENTS", 2)
    await fill(path)
    tamper(path, f"DELETE FROM events WHERE seq = {seq}")  # noqa: S608 the statement is the test's own
    journal = open_journal(path)
    assert journal.recovery is None
    with pytest.raises(JournalRecovery, match=reason):
        await read(journal)
    assert journal.recovery is not None
    await journal.close()


async def test_an_end_that_another_program_cuts_off_is_missed_by_the_next_read(path):
    journal = open_journal(path)
    await journal.append([note(), note("s"), note("s")])
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM events WHERE seq = 3")
    connection.close()
    with pytest.raises(JournalRecovery, match="sequence 3 is missing"):
        await journal.read()
    await journal.close()


async def test_a_journal_that_fails_verification_opens_read_only_and_says_why(path):
    await fill(path)
    tamper(path, "UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 4")
    journal = open_journal(path)
    assert journal.recovery.code == "journal_recovery"
    assert "surehand-verify" in journal.recovery.fix
    assert journal.facts()["read_only"]["details"]["seq"] == 4
    with pytest.raises(JournalRecovery):
        await journal.append([note()])
    with pytest.raises(JournalRecovery):
        await journal.consume({"permit/new": 1}, [claim("new")])
    assert (await journal.stream("daemon"))[0].seq == 1
    with pytest.raises(JournalRecovery, match="event 4"):
        await journal.stream("operation:agent:op-1")
    await journal.close()
    assert sqlite3.connect(path).execute("SELECT count(*) FROM events").fetchone() == (8,)


# --- when the disk fails ------------------------------------------------------------------------------------------------


def test_a_full_disk_is_a_typed_error_and_nothing_is_half_written(path):
    """A real limit of the operating system on the size of files, in a process of its own."""
    filled(path, 1)
    program = textwrap.dedent(f"""
        import asyncio, resource, signal
        from pathlib import Path
        from surehand.errors import JournalRecovery, SurehandError, Unavailable
        from tests.journal_kit import note, open_journal

        async def main():
            journal = open_journal(Path({str(path)!r}))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
            acknowledged = 0
            for number in range(100):
                try:
                    await journal.append([note(x="y" * 200_000)])
                    acknowledged += 1
                except SurehandError as error:
                    print(acknowledged, type(error).__name__, error.retry_safe, flush=True)
                    break
            try:
                await journal.append([note(x="y" * 200_000)])
            except SurehandError as error:
                print(type(error).__name__)
            print(len(await journal.read()))

        asyncio.run(main())
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    first, second, third = done.stdout.splitlines()
    acknowledged, kind, retry_safe = first.split()
    assert 0 < int(acknowledged) < 100
    assert (kind, retry_safe) in {("CommitUnknown", "False"), ("Unavailable", "True")}
    assert second in {"JournalRecovery", "Unavailable"}
    assert int(third) == 4 + int(acknowledged)
    journal = open_journal(path)
    assert journal.recovery is None
    events = asyncio.run(journal.read())
    assert len(events) in {4 + int(acknowledged), 5 + int(acknowledged)}
    asyncio.run(journal.append([note()]))
    asyncio.run(journal.close())


class _FailingFile(apsw.VFSFile):
    """A file whose syncs are counted, and fail when told to, as its writes do."""

    def xSync(self, flags):  # noqa: N802 the name SQLite calls
        if _FailingVFS.fail_sync:
            raise apsw.IOError
        _FailingVFS.syncs += 1
        super().xSync(flags)

    def xWrite(self, data, offset):  # noqa: N802 the name SQLite calls
        if _FailingVFS.fail_write:
            raise apsw.FullError
        super().xWrite(data, offset)


class _FailingVFS(apsw.VFS):
    fail_sync = False
    fail_write = False
    syncs = 0

    def __init__(self):
        super().__init__("failing", "")

    def xOpen(self, name, flags):  # noqa: N802 the name SQLite calls
        return _FailingFile("", name, flags)


@pytest.fixture
def failing():
    _FailingVFS.fail_sync = _FailingVFS.fail_write = False
    vfs = _FailingVFS()
    yield _FailingVFS
    _FailingVFS.fail_sync = _FailingVFS.fail_write = False
    vfs.unregister()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fault", ["fail_sync", "fail_write"])
async def test_a_commit_whose_answer_is_lost_is_unknown_and_the_journal_read_only(path, failing, fault):
    journal = open_journal(path, vfs="failing")
    await journal.append([note()])
    setattr(failing, fault, True)
    pending = [journal.append([note(f"s{number}")]) for number in range(3)]
    answers = await asyncio.gather(*pending, return_exceptions=True)
    assert all(isinstance(answer, CommitUnknown) for answer in answers)
    assert not any(answer.retry_safe for answer in answers)
    assert len({id(answer) for answer in answers}) == 3
    setattr(failing, fault, False)
    with pytest.raises(JournalRecovery) as refused:
        await journal.append([note()])
    assert not isinstance(refused.value, CommitUnknown)
    assert refused.value.retry_safe
    await journal.close()
    journal = open_journal(path)
    assert journal.recovery is None
    assert (await journal.head())[0] in {1, 4}
    await journal.close()


async def test_nothing_is_acknowledged_before_the_disk_was_told_to_keep_it(path, failing):
    journal = open_journal(path, vfs="failing")
    for _ in range(5):
        before = failing.syncs
        await journal.append([note()])
        assert failing.syncs > before
    before = failing.syncs
    await asyncio.gather(*(journal.append([note()]) for _ in range(100)))
    assert 1 <= failing.syncs - before <= 10, "concurrent appends do not share commits"
    await journal.close()


async def test_a_defect_of_ours_in_the_writer_answers_everybody_and_stops_writing(path):
    journal = open_journal(path, randomness=lambda size: b"\0" * size if size <= 10 else b"")
    await journal.append([note()])
    answers = await asyncio.gather(*(journal.append([note()]) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(answer, JournalRecovery) for answer in answers[1:])
    assert journal.recovery is not None
    await journal.close()


# --- concurrency --------------------------------------------------------------------------------------------------------


async def test_a_group_that_was_committed_is_answered_though_the_next_one_fails(path, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_GROUP_MAX", 2)
    journal = open_journal(path)
    write, groups = journal._store._write, itertools.count()

    def second_fails(plan):
        if next(groups) == 1:
            raise apsw.FullError("the disk is full")
        write(plan)

    monkeypatch.setattr(journal._store, "_write", second_fails)
    answers = await asyncio.gather(*(journal.append([note(f"s{n}")]) for n in range(5)), return_exceptions=True)
    written = [answer for answer in answers if isinstance(answer, list)]
    refused = [answer for answer in answers if isinstance(answer, Unavailable)]
    assert len(written) + len(refused) == 5
    assert 1 <= len(refused) <= 2
    assert sorted(events[0].seq for events in written) == list(range(1, len(written) + 1))
    assert len(await journal.read()) == len(written)
    await journal.close()


async def test_a_cancelled_caller_leaves_the_journal_whole(path):
    journal = open_journal(path)
    tasks = [asyncio.ensure_future(journal.append([note(f"s{number}")])) for number in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, list) for answer in answers[1::2])
    await journal.append([note()])
    events = await journal.read()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= 26
    await journal.close()
    assert open_journal(path).recovery is None


async def test_a_stream_is_known_while_its_first_append_waits(path):
    journal = open_journal(path)
    pending = asyncio.ensure_future(journal.append([claim("a")]))
    await asyncio.sleep(0)
    assert journal.known("operation:agent:a")
    await pending
    assert journal.known("operation:agent:a")
    await journal.close()


async def test_a_page_ends_early_where_its_bytes_do_and_the_next_goes_on(path, monkeypatch):
    journal = open_journal(path)
    await journal.append([note(x="y" * 1_000) for _ in range(100)])
    monkeypatch.setattr(limits, "JOURNAL_READ_BYTES_MAX", 10_000)
    assert len(await journal.read()) == 10
    assert len(await journal.stream("daemon")) == 10
    for page_of in (
        lambda after: journal.read(after_seq=after),
        lambda after: journal.stream("daemon", after_version=after),
    ):
        seen: list[int] = []
        while page := await page_of(len(seen)):
            seen += [event.seq for event in page]
        assert seen == list(range(1, 101))
    await journal.close()


async def test_streams_beyond_the_remembered_ones_keep_their_versions(path, monkeypatch):
    monkeypatch.setattr(limits, "STREAM_VERSIONS_CACHED", 4)
    journal = open_journal(path)
    for _ in range(3):
        for number in range(10):
            await journal.append([note(f"s{number}")])
    for number in range(10):
        assert journal.known(f"s{number}")
        assert [event.stream_version for event in await journal.stream(f"s{number}")] == [1, 2, 3]
    await journal.close()


async def test_more_appends_than_may_wait_all_arrive(path, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUEUE_MAX", 8)
    monkeypatch.setattr(limits, "COMMIT_QUEUE_BYTES_MAX", 10_000)
    monkeypatch.setattr(limits, "COMMIT_GROUP_MAX", 3)
    journal = open_journal(path)
    events = await asyncio.gather(*(journal.append([note(x="y" * 3_000)]) for _ in range(100)))
    assert sorted(event[0].seq for event in events) == list(range(1, 101))
    await journal.append([note(x="y" * 50_000)])
    await journal.close()


async def test_close_writes_what_waits_and_may_be_called_twice(path):
    journal = open_journal(path)
    pending = [asyncio.ensure_future(journal.append([note()])) for _ in range(20)]
    await asyncio.sleep(0)
    await journal.close()
    assert all(isinstance(answer, list) for answer in await asyncio.gather(*pending, return_exceptions=True))
    await journal.close()
    with pytest.raises(Unavailable):
        await journal.append([note()])


def test_a_journal_serves_one_event_loop_after_another(path):
    journal = open_journal(path)
    for _ in range(3):
        asyncio.run(journal.append([note()]))
    assert asyncio.run(journal.head())[0] == 3
    asyncio.run(journal.close())


def test_a_loop_that_closes_on_a_waiting_append_does_not_stop_the_writer(path):
    journal = open_journal(path)

    async def leave():
        asyncio.ensure_future(journal.append([note()]))  # noqa: RUF006 left behind on purpose
        await asyncio.sleep(0)

    for _ in range(20):
        asyncio.run(leave())
    (event,) = asyncio.run(journal.append([note()]))
    assert event.seq == 21
    asyncio.run(journal.close())


def test_appends_do_not_slow_down_as_the_log_grows(path):
    """Counts pages, not seconds: what one append touches must not depend on what is there."""
    costs = []

    async def run():
        journal = open_journal(path)
        for round_number in range(4):
            await asyncio.gather(*(journal.append([claim(f"{round_number}-{number}")]) for number in range(500)))
            store = journal._store._connection
            store.status(apsw.SQLITE_DBSTATUS_CACHE_MISS, True)
            before = store.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)
            assert before is not None
            for number in range(20):
                await journal.append([terminal(f"{round_number}-{number}")])
            costs.append(store.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)[0])
        await journal.close()

    asyncio.run(run())
    assert max(costs[1:]) <= costs[1] * 1.3


def test_the_memory_of_a_verification_does_not_grow_with_the_log(path):
    async def run():
        journal = open_journal(path)
        for number in range(100):
            await journal.append([note(f"s{number}-{index}", x="y" * 1_000) for index in range(100)])
        await journal.close()

    asyncio.run(run())
    open_and_close(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    open_and_close(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000


def open_and_close(path):
    journal = SqliteJournal.open(path, clock=SettableClock(), mode="full")
    assert journal.recovery is None
    asyncio.run(journal.close())


# --- room ---------------------------------------------------------------------------------------------------------------


async def test_room_is_given_in_the_order_it_was_asked_for():
    room = Room(2, 100)
    await room.enter(60)
    order = []

    async def take(name, size):
        await room.enter(size)
        order.append(name)

    tasks = [asyncio.ensure_future(take("big", 50)), asyncio.ensure_future(take("small", 1))]
    await asyncio.sleep(0)
    assert order == []
    room.leave(60)
    await asyncio.gather(*tasks)
    assert order == ["big", "small"]


async def test_something_larger_than_the_room_enters_alone():
    room = Room(8, 100)
    await room.enter(1_000)
    waiting = asyncio.ensure_future(room.enter(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    room.leave(1_000)
    await waiting


@pytest.mark.parametrize("moment", ["waiting", "given"])
async def test_a_cancelled_waiter_takes_no_room(moment):
    room = Room(1, 100)
    await room.enter(10)
    first = asyncio.ensure_future(room.enter(10))
    second = asyncio.ensure_future(room.enter(10))
    await asyncio.sleep(0)
    if moment == "given":
        room.leave(10)
        first.cancel()
    else:
        first.cancel()
        await asyncio.sleep(0)
        room.leave(10)
    with pytest.raises(asyncio.CancelledError):
        await first
    await second


async def test_chain_and_store_agree_on_every_hash(path):
    journal = open_journal(path, clock=SettableClock(1_700_000_000_000))
    stored = await journal.consume(
        {"permit/1": 1}, [claim("a"), NewEvent(stream="s", type="a.b.v1", actor='q"\\\n', payload={})]
    )
    head = chain.EMPTY
    for event in stored:
        assert (
            chain.next_event(
                NewEvent(stream=event.stream, type=event.type, actor=event.actor, payload=event.payload),
                head,
                stream_version=event.stream_version,
                event_id=event.event_id,
                occurred_at=event.occurred_at,
            ).record_hash
            == event.record_hash
            or "consumed" in event.context
        )
        assert chain.fault(chain.row_of(event), head) is None
        head = chain.Head(event.seq, event.record_hash)
    await journal.close()


@pytest.mark.parametrize(("length", "made"), [(0, 0), (10, 1), (20, 2), (9, None), (11, None)])
def test_an_id_takes_ten_random_bytes_and_no_other_number(length, made):
    if made is None:
        with pytest.raises(ValueError, match="10 random bytes"):
            list(chain.uuids7(1, bytes(length)))
    else:
        assert len(list(chain.uuids7(1, bytes(length)))) == made
