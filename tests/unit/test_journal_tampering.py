"""Tampering with a closed journal: each kind is detected, with the right reason, by the store and by the auditor.

Both read the same damaged file; they share no code. What the plain tier cannot detect is asserted as such.
"""

# ruff: noqa: S608 the statements are the test's own

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import sqlite3

import pytest

from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.core import chain
from surehand.errors import JournalRecovery, SurehandError
from surehand.model.events import NewEvent
from surehand.verify.audit import audit
from surehand.verify.sources import NotReadable
from tests.journal_kit import SettableClock, claim, fill, filled, note, open_journal, tamper

TEXT_COLUMNS = ["event_id", "stream", "type", "occurred_at", "actor", "prev_hash", "record_hash"]
BYTES_COLUMNS = ["context", "payload"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("original") / "state" / "journal.db")


@pytest.fixture
def path(original, tmp_path):
    copy = tmp_path / "state" / "journal.db"
    copy.parent.mkdir(mode=0o700)
    shutil.copyfile(original, copy)
    copy.chmod(0o600)
    return copy


def store_says(path) -> JournalRecovery | None:
    """Open the journal as the daemon does; return why it is read-only, having tried to append."""
    try:
        journal = SqliteJournal.open(path, clock=SettableClock(), mode="full")
    except JournalRecovery as refused:
        return refused
    recovery = journal.recovery

    async def try_to_append():
        try:
            await journal.append([note()])
        except JournalRecovery:
            return False
        finally:
            await journal.close()
        return True

    assert asyncio.run(try_to_append()) == (recovery is None)
    return recovery


def both_say(path, reason: str, *, seq: int | None, store_reason: str | None = None) -> None:
    verdict = audit(path)
    assert not verdict.ok
    assert re.search(reason, verdict.reason), verdict
    assert verdict.seq == seq, verdict
    before = path.read_bytes()
    recovery = store_says(path)
    assert recovery is not None
    assert re.search(store_reason or reason, recovery.message), recovery
    assert recovery.fix
    assert path.read_bytes() == before, "a damaged journal was written to"


def flip(value, place: str, bit: int = 4):
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    index = {"first": 0, "middle": len(raw) // 2, "last": len(raw) - 1}[place]
    raw[index] ^= bit
    return bytes(raw)


# --- one stored byte --------------------------------------------------------------------------------------------------

CHANGED = (
    "does not match the stored fields|does not have its form|not in canonical form|not JSON|not an integer"
    "|does not belong|not what was written|damaged|not an object"
)


@pytest.mark.parametrize("bit", [4, 128])
@pytest.mark.parametrize("seq", [1, 4, 8])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("column", TEXT_COLUMNS + BYTES_COLUMNS)
def test_a_flipped_bit_in_any_column_of_an_event_is_found_at_its_event(path, column, place, seq, bit):
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    (value,) = connection.execute(f"SELECT {column} FROM events WHERE seq = ?", (seq,)).fetchone()
    kind = "BLOB" if column in BYTES_COLUMNS else "TEXT"
    connection.execute(f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE seq = ?", (flip(value, place, bit), seq))
    connection.commit()
    connection.close()
    both_say(path, CHANGED, seq=seq)


@pytest.mark.parametrize("seq", [1, 4, 8])
def test_a_changed_stream_version_is_found_at_its_event(path, seq):
    tamper(path, f"UPDATE events SET stream_version = stream_version + 5 WHERE seq = {seq}")
    both_say(path, "does not match the stored fields", seq=seq)


@pytest.mark.parametrize(("seq", "to"), [(1, 100), (4, 0), (4, 100), (8, 100), (8, -3)])
def test_a_changed_sequence_number_leaves_a_gap_or_goes_back(path, seq, to):
    tamper(path, f"UPDATE events SET seq = {to} WHERE seq = {seq}")
    verdict = audit(path)
    assert not verdict.ok
    assert re.search("is missing|goes back", verdict.reason)
    recovery = store_says(path)
    assert re.search("is missing|on record|out of order", recovery.message)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE streams SET version = version + 1 WHERE stream = 'daemon'", "streams"),
        ("UPDATE streams SET seq = seq - 1 WHERE stream = 'daemon'", "streams"),
        ("UPDATE streams SET type = 'operation.released.v1' WHERE stream = 'operation:agent:op-1'", "streams"),
        ("UPDATE streams SET stream = 'operation:agent:op-9' WHERE stream = 'operation:agent:op-1'", "streams"),
        ("DELETE FROM streams WHERE stream = 'operation:agent:op-1'", "streams"),
        ("INSERT INTO streams VALUES ('operation:agent:op-9', 1, 2, 'operation.claimed.v1')", "streams"),
        ("UPDATE uses SET count = count - 1 WHERE key = 'standing/g1'", "uses"),
        ("UPDATE uses SET count = count + 1 WHERE key = 'permit/n1'", "uses"),
        ("UPDATE uses SET seq = seq + 1 WHERE key = 'permit/n1'", "uses"),
        ("UPDATE uses SET key = 'permit/n9' WHERE key = 'permit/n1'", "uses"),
        ("DELETE FROM uses WHERE key = 'permit/n1'", "uses"),
        ("INSERT INTO uses VALUES ('permit/n9', 1, 2)", "uses"),
    ],
)
def test_the_tables_beside_the_events_cannot_be_changed_alone(path, statement, reason):
    """A removed use would let a permit be used again; a removed stream would let an operation run again."""
    tamper(path, statement)
    both_say(path, f"table of {reason}", seq=None, store_reason="on record")


