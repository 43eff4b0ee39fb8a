"""One suite for every journal: SQLite and memory must behave alike."""

from __future__ import annotations

import asyncio

import pytest

from surehand import limits
from surehand.core import chain
from surehand.errors import Conflict, InvalidRequest, PermitInvalid, TooLarge, Unavailable
from surehand.model.events import NewEvent
from surehand.testing.journals import FaultyJournal, MemoryJournal
from tests.journal_kit import ZEROS, SettableClock, claim, note, open_journal, terminal


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture(params=["sqlite", "memory", "faulty"])
async def journal(request, tmp_path, clock):
    if request.param == "sqlite":
        made = open_journal(tmp_path / "state" / "journal.db", clock=clock)
    else:
        made = MemoryJournal(clock=clock)
        made = FaultyJournal(made) if request.param == "faulty" else made
    yield made
    await made.close()


async def test_an_empty_journal_has_an_empty_head(journal):
    assert await journal.head() == (0, ZEROS)
    assert await journal.read() == []
    assert not journal.known("daemon")


async def test_the_first_event_starts_the_chain(journal):
    (event,) = await journal.append([note()])
    assert (event.seq, event.stream_version, event.prev_hash) == (1, 1, ZEROS)
    assert await journal.head() == (1, event.record_hash)
    assert chain.fault(chain.row_of(event), chain.EMPTY) is None
    assert event.occurred_at == "2026-11-30T08:47:33.123Z"


async def test_what_is_appended_is_what_is_read(journal):
    payload = {"text": "ünïcode \u0000 \U0001f600", "n": -(2**53) + 1, "list": [None, True, {"a": []}]}
    (event,) = await journal.append([note(**payload)])
    assert await journal.read() == [event]
    assert (await journal.read())[0].payload == payload
    assert await journal.stream("daemon") == [event]


async def test_changing_a_payload_after_the_append_was_asked_for_changes_nothing(journal):
    payload = {"list": [1]}
    pending = asyncio.ensure_future(journal.append([NewEvent(stream="s", type="a.b.v1", actor="x", payload=payload)]))
    await asyncio.sleep(0)
    payload["list"].append(2)
    await pending
    assert (await journal.read())[0].payload == {"list": [1]}


async def test_a_batch_is_written_in_order_over_several_streams(journal):
    events = await journal.append([claim("a"), note(), terminal("a")])
    assert [event.seq for event in events] == [1, 2, 3]
    assert [event.stream_version for event in events] == [1, 1, 2]
    assert await journal.stream("operation:agent:a") == [events[0], events[2]]


async def test_an_empty_append_writes_nothing(journal):
    assert await journal.append([]) == []
    assert (await journal.head())[0] == 0


async def test_a_stale_expected_version_is_a_conflict_that_names_both_and_writes_nothing(journal):
    await journal.append([note()])
    with pytest.raises(Conflict) as refused:
        await journal.append(
            [note("other"), NewEvent(stream="daemon", type="a.b.v1", actor="x", payload={}, expected_version=0)]
        )
    assert refused.value.details == {"stream": "daemon", "expected": 0, "actual": 1}
    assert (await journal.head())[0] == 1
    assert not journal.known("other")


async def test_expected_versions_count_the_events_of_the_same_append(journal):
    first = NewEvent(stream="s", type="a.b.v1", actor="x", payload={}, expected_version=0)
    second = NewEvent(stream="s", type="a.b.v1", actor="x", payload={}, expected_version=1)
    await journal.append([first, second])
    with pytest.raises(Conflict):
        await journal.append([first, second])
    assert (await journal.head())[0] == 2


