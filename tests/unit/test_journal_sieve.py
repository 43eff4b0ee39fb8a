"""The filter of known streams may be wrong in one direction only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.adapters.journal_sqlite.sieve import Sieve
from surehand.model.events import NewEvent
from surehand.runtime.clock import SystemClock


@given(st.sets(st.text(min_size=1)), st.text(min_size=1))
def test_a_stream_that_was_added_is_never_taken_for_a_fresh_one(streams: set[str], other: str) -> None:
    sieve = Sieve(streams)
    assert all(sieve.may_hold(stream) for stream in streams)
    sieve.add(other)
    assert sieve.may_hold(other)


def test_fresh_streams_are_nearly_always_told_without_a_look() -> None:
    sieve = Sieve(f"operation/uid:1/{number}" for number in range(100_000))
    alarms = sum(sieve.may_hold(f"operation/uid:1/fresh-{number}") for number in range(10_000))
    assert alarms < 100


@pytest.mark.parametrize("most", [0, 1, limits.SIEVE_STREAMS_MAX])
async def test_streams_of_an_earlier_run_are_known_with_and_without_the_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    path = tmp_path / "state" / "journal.sqlite"
    journal = SqliteJournal.open(path, clock=SystemClock())
    for name in ("operation/uid:1/a", "operation/uid:1/b"):
        assert not journal.known(name)
        await journal.append([NewEvent(stream=name, type="operation.refused.v1", actor="uid:1", payload={})])
        assert journal.known(name)
    await journal.close()
    monkeypatch.setattr(limits, "SIEVE_STREAMS_MAX", most)
    journal = SqliteJournal.open(path, clock=SystemClock())
    assert journal.known("operation/uid:1/a")
    assert journal.known("operation/uid:1/b")
    assert not journal.known("operation/uid:1/c")
    await journal.close()