@pytest.mark.parametrize("key", ["format", "version", "tier"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("column", ["key", "value"])
def test_a_flipped_bit_in_a_mark_is_found(path, key, place, column):
    changed = flip(
        key if column == "key" else {"format": "surehand-journal", "version": "1", "tier": "plain"}[key], place
    )
    tamper(path, f"UPDATE meta SET {column} = CAST(? AS TEXT) WHERE key = '{key}'", bindings=(changed,))
    both_say(path, "marks of the file", seq=1, store_reason="is marked|is of tier")


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [1, 2, 5])
def test_a_dropped_event_is_missed(path, seq):
    tamper(path, f"DELETE FROM events WHERE seq = {seq}")
    verdict = audit(path)
    assert (verdict.ok, verdict.reason) == (False, f"sequence {seq} is missing")
    assert f"sequence {seq} is missing" in store_says(path).message


def test_two_events_that_changed_places_are_found(path):
    tamper(path, "UPDATE events SET seq = -seq WHERE seq IN (2, 4)", "UPDATE events SET seq = 6 + seq WHERE seq < 0")
    both_say(path, "does not match the stored fields", seq=2)


def test_two_swapped_payloads_are_found(path):
    tamper(
        path,
        "CREATE TABLE swap AS SELECT seq, payload FROM events",
        "UPDATE events SET payload = (SELECT payload FROM swap WHERE swap.seq = 6 - events.seq) WHERE seq IN (2, 4)",
        "DROP TABLE swap",
    )
    both_say(path, "does not match the stored fields", seq=2)


def test_bytes_moved_from_one_column_to_the_next_are_found(path):
    tamper(path, "UPDATE events SET context = payload, payload = context WHERE seq = 4")
    both_say(path, "does not match the stored fields", seq=4)


def test_a_doubled_event_is_found(path):
    columns = "event_id, stream, stream_version + 1, type, occurred_at, actor, context, payload, prev_hash, record_hash"
    tamper(path, f"INSERT INTO events SELECT 9, {columns} FROM events WHERE seq = 8")
    both_say(path, "does not match the stored fields", seq=9)


def test_an_event_of_another_journal_does_not_fit_in(path, tmp_path):
    other = tmp_path / "other" / "journal.db"
    asyncio.run(fill(other))
    connection = sqlite3.connect(path)
    connection.execute("ATTACH ? AS other", (str(other),))
    connection.execute("DELETE FROM events WHERE seq = 5")
    connection.execute("INSERT INTO events SELECT * FROM other.events WHERE seq = 5")
    connection.commit()
    connection.close()
    both_say(path, "previous hash", seq=5)


def test_the_end_of_another_journal_does_not_fit_on(path, tmp_path):
    other = tmp_path / "other" / "journal.db"
    asyncio.run(fill(other))
    connection = sqlite3.connect(path)
    connection.execute("ATTACH ? AS other", (str(other),))
    connection.execute("DELETE FROM events WHERE seq > 4")
    connection.execute("INSERT INTO events SELECT * FROM other.events WHERE seq > 4")
    connection.commit()
    connection.close()
    both_say(path, "previous hash", seq=5)


def test_a_cut_end_is_missed_while_the_tables_beside_it_stay(path):
    tamper(path, "DELETE FROM events WHERE seq > 6")
    verdict = audit(path)
    assert (verdict.ok, verdict.seq) == (False, None)
    assert "table of" in verdict.reason
    assert store_says(path) is not None


def reseal(path, change) -> None:
    """Write a whole new chain with one event changed, as somebody who can write the file and knows the format can."""
    connection = sqlite3.connect(path)
    head = chain.EMPTY
    for values in connection.execute("SELECT * FROM events ORDER BY seq").fetchall():
        row = change(chain.Row(*values))._replace(prev_hash=head.record_hash)
        row = row._replace(record_hash=chain.record_hash(row))
        connection.execute(
            "UPDATE events SET event_id=?, stream=?, stream_version=?, type=?, occurred_at=?, actor=?, context=?, payload=?,"
            " prev_hash=?, record_hash=? WHERE seq=?",
            (*row[1:], row.seq),
        )
        head = chain.Head(row.seq, row.record_hash)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("change", "reason", "seq"),
    [
        (
            {"seq": 3, "payload": b'{"kind":"succeeded","receipt":{"operation_id":"op-9","principal":"agent"}}'},
            "receipt is of another",
            3,
        ),
        ({"seq": 3, "payload": b'{"kind":"maybe","receipt":{}}'}, "no known kind", 3),
        ({"seq": 3, "payload": b'{"kind":"succeeded"}'}, "without a receipt", 3),
        ({"seq": 3, "type": "operation.claimed.v1"}, "claimed twice", 3),
        ({"seq": 2, "type": "operation.refused.v1"}, "a terminal without a claim", 3),
        ({"seq": 2, "type": "operation.released.v1"}, "a release without a claim", 2),
        ({"seq": 2, "type": "operation.resolved.v1"}, "without a terminal was resolved", 2),
        ({"seq": 2, "type": "daemon.started.v1"}, "does not belong", 2),
        ({"seq": 2, "stream": "session:x"}, "does not belong", 2),
        ({"seq": 5, "stream_version": 3}, "is at version 3 where 2 belongs", 5),
        (
            {"seq": 4, "context": b'{"consumed":{"permit/n0":{"of":1,"use":1}}}'},
            "use 1 of a permit or grant is stated where 2",
            4,
        ),
        (
            {"seq": 4, "context": b'{"consumed":{"permit/n1":{"of":1,"use":2}}}'},
            "use 2 of a permit or grant is stated where 1",
            4,
        ),
        ({"seq": 4, "context": b'{"consumed":{"standing/g1":{"of":1,"use":2}}}'}, "the most is 1", 4),
        ({"seq": 4, "context": b'{"consumed":{"permit/n1":{"of":1,"use":true}}}'}, "without its numbers", 4),
        ({"seq": 4, "context": b'{"consumed":[]}'}, "not an object", 4),
        ({"seq": 4, "payload": b"{ }"}, "canonical form", 4),
        ({"seq": 4, "payload": b'{"a":1,"a":1}'}, "canonical form", 4),
        ({"seq": 4, "payload": b'{"b":1,"a":1}'}, "canonical form", 4),
        ({"seq": 4, "payload": b'{"a":1.0}'}, "not an integer", 4),
        ({"seq": 4, "payload": b'{"a":9007199254740992}'}, "53 bits", 4),
        ({"seq": 4, "payload": b"[]"}, "not an object", 4),
        ({"seq": 4, "actor": ""}, "actor does not have its form", 4),
        ({"seq": 4, "occurred_at": "yesterday"}, "occurred_at does not have its form", 4),
    ],
)
def test_the_auditor_finds_broken_rules_under_a_chain_whose_hashes_all_fit(path, change, reason, seq):
    """Only the auditor knows what operations and permits are; the store knows events."""
    at = change.pop("seq")
    reseal(path, lambda row: row._replace(**change) if row.seq == at else row)
    verdict = audit(path)
    assert not verdict.ok
    assert re.search(reason, verdict.reason), verdict
    assert verdict.seq == seq


