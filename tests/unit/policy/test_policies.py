"""The policy in force: chosen by the configuration, read again when its files change, tried beside another."""

from __future__ import annotations

import asyncio
import shutil

import msgspec
import pytest

from surehand import limits
from surehand.core.policy.engine import EngineFailure
from surehand.errors import InvalidRequest, PermissionMissing, PolicyDenied, TooLarge
from surehand.model.record import convert
from surehand.runtime.compose import open_engine
from surehand.runtime.config import Config, PolicyChoice
from surehand.runtime.policies import Policies
from surehand.runtime.policy_source import first_ruling, open_ruling
from surehand.testing.journals import MemoryJournal
from surehand.testing.worlds import World
from tests.rules_kit import document

DENY = '[[rule]]\nid = "{}"\neffect = "deny"\nreason = "r"\n'
DENYING = "version = 1\n" + DENY.format("no")
EMPTY = "version = 1\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def monotonic_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now


class FalseEngine:
    """Answers what a test says; an exception is raised."""

    name = "rego"
    revision = "r1"

    def __init__(self, answer) -> None:
        self.answer = answer
        self.closed = False
        self.asked = 0

    async def ask(self, questions):
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        if callable(self.answer):
            return await self.answer(questions)
        return [self.answer for _ in questions]

    async def check(self):
        if isinstance(self.answer, EngineFailure):
            raise self.answer
        return "fine"

    async def close(self):
        self.closed = True


@pytest.fixture
def clock():
    return Clock()


def policies(choice, clock, *, tried=None, journal=None):
    ruling = first_ruling(choice, open_engine)
    tried = None if tried is None else first_ruling(tried, open_engine)
    return Policies(ruling, open_engine, clock, journal or MemoryJournal(clock=clock), tried=tried)


def with_engine(engine, clock, **choice):
    found = policies(PolicyChoice(), clock)
    chosen = PolicyChoice(engine="opa", url="http://127.0.0.1:1", **choice)
    found.ruling = msgspec.structs.replace(found.ruling, asked=engine, choice=chosen)
    return found


async def decided(found, about=None):
    return await found.decide(document() if about is None else about, "d1")


async def outcome(found, about=None):
    return (await decided(found, about)).outcome