async def test_of_racing_appends_that_expect_the_same_version_one_wins(journal):
    event = NewEvent(stream="s", type="a.b.v1", actor="x", payload={}, expected_version=0)
    answers = await asyncio.gather(*(journal.append([event]) for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(answer, list) for answer in answers) == 1
    assert sum(isinstance(answer, Conflict) for answer in answers) == 19
    assert (await journal.head())[0] == 1


async def test_a_refused_append_leaves_those_that_share_its_commit_alone(journal):
    await journal.append([note()])
    bad = NewEvent(stream="daemon", type="a.b.v1", actor="x", payload={}, expected_version=7)
    pending = [journal.append([bad if number % 3 == 0 else note(f"s{number}")]) for number in range(60)]
    answers = await asyncio.gather(*pending, return_exceptions=True)
    assert [isinstance(answer, Conflict) for answer in answers] == [number % 3 == 0 for number in range(60)]
    assert (await journal.head())[0] == 41
    events = await journal.read()
    assert [event.seq for event in events] == list(range(1, 42))


async def test_concurrent_appends_form_one_unbroken_chain(journal):
    await asyncio.gather(*(journal.append([note(f"s{number % 5}"), note(f"t{number}")]) for number in range(100)))
    head = chain.EMPTY
    versions: dict[str, int] = {}
    for event in await journal.read():
        assert chain.fault(chain.row_of(event), head) is None
        head = chain.Head(event.seq, event.record_hash)
        versions[event.stream] = versions.get(event.stream, 0) + 1
        assert event.stream_version == versions[event.stream]
    assert head == await journal.head()
    assert head.seq == 200


# --- uses -----------------------------------------------------------------------------------------------------------


async def test_a_replayed_permit_is_refused_and_nothing_moves(journal):
    await journal.consume({"permit/n": 1}, [claim("a")])
    head = await journal.head()
    with pytest.raises(PermitInvalid):
        await journal.consume({"permit/n": 1}, [claim("b")])
    assert await journal.head() == head
    assert await journal.uses("permit/n") == 1
    assert not journal.known("operation:agent:b")


async def test_of_racing_holders_of_one_permit_one_wins(journal):
    pending = [journal.consume({"permit/n": 1}, [claim(f"op-{number}")]) for number in range(20)]
    answers = await asyncio.gather(*pending, return_exceptions=True)
    assert sum(isinstance(answer, list) for answer in answers) == 1
    assert await journal.uses("permit/n") == 1


async def test_when_one_of_several_keys_is_used_up_none_is_counted(journal):
    await journal.consume({"permit/1": 1, "standing/g": 2}, [claim("a")])
    await journal.consume({"permit/2": 1, "standing/g": 2}, [claim("b")])
    with pytest.raises(PermitInvalid) as refused:
        await journal.consume({"permit/3": 1, "standing/g": 2}, [claim("c")])
    assert refused.value.details == {"key": "standing/g", "uses": 2, "uses_max": 2}
    assert await journal.uses("permit/3") == 0
    assert await journal.uses("standing/g") == 2


async def test_a_conflict_counts_no_use(journal):
    stale = NewEvent(stream="s", type="a.b.v1", actor="x", payload={}, expected_version=3)
    with pytest.raises(Conflict):
        await journal.consume({"permit/n": 1}, [stale])
    assert await journal.uses("permit/n") == 0


async def test_the_first_event_says_what_was_consumed_so_that_the_chain_covers_the_counts(journal):
    await journal.consume({"standing/g": 5}, [claim("a")])
    first, second = await journal.consume({"permit/n": 1, "standing/g": 5}, [claim("b"), note()])
    assert first.context["consumed"] == {"permit/n": {"use": 1, "of": 1}, "standing/g": {"use": 2, "of": 5}}
    assert first.context["session"] == "5" * 32
    assert second.context == {}
    assert (await journal.read(after_seq=1))[0] == first


async def test_a_caller_cannot_write_the_member_that_states_uses(journal):
    with pytest.raises(InvalidRequest):
        await journal.append([NewEvent(stream="s", type="a.b.v1", actor="x", payload={}, context={"consumed": {}})])
    assert (await journal.head())[0] == 0


@pytest.mark.parametrize(
    "keys",
    [{"": 1}, {"a b": 1}, {"é": 1}, {"k": 0}, {"k": -1}, {"k" * (limits.USE_KEY_CHARS_MAX + 1): 1}],
)
async def test_bad_keys_are_refused(journal, keys):
    with pytest.raises(InvalidRequest):
        await journal.consume(keys, [note()])
    assert (await journal.head())[0] == 0


async def test_a_use_without_an_event_is_refused(journal):
    with pytest.raises(InvalidRequest):
        await journal.consume({"k": 1}, [])
    assert await journal.uses("k") == 0


async def test_keys_at_the_limit_pass_and_one_more_does_not(journal):
    await journal.consume({f"k{number}": 1 for number in range(limits.USE_KEYS_MAX)}, [note()])
    with pytest.raises(TooLarge):
        await journal.consume({f"l{number}": 1 for number in range(limits.USE_KEYS_MAX + 1)}, [note()])
    await journal.consume({"k" * limits.USE_KEY_CHARS_MAX: 1}, [note()])


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "a", "a.b", "a.b.v0", "a.b.v01", "A.b.v1", "a.b.c.v1", "a.b.v1\n", "é.b.v1", "a.b.v12345"]
)
async def test_a_type_that_is_not_noun_verb_version_is_refused(journal, name):
    with pytest.raises(InvalidRequest):
        await journal.append([NewEvent(stream="s", type=name, actor="x", payload={})])
    assert (await journal.head())[0] == 0