def test_an_event_id_that_appears_twice_is_found(path):
    first = sqlite3.connect(path).execute("SELECT event_id FROM events WHERE seq = 1").fetchone()[0]
    reseal(path, lambda row: row._replace(event_id=first) if row.seq == 7 else row)
    verdict = audit(path)
    assert (verdict.ok, verdict.reason, verdict.seq) == (False, "an event id appears twice", 7)


def test_a_permit_that_two_claims_name_is_found(tmp_path):
    path = tmp_path / "state" / "journal.db"

    async def run():
        journal = open_journal(path)
        for name in ("a", "b"):
            event = claim(name)
            await journal.append(
                [NewEvent(stream=event.stream, type=event.type, actor="agent", payload={"permit_nonce": "same"})]
            )
        await journal.close()

    asyncio.run(run())
    verdict = audit(path)
    assert (verdict.ok, verdict.reason, verdict.seq) == (False, "a permit was consumed twice", 2)


# --- what cannot be detected, and what makes it detectable --------------------------------------------------------------


def cut_consistently(path) -> None:
    tamper(
        path,
        "DELETE FROM events WHERE seq = 8",
        "UPDATE streams SET version = 1, seq = 1, type = 'daemon.started.v1' WHERE stream = 'daemon'",
    )


def held(original, seq):
    row = sqlite3.connect(original).execute("SELECT record_hash FROM events WHERE seq = ?", (seq,)).fetchone()
    return {seq: row[0]}


