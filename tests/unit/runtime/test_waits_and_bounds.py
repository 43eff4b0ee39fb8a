"""Bounds of what is told, tried and kept: at the limit and one past it."""

from __future__ import annotations

import asyncio
import os

import msgspec
import nacl.secret
import pytest

from surehand import canonical, limits
from surehand.core.approval import difference
from surehand.core.policy.engine import EngineFailure
from surehand.errors import AmbiguousApp
from surehand.model.approval import Notice
from surehand.model.record import to_value
from surehand.runtime import shadow
from surehand.runtime.attending import line_of
from surehand.runtime.config import PolicyChoice
from surehand.runtime.heralds import Heralds
from surehand.runtime.kept import KeptFiles, KeptQuestion
from surehand.runtime.policies import Policies
from surehand.testing.journals import MemoryJournal
from surehand.testing.worlds import World
from tests.rules_kit import document
from tests.unit.policy.test_policies import Clock, FalseEngine, policies, with_engine
from tests.unit.runtime.test_attacks_people import ASK
from tests.unit.runtime.test_attacks_reach import agent, host_of
from tests.virtual_time import VirtualLoop, run

# --- telling --------------------------------------------------------------------------------------------------------


class Herald:
    """Takes so long for each try, and never succeeds unless in time."""

    name = "herald"

    def __init__(self, takes_s: float, *, fails: bool = False) -> None:
        self.takes_s = takes_s
        self.fails = fails
        self.tried_at: list[float] = []
        self.told = 0

    async def tell(self, _: Notice) -> None:
        self.tried_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes_s)
        if self.fails:
            raise TimeoutError
        self.told += 1

    async def close(self) -> None:
        pass


def tried(herald: Herald) -> Herald:
    loop = VirtualLoop()

    async def work() -> None:
        heralds = Heralds([herald], loop)
        heralds.start()
        heralds.heard({"event": "approval.ended", "approval_id": "a", "state": "used"})
        await asyncio.sleep(10 * sum(limits.NOTICE_PAUSES_S))
        await heralds.close()

    run(work(), loop)
    return herald


@pytest.mark.parametrize(("past_ms", "told"), [(-1, 1), (1, 0)])
def test_one_try_at_telling_has_its_time_and_no_more(past_ms: int, told: int) -> None:
    assert tried(Herald((limits.NOTICE_MS_MAX + past_ms) / 1000)).told == told


def test_a_notice_is_tried_after_each_pause_and_then_let_go_of() -> None:
    herald = tried(Herald(0, fails=True))
    waited = [after - before for before, after in zip(herald.tried_at, herald.tried_at[1:], strict=False)]
    assert waited == pytest.approx(limits.NOTICE_PAUSES_S)


# --- whose windows ----------------------------------------------------------------------------------------------------


def chain(length: int) -> tuple[int, int]:
    """Fork so many processes, each the child of the one before; return the last one's pid and what keeps them."""
    said, says = os.pipe()
    kept, keeps = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(keeps)
        for _ in range(length - 1):
            if os.fork():
                os.read(kept, 1)
                os._exit(0)
        os.write(says, b"%d\n" % os.getpid())
        os.read(kept, 1)
        os._exit(0)
    os.close(kept)
    with os.fdopen(said) as found:
        last = int(found.readline())
    os.close(says)
    return last, keeps


@pytest.mark.parametrize("past", [0, 1])
def test_so_many_processes_above_one_are_looked_at_and_not_one_more(past: int) -> None:
    above = line_of(os.getpid())
    last, keeps = chain(limits.ANCESTORS_MAX - len(above) + past)
    try:
        line = line_of(last)
    finally:
        os.close(keeps)
        os.wait()
    assert len(line) == limits.ANCESTORS_MAX
    assert len(above - line) == past
    assert os.getpid() in line


# --- what is kept of questions ----------------------------------------------------------------------------------------


async def pending_of(world: World) -> object:
    await world.act("op")
    return world.approvals.pending()[0]


@pytest.mark.parametrize("past", [0, 1])
async def test_a_kept_question_is_read_up_to_its_bound(past: int, tmp_path) -> None:
    pending = await pending_of(World(policy=ASK))
    key = b"k" * 32
    kept = KeptFiles(tmp_path / "kept", key)
    await kept.put(pending, [])
    (path,) = (tmp_path / "kept").iterdir()
    value = canonical.encode_record(KeptQuestion(pending=pending))
    overhead = path.stat().st_size - len(value)
    padded = value + b" " * (limits.APPROVAL_FILE_BYTES_MAX - overhead - len(value) + past)
    covered = b"surehand/kept-question/v1\x00" + pending.approval_id.encode()
    path.write_bytes(bytes(nacl.secret.Aead(key).encrypt(padded, covered)))
    found = await KeptFiles(tmp_path / "kept", key).all()
    assert [one.pending for one in found] == ([] if past else [pending])
    assert path.exists() == (not past)