@pytest.mark.parametrize("stream", ["", "a b", "é", "a\\b", "a\n", "s" * (limits.STREAM_CHARS_MAX + 1)])
async def test_a_bad_stream_name_is_refused(journal, stream):
    with pytest.raises(InvalidRequest):
        await journal.append([NewEvent(stream=stream, type="a.b.v1", actor="x", payload={})])


async def test_names_at_their_limits_pass(journal):
    stream = "s" * limits.STREAM_CHARS_MAX
    actor = "a" * limits.ACTOR_BYTES_MAX
    await journal.append([NewEvent(stream=stream, type="a" * 63 + "." + "b" * 63 + ".v9999", actor=actor, payload={})])
    assert journal.known(stream)
    with pytest.raises(TooLarge):
        await journal.append([NewEvent(stream="s", type="a.b.v1", actor=actor + "a", payload={})])


@pytest.mark.parametrize("value", [1.0, float("nan"), 2**53, "\ud800", b"x", {1: 2}, {"\ue000": 1}, object()])
async def test_a_payload_without_canonical_form_is_refused(journal, value):
    with pytest.raises(InvalidRequest):
        await journal.append([note(value=value)])
    assert (await journal.head())[0] == 0


async def test_a_payload_at_the_limit_passes_and_one_byte_more_does_not(journal):
    room = limits.EVENT_BYTES_MAX - len(b'{"x":""}') - len(b"{}")
    await journal.append([note(x="a" * room)])
    with pytest.raises(TooLarge):
        await journal.append([note(x="a" * (room + 1))])
    assert (await journal.head())[0] == 1
    assert len((await journal.read())[0].payload["x"]) == room


async def test_an_append_of_the_most_events_passes_and_one_more_does_not(journal):
    await journal.append([note()] * limits.APPEND_EVENTS_MAX)
    with pytest.raises(TooLarge):
        await journal.append([note()] * (limits.APPEND_EVENTS_MAX + 1))
    assert (await journal.head())[0] == limits.APPEND_EVENTS_MAX


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_reads_start_after_the_cursor_and_clamp_their_limits(journal):
    await journal.append([note() for _ in range(10)])
    assert [event.seq for event in await journal.read(after_seq=3, limit=4)] == [4, 5, 6, 7]
    assert [event.stream_version for event in await journal.stream("daemon", after_version=8)] == [9, 10]
    for limit in (0, -1):
        assert await journal.read(limit=limit) == []
        assert await journal.stream("daemon", limit=limit) == []
    assert len(await journal.read(limit=10**9)) == 10
    assert await journal.read(after_seq=10) == []
    assert await journal.read(after_seq=99) == []
    assert await journal.stream("daemon", after_version=99) == []
    assert len(await journal.read(after_seq=-5)) == 10
    assert await journal.stream("unknown") == []