def test_an_end_that_is_cut_off_cleanly_cannot_be_detected_without_a_record_kept_elsewhere(path):
    cut_consistently(path)
    verdict = audit(path)
    assert verdict.ok
    assert "may have been dropped unseen" in verdict.to_value()["limits"]
    assert store_says(path) is None


def test_an_end_that_is_cut_off_cleanly_shows_to_whoever_holds_a_receipt_of_it(path, original):
    cut_consistently(path)
    verdict = audit(path, held=held(original, 8))
    assert not verdict.ok
    assert "ends before sequence 8" in verdict.reason


def test_a_rewritten_chain_cannot_be_detected_without_a_record_kept_elsewhere(path, original):
    reseal(path, lambda row: row._replace(actor="someone") if row.seq == 4 else row)
    assert audit(path).ok
    for seq in (4, 5, 8):
        verdict = audit(path, held=held(original, seq))
        assert (verdict.ok, verdict.seq) == (False, seq)
        assert "held receipt" in verdict.reason
    assert audit(path, held=held(original, 3)).ok


def test_a_file_rolled_back_to_an_earlier_copy_shows_only_to_a_holder(path, tmp_path):
    earlier = tmp_path / "earlier.db"
    shutil.copyfile(path, earlier)

    async def more():
        journal = open_journal(path)
        (event,) = await journal.append([note()])
        await journal.close()
        return event

    event = asyncio.run(more())
    assert audit(earlier).ok
    assert not audit(earlier, held={event.seq: event.record_hash}).ok
    assert audit(path, held={event.seq: event.record_hash}).held == 1


# --- any byte of the file -----------------------------------------------------------------------------------------------


def everything(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    return [
        connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        for table in ("events", "streams", "uses", "meta")
    ]


def test_any_byte_of_the_file_flipped_is_found_or_changes_nothing_that_is_read(path):
    pristine = path.read_bytes()
    expected = everything(path)
    count = len(pristine) // 40 if os.environ.get("SUREHAND_LONG") else 250
    chance = random.Random(7)  # noqa: S311 a repeatable sample
    offsets = [*range(100), *(chance.randrange(len(pristine)) for _ in range(count))]
    found = 0
    for offset in offsets:
        damaged = bytearray(pristine)
        damaged[offset] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            whole = audit(path).ok
        except NotReadable:
            whole = False
        if whole:
            assert everything(path) == expected, offset
        try:
            journal = SqliteJournal.open(path, clock=SettableClock(), mode="full")
        except SurehandError:
            found += 1
            continue
        if journal.recovery is None:
            assert whole, (offset, audit(path))
            assert len(asyncio.run(journal.read())) == 8
        else:
            found += 1
        asyncio.run(journal.close())
    assert found > count // 10