def write(path, text) -> None:
    """Replace as an editor does, in a new file, so that even equal sizes and times differ."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


# --- failures -------------------------------------------------------------------------------------------------------


async def hangs(questions):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (EngineFailure("unavailable", "down"), "unavailable"),
        (EngineFailure("timeout"), "timeout"),
        (EngineFailure("too_large"), "too_large"),
        (OSError("a defect of an adapter"), "error"),
        (RecursionError(), "error"),
        (None, "undefined"),
        ("yes", "malformed"),
        ({"outcome": "allow", "rule": "x", "reason": "y", "obligations": {"film": True}}, "unknown_obligation"),
    ],
)
async def test_an_engine_that_fails_denies_with_the_kind_of_failure(answer, kind, clock, caplog):
    found = await decided(with_engine(FalseEngine(answer), clock), document({"name": "Save"}))
    assert (found.outcome, found.rule) == ("deny", f"engine.{kind}")
    assert any("so it is denied" in line for line in caplog.messages)


async def test_an_engine_that_never_answers_denies_when_its_time_is_over(clock):
    async with asyncio.timeout(5):
        assert (await decided(with_engine(FalseEngine(hangs), clock, timeout_ms=50))).rule == "engine.timeout"


async def test_what_an_engine_says_too_late_does_not_count(clock):
    async def late(questions):
        clock.now += 101
        return [{"outcome": "allow", "rule": "x", "reason": "y"} for _ in questions]

    found = with_engine(FalseEngine(late), clock, timeout_ms=100)
    assert (await decided(found)).rule == "engine.timeout"
    found = with_engine(FalseEngine(late), clock, timeout_ms=101)
    assert (await decided(found)).rule == "x"


async def test_a_read_that_failed_is_asked_about_again(clock):
    world = World()
    engine = FalseEngine(EngineFailure("unavailable"))
    world.authority.policies = with_engine(engine, clock)
    session, surface = world.session, world.app.surface
    with pytest.raises(PolicyDenied) as refused:
        await world.authority.check_read(session, surface)
    assert refused.value.details["rule"] == "engine.unavailable"
    engine.answer = {"outcome": "default"}
    await world.authority.check_read(session, surface)
    asked = engine.asked
    await world.authority.check_read(session, surface)
    assert engine.asked == asked
    clock.now += limits.POLICY_LIVE_READ_MS
    await world.authority.check_read(session, surface)
    assert engine.asked == asked + 1


# --- reloading ------------------------------------------------------------------------------------------------------

CEDAR_DENYING = '@id("no") @reason("r") forbid (principal, action, resource);'
CEDAR_EMPTY = '@outcome("default") permit (principal, action, resource);'
REGO_DENYING = 'package surehand\nimport rego.v1\ndecision := {"outcome": "deny", "rule": "no", "reason": "r"}\n'
REGO_EMPTY = 'package surehand\nimport rego.v1\ndecision := {"outcome": "default"}\n'
FILES = {
    "builtin": ("p.toml", EMPTY, DENYING, "version = "),
    "rego": ("p.rego", REGO_EMPTY, REGO_DENYING, "package surehand\nimport rego.v1\ndecision := {"),
    "cedar": ("p.cedar", CEDAR_EMPTY, CEDAR_DENYING, "permit (principal, action, resource"),
    "rego by rules": ("p.toml", EMPTY, DENYING, "version = "),
    "cedar by rules": ("p.toml", EMPTY, DENYING, "version = "),
}


@pytest.mark.parametrize("which", FILES)
async def test_a_changed_policy_holds_within_a_second_and_a_broken_one_changes_nothing(which, tmp_path, clock, caplog):
    name, empty, denying, broken = FILES[which]
    path = tmp_path / name
    write(path, empty)
    journal = MemoryJournal(clock=clock)
    found = policies(PolicyChoice(engine=which.split()[0], file=str(path)), clock, journal=journal)
    assert await outcome(found) == "allow"
    generation, revision = found.generation, found.ruling.revision

    write(path, denying)
    assert await outcome(found) == "allow"  # it is not looked for every time
    clock.now += limits.POLICY_LOOK_MS
    assert (await decided(found)).rule == "no"
    assert (found.generation, found.failure) == (generation + 1, None)
    assert found.ruling.revision != revision

    write(path, broken)
    clock.now += limits.POLICY_LOOK_MS
    assert (await decided(found)).rule == "no"
    assert found.generation == generation + 1
    assert found.failure is not None
    assert "was not reloaded" in caplog.text
    assert (await found.describe())["reload_failed"] == found.failure

    write(path, empty)
    clock.now += limits.POLICY_LOOK_MS
    assert await outcome(found) == "allow"
    assert (found.generation, found.failure) == (generation + 2, None)
    await found.close()
    kinds = [event.type for event in await journal.stream("daemon")]
    assert kinds == ["policy.loaded.v1", "policy.reload_failed.v1", "policy.loaded.v1"]


async def test_a_policy_that_is_deleted_or_that_others_may_write_changes_nothing(tmp_path, clock):
    path = tmp_path / "p.toml"
    write(path, DENYING)
    found = policies(PolicyChoice(file=str(path)), clock)
    path.unlink()
    assert not found.reload()
    write(path, EMPTY)
    path.chmod(0o666)
    assert not found.reload()
    assert "others may write" in found.failure
    assert await outcome(found) == "deny"
    path.chmod(0o600)
    assert found.reload()
    assert await outcome(found) == "allow"
    await found.close()


@pytest.mark.parametrize("which", FILES)
async def test_a_policy_that_is_broken_at_the_start_denies_everything_until_it_is_mended(which, tmp_path, clock):
    name, empty, _, broken = FILES[which]
    path = tmp_path / name
    write(path, broken)
    found = policies(PolicyChoice(engine=which.split()[0], file=str(path)), clock)
    for about in (document(), document(risk="read"), document(action="desktop.abort"), document(approved=True)):
        assert await outcome(found, about) == "deny"
    write(path, empty)
    clock.now += limits.POLICY_LOOK_MS
    assert await outcome(found) == "allow"
    await found.close()


async def test_a_policy_that_is_missing_or_empty_at_the_start_denies_everything(tmp_path, clock):
    (tmp_path / "folder").mkdir()
    for choice in (
        PolicyChoice(file=str(tmp_path / "none.toml")),
        PolicyChoice(engine="rego", file=str(tmp_path / "folder")),
    ):
        assert await outcome(policies(choice, clock), document(risk="read")) == "deny"


def test_a_policy_that_others_may_write_stops_the_start(tmp_path):
    path = tmp_path / "p.toml"
    write(path, EMPTY)
    path.chmod(0o666)
    with pytest.raises(PermissionMissing):
        first_ruling(PolicyChoice(file=str(path)), open_engine)


async def test_a_folder_of_modules_and_data_is_one_policy(tmp_path, clock):
    folder = tmp_path / "policy"
    folder.mkdir()
    write(
        folder / "a.rego",
        'package surehand\nimport rego.v1\ndecision := {"outcome": data.answer, "rule": "x", "reason": r}\n',
    )
    write(folder / "b.rego", 'package surehand\nr := "because"\n')
    write(folder / "data.json", '{"answer": "deny"}')
    write(folder / "readme.txt", "not a policy")
    found = policies(PolicyChoice(engine="rego", file=str(folder)), clock)
    assert await outcome(found) == "deny"
    write(folder / "data.json", '{"answer": "allow"}')
    clock.now += limits.POLICY_LOOK_MS
    assert await outcome(found) == "allow"
    shutil.rmtree(folder)
    clock.now += limits.POLICY_LOOK_MS
    assert await outcome(found) == "allow"
    assert found.failure is not None
    await found.close()


def test_a_folder_holds_no_more_files_than_are_read(tmp_path):
    for number in range(limits.POLICY_FILES_MAX):
        write(tmp_path / f"m{number:03}.rego", f"package surehand.m{number}\n")
    open_ruling(PolicyChoice(engine="rego", file=str(tmp_path)), open_engine)
    write(tmp_path / "one_past.rego", "package surehand.past\n")
    with pytest.raises(TooLarge, match=str(limits.POLICY_FILES_MAX)):
        open_ruling(PolicyChoice(engine="rego", file=str(tmp_path)), open_engine)


def test_files_and_engines_that_do_not_go_together_are_refused(tmp_path):
    path = tmp_path / "p.rego"
    write(path, REGO_EMPTY)
    for engine in ("builtin", "cedar"):
        with pytest.raises(InvalidRequest):
            open_ruling(PolicyChoice(engine=engine, file=str(path)), open_engine)
    large = tmp_path / "large.toml"
    large.write_text("#" * (limits.POLICY_BYTES_MAX + 1))
    with pytest.raises(Exception, match="at most"):
        open_ruling(PolicyChoice(file=str(large)), open_engine)


# --- configuration --------------------------------------------------------------------------------------------------


def test_the_configuration_names_a_policy_by_path_or_by_engine():
    assert convert(Config, {"policy": "/p.toml"}).enforced == PolicyChoice(file="/p.toml")
    opa = {"engine": "opa", "unix_socket": "/run/opa.sock", "timeout_ms": 200}
    assert convert(Config, {"policy": opa}).enforced.engine == "opa"
    tried = convert(Config, {"policy": {"file": "/p.toml", "mode": "shadow"}})
    assert (tried.enforced, tried.tried.file) == (PolicyChoice(), "/p.toml")


@pytest.mark.parametrize(
    "policy",
    [
        {"engine": "opal"},
        {"engine": "opa", "unix_socket": "/s", "file": "/p.toml"},
        {"engine": "cedar"},
        {"engine": "rego", "url": "http://127.0.0.1", "file": "/p"},
        {"file": "/p.toml", "mode": "off"},
        {"engine": "opa", "unix_socket": "/s", "timeout_ms": 0},
        {"engine": "opa", "unix_socket": "/s", "timeout_ms": limits.POLICY_MS_MAX + 1},
        {"flie": "/p.toml"},
    ],
)
def test_a_configuration_that_names_no_policy_it_could_mean_is_refused(policy):
    with pytest.raises(InvalidRequest):
        convert(Config, {"policy": policy})


def test_two_policies_that_are_only_tried_are_refused():
    with pytest.raises(InvalidRequest):
        convert(Config, {"policy": {"file": "/p", "mode": "shadow"}, "shadow_policy": {"file": "/q"}})


# --- trying ---------------------------------------------------------------------------------------------------------


async def test_a_policy_that_is_tried_changes_nothing_and_its_differences_are_told(tmp_path, clock):
    path = tmp_path / "p.toml"
    write(path, DENYING)
    journal = MemoryJournal(clock=clock)
    found = policies(PolicyChoice(), clock, tried=PolicyChoice(file=str(path), mode="shadow"), journal=journal)
    for _ in range(3):
        assert await outcome(found) == "allow"
    assert await outcome(found, document(approved=True)) == "allow"
    assert await outcome(found, document(facts={"categories": ("own_surface",)})) == "deny"
    await found.shadow.close()
    told = (await found.describe())["shadow"]
    assert (told["agreed"], told["differed"]) == (1, 3)
    assert told["differences"] == [
        {"principal": "agent", "action": "desktop.invoke", "app": "exe:/usr/bin/mousepad", "decided": "allow",
         "rule": "default.isolated", "would_be": "deny", "would_be_rule": "no", "count": 3}
    ]  # fmt: skip
    await found.close()
    events = [event for event in await journal.stream("daemon") if event.type == "policy.shadowed.v1"]
    assert [event.payload["count"] for event in events] == [3]


async def test_a_policy_that_is_tried_and_allows_everything_opens_nothing(tmp_path, clock):
    path = tmp_path / "p.toml"
    allow = DENY.format("all").replace("deny", "allow")
    write(path, f'version = 1\n{allow}covers = ["shared_desktop"]\n')
    found = policies(PolicyChoice(), clock, tried=PolicyChoice(file=str(path)))
    assert await outcome(found, document(facts={"isolation": "shared"})) == "require_approval"
    await found.close()


async def test_a_policy_that_is_tried_and_fails_harms_nobody(clock):
    found = policies(PolicyChoice(), clock, tried=PolicyChoice())
    engine = FalseEngine(RuntimeError("boom"))
    found.shadow.ruling = msgspec.structs.replace(found.shadow.ruling, asked=engine)
    assert await outcome(found) == "allow"
    await found.close()
    assert (await found.describe())["shadow"]["differences"][0]["would_be_rule"] == "engine.error"


async def test_a_policy_that_is_tried_and_slow_holds_up_nobody(clock):
    found = policies(PolicyChoice(), clock, tried=PolicyChoice())
    going = asyncio.Event()

    async def slow(questions):
        await going.wait()
        return [{"outcome": "default"} for _ in questions]

    found.shadow.ruling = msgspec.structs.replace(found.shadow.ruling, asked=FalseEngine(slow))
    for _ in range(limits.SHADOW_PENDING_MAX + 1):
        assert await outcome(found) == "allow"
    going.set()
    await found.close()
    told = found.shadow.report()
    assert (told["agreed"], told["left_out"]) == (limits.SHADOW_PENDING_MAX, 1)


async def test_a_changed_policy_that_is_tried_is_read_again(tmp_path, clock):
    path = tmp_path / "p.toml"
    write(path, DENYING)
    found = policies(PolicyChoice(), clock, tried=PolicyChoice(file=str(path)))
    revision = found.shadow.ruling.revision
    write(path, EMPTY)
    clock.now += limits.POLICY_LOOK_MS
    await outcome(found)
    assert found.shadow.ruling.revision != revision
    write(path, "version = ")
    clock.now += limits.POLICY_LOOK_MS
    assert await outcome(found) == "allow"
    await found.close()