async def test_a_long_stream_is_read_whole(journal):
    for _ in range(3):
        await journal.append([note() for _ in range(100)])
    for limit in (63, 64, 65, 150, 300, 1000):
        events = await journal.stream("daemon", limit=limit)
        assert [event.stream_version for event in events] == list(range(1, min(limit, 300) + 1))


async def test_claims_without_an_end_are_found_oldest_first(journal):
    for name in ("a", "b", "c", "d"):
        await journal.append([claim(name)])
    await journal.append([terminal("b")])
    await journal.append(
        [NewEvent(stream="operation:agent:c", type="operation.released.v1", actor="agent", payload={})]
    )
    await journal.append([claim("c")])
    await journal.append([note()])
    open_ones = ["operation:agent:a", "operation:agent:d", "operation:agent:c"]
    assert await journal.streams_ending("operation.claimed.v1") == open_ones
    assert await journal.streams_ending("operation.claimed.v1", limit=2) == open_ones[:2]
    assert await journal.streams_ending("operation.claimed.v1", limit=0) == []
    assert await journal.streams_ending("daemon.started.v1") == ["daemon"]
    assert await journal.streams_ending("no.such.v1") == []


async def test_a_claim_stays_open_whatever_follows_it_but_a_release_or_a_terminal(journal):
    """A refusal of somebody who came second must not hide it from recovery."""
    refusal = NewEvent(
        stream="operation:agent:a", type="operation.refused.v1", actor="agent", payload={"code": "conflict"}
    )
    await journal.append([claim("a"), refusal])
    await journal.append([refusal])
    assert await journal.streams_ending("operation.claimed.v1") == ["operation:agent:a"]
    assert await journal.streams_ending("operation.refused.v1") == []
    await journal.append([terminal("a")])
    await journal.append([refusal])
    assert await journal.streams_ending("operation.claimed.v1") == []
    assert await journal.streams_ending("operation.refused.v1") == ["operation:agent:a"]


async def test_a_stream_is_known_once_it_was_written(journal):
    await journal.append([claim("a")])
    assert journal.known("operation:agent:a")
    assert not journal.known("operation:agent:A")


async def test_a_clock_that_goes_back_breaks_nothing(journal, clock):
    await journal.append([note()])
    clock.now -= 86_400_000
    await journal.append([note()])
    first, second = await journal.read()
    assert second.occurred_at < first.occurred_at
    assert second.prev_hash == first.record_hash
    assert first.event_id != second.event_id


async def test_a_closed_journal_refuses_appends(journal):
    await journal.append([note()])
    await journal.close()
    with pytest.raises(Unavailable):
        await journal.append([note()])


async def test_streams_are_found_by_their_last_event_newest_first_in_pages(journal):
    assert await journal.latest("operation:") == []
    for name in ("a", "b", "c"):
        await journal.append([claim(name)])
    await journal.append([note()])
    await journal.append([terminal("a")])
    found = await journal.latest("operation:agent:")
    assert [stream for stream, _ in found] == [f"operation:agent:{name}" for name in ("a", "c", "b")]
    head, _ = await journal.head()
    assert found[0][1] == head
    pages, before = [], None
    while page := await journal.latest("operation:", before_seq=before, limit=1):
        pages += page
        before = page[-1][1]
    assert pages == found
    assert await journal.latest("operation:agent:b") == [found[2]]
    assert await journal.latest("operation:", limit=0) == []
    assert await journal.latest("operation:", before_seq=1) == []
    assert await journal.latest("%") == []