@pytest.mark.parametrize("past", [0, 1])
async def test_of_a_thing_that_changed_so_much_is_shown(past: int) -> None:
    shown = (await pending_of(World(policy=ASK))).presentation
    long = "x" * (limits.APPROVAL_CHANGE_CHARS_MAX + past)
    other = type(shown)(**{**{name: getattr(shown, name) for name in shown.__struct_fields__}, "reason": long})
    (change,) = difference(shown, other)
    assert (change.after == long) == (not past)
    assert len(change.after) <= limits.APPROVAL_CHANGE_CHARS_MAX + 64
    assert change.before == to_value(shown)["reason"]


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("past_ms", "rule"), [(-1, "x"), (1, "engine.timeout")])
def test_an_engine_has_so_long_where_nobody_said_how_long(past_ms: int, rule: str) -> None:
    loop = VirtualLoop()

    async def slow(questions: list[object]) -> list[object]:
        await asyncio.sleep((limits.POLICY_ENGINE_MS_DEFAULT + past_ms) / 1000)
        return [{"outcome": "allow", "rule": "x", "reason": "y"} for _ in questions]

    async def work() -> str:
        found = with_engine(FalseEngine(slow), loop)
        return (await found.decide(document(), "d1")).rule

    assert run(work(), loop) == rule


async def shadowed(clock: Clock, kinds: int) -> tuple[Policies, MemoryJournal]:
    """Try a policy that differs in so many kinds of question."""
    journal = MemoryJournal(clock=clock)
    found = policies(PolicyChoice(), clock, tried=PolicyChoice(), journal=journal)
    found.shadow.ruling = type(found.ruling)(
        choice=found.ruling.choice, policy=found.ruling.policy, asked=FalseEngine(EngineFailure("unavailable"))
    )
    for number in range(kinds):
        await found.decide(document(facts={"app": f"exe:/opt/app{number}"}), "d1")
        if number % limits.SHADOW_PENDING_MAX == limits.SHADOW_PENDING_MAX - 1:
            await asyncio.wait(found.shadow._tasks)
    if found.shadow._tasks:
        await asyncio.wait(found.shadow._tasks)
    return found, journal


@pytest.mark.parametrize("past", [0, 1])
async def test_so_many_kinds_of_difference_are_told_apart(past: int) -> None:
    found, _ = await shadowed(Clock(), limits.SHADOW_KINDS_MAX + past)
    told = found.shadow.report()
    assert (told["differed"], told["left_out"]) == (limits.SHADOW_KINDS_MAX, past)
    assert len(told["differences"]) == shadow._SHOWN
    await found.close()


@pytest.mark.parametrize(("waited_ms", "records"), [(limits.SHADOW_NOTE_MS - 1, 0), (limits.SHADOW_NOTE_MS, 1)])
async def test_differences_of_one_kind_within_a_while_are_one_record(waited_ms: int, records: int) -> None:
    clock = Clock()
    found, journal = await shadowed(clock, 1)
    clock.now += waited_ms
    await found.decide(document(facts={"app": "exe:/opt/app0"}), "d2")
    await asyncio.wait(found.shadow._tasks)
    if found._tasks:
        await asyncio.wait(found._tasks)
    counts = [one.payload["count"] for one in await journal.stream("daemon") if one.type == "policy.shadowed.v1"]
    assert counts == [2] * records
    await found.close()
    counts = [one.payload["count"] for one in await journal.stream("daemon") if one.type == "policy.shadowed.v1"]
    assert counts == [2]


# --- one name, several programs ---------------------------------------------------------------------------------------


async def test_two_programs_under_one_name_are_not_guessed_between() -> None:
    world = World()
    quiet = frozenset({"visible", "showing"})
    surface = msgspec.structs.replace(world.app.surface, states=quiet)
    app = msgspec.structs.replace(surface.app, pid=surface.app.pid + 1)
    other = msgspec.structs.replace(surface, surface_id="m-two", app=app)

    async def surfaces(_: int | None = None):
        return (surface, other)

    world.app.surfaces = surfaces  # type: ignore[method-assign]
    host = host_of(world)
    session = await agent(host)
    with pytest.raises(AmbiguousApp) as refused:
        await host.call(session, "observe", {"app": "memory"})
    assert refused.value.code == "ambiguous_app"
    assert len(refused.value.observed["candidates"]) == 2
