"""Answers that are lost, and callers that go away, with the real daemon and client (cases C18, C22, C23, C25, C38)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import surehand
from surehand import limits
from surehand.errors import OutcomeUnknown, SurehandError
from surehand.model.actions import Invoke, PhysicalState, SetValue
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.crash.daemon_kit import Daemon, check_history, look
from tests.desktop.cases.kit import until_so

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

CLI = [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main(sys.argv[1:]))"]
#: How long a handler blocks: longer than a verification, so that nothing can be read back in time.
_BLOCK_MS = limits.VERIFY_BUDGET_MS_DEFAULT + 500


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TOOLKITS)
async def each(request: pytest.FixtureRequest, desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    running = await FixtureApp.start(desktop, request.param, sections=["buttons", "text"])
    yield running
    running.close()


def field(scene: surehand.Scene) -> surehand.Target:
    """Return the one field that holds what the tests put there, whatever its toolkit calls it."""
    (found,) = [one for one in scene.targets if one.role == "text" and one.text == "before"]
    return found


def button(scene: surehand.Scene, name: str) -> surehand.Target:
    (found,) = [one for one in scene.targets if (one.role, one.name) == ("button", name)]
    return found


def command(daemon: Daemon, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command line as a person would."""
    return subprocess.run(
        [*CLI, *words], env=daemon.environment, capture_output=True, text=True, timeout=30, check=False
    )


async def test_c23_a_daemon_that_dies_between_the_effect_and_its_reply(
    daemon: Daemon, desktop: IsolatedDesktop, each: FixtureApp
) -> None:
    await each.run("set_text", control="name", text="before")
    await each.run("arm", control="name", do={"cmd": "sleep", "ms": 1_000})
    mark = each.mark()
    daemon.start()
    async with surehand.connect(desktop=desktop.name, start=False) as hand:
        entry = field(await look(hand, each))
        writing = asyncio.create_task(hand.act(SetValue(value="once"), entry, operation_id="the-one"))
        await each.wait_for("text", "name", after=mark, where=lambda event: event.value in {"once", ""})
        daemon.kill()
        with pytest.raises(SurehandError) as caught:
            await writing
    # Nobody is left to ask; that is no failure and no success.
    assert isinstance(caught.value, OutcomeUnknown)
    assert not caught.value
    assert not caught.value.retry_safe

    await each.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
    await each.settle()
    arrived = [event.value for event in each.events("text", "name", after=mark) if event.value]
    daemon.start()
    async with surehand.connect(desktop=desktop.name, start=False) as hand:
        scene = await look(hand, each)
        entry = next(one for one in scene.targets if one.role == "text" and one.text in {"once", "before", ""})
        # The same id: what became of it, and nothing more.
        with pytest.raises(OutcomeUnknown):
            await hand.act(SetValue(value="once"), entry, operation_id="the-one")
        # The same id for another text: that is another effect.
        with pytest.raises(SurehandError) as caught:
            await hand.act(SetValue(value="another"), entry, operation_id="the-one")
        assert caught.value.code == "conflict"
        # A new id for the same effect: only after somebody looked.
        with pytest.raises(SurehandError) as caught:
            await hand.act(SetValue(value="once"), entry, operation_id="the-other")
        assert caught.value.code == "reconcile_required"
    await each.settle()
    assert [event.value for event in each.events("text", "name", after=mark) if event.value] == arrived
    assert len(arrived) <= 1
    daemon.stop()
    assert daemon.verify()["counts"]["unended"] == 0
    assert check_history((await daemon.operations())["the-one"]) == "outcome_unknown"


async def test_c25_two_connections_with_one_id_at_once_are_one_effect_told_to_both(
    daemon: Daemon, desktop: IsolatedDesktop, each: FixtureApp
) -> None:
    daemon.start()
    mark = each.mark()
    async with (
        surehand.connect(desktop=desktop.name, start=False) as one,
        surehand.connect(desktop=desktop.name, start=False) as other,
    ):
        targets = [button(await look(hand, each), "Count") for hand in (one, other)]
        results = await asyncio.gather(
            one.act(Invoke(), targets[0], operation_id="together"),
            other.act(Invoke(), targets[1], operation_id="together"),
        )
        await each.settle()
        assert each.presses("counter", after=mark) == ["Count"]
        assert [result.status for result in results] == ["succeeded", "succeeded"]
        assert results[0].reply["proof"] == results[1].reply["proof"]
        assert results[0].reply["terminal"] == results[1].reply["terminal"]


async def test_c18_c22_every_face_says_the_same_of_a_failure_and_of_an_unknown(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    daemon.start()
    await app.run("arm", control="later", do={"cmd": "sleep", "ms": _BLOCK_MS})
    never = {"kind": "appears", "query": {"filters": [{"name": {"text": "never"}}]}}
    async with surehand.connect(desktop=desktop.name, start=False) as hand:
        scene = await look(hand, app)
        with pytest.raises(OutcomeUnknown) as caught:
            await hand.act(Invoke(), button(scene, "Later"), operation_id="unknown", verify=never)
        assert not caught.value
        await app.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
        scene = await look(hand, app)
        with pytest.raises(surehand.VerificationFailed):
            await hand.act(Invoke(), button(scene, "Count"), operation_id="failed", verify=never)
    surface = scene.surface
    for name, code, exit_code in (("unknown", "outcome_unknown", 4), ("failed", "verification_failed", 1)):
        target = {"unknown": "Later", "failed": "Count"}[name]
        words = ["act", "invoke", "--surface", surface, "--role", "button", "--name", target, "--id", name]
        words += ["--verify", json.dumps(never), "--desktop", desktop.name, "--json"]
        done = await asyncio.to_thread(command, daemon, words)
        answer = json.loads(done.stdout)
        assert (answer["ok"], answer["error"]["code"], done.returncode) == (False, code, exit_code), done.stderr
        assert answer["error"]["retry_safe"] is False
    daemon.stop()
    ended = {name: check_history(history) for name, history in (await daemon.operations()).items()}
    assert (ended["unknown"], ended["failed"]) == ("outcome_unknown", "failed")


CLIENT = textwrap.dedent("""
    import asyncio, sys
    import surehand
    from surehand.model.actions import Hold, Invoke, SetValue
    from tests.crash.daemon_kit import look

    async def main(desktop, title, what):
        class App:
            pass
        App.title = title
        async with surehand.connect(desktop=desktop, start=False) as hand:
            scene = await look(hand, App)
            (count,) = [one for one in scene.targets if (one.role, one.name) == ("button", "Count")]
            if what == "hold":
                await hand.act(Hold(), count, operation_id="held")
                print("holding", flush=True)
                await asyncio.get_running_loop().create_future()
            number = 0
            while True:
                number += 1
                print(f"press-{number}", flush=True)
                await hand.act(Invoke(), count, operation_id=f"press-{number}")

    asyncio.run(main(*sys.argv[1:]))
""")


def client(desktop: IsolatedDesktop, app: FixtureApp, what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, desktop.name, app.title, what],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


async def physical(hand: surehand.AsyncHand) -> dict[str, object]:
    result = await hand.act(PhysicalState(), {"kind": "none"})
    return dict(result.reply["output"])


async def let_go(hand: surehand.AsyncHand) -> bool:
    return not (await physical(hand))["buttons"]


async def test_a_client_that_is_killed_leaves_honest_ends_and_disturbs_nobody(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    daemon.start()
    mark = app.mark()
    with client(desktop, app, "press") as doomed:
        await app.wait_for("press", "counter", after=mark, timeout_s=15)
        doomed.send_signal(signal.SIGKILL)
        said = doomed.communicate()[0].split()
    async with surehand.connect(desktop=desktop.name, start=False) as hand:
        result = await hand.act(Invoke(), button(await look(hand, app), "Later"))
        assert result.status == "succeeded"

        async def quiet() -> bool:
            status = await hand.status(said[-1])
            return not status.get("in_flight", False)

        await until_so(quiet, "the end of what the client had in flight")
    await app.settle()
    pressed = len(app.presses("counter", after=mark))
    daemon.stop()
    assert daemon.verify()["counts"]["unended"] == 0
    histories = await daemon.operations()
    ended = [check_history(histories.get(name, [])) for name in said]
    # Only what was in flight may be anything but a success; what was not dispatched did not happen.
    assert set(ended[:-1]) <= {"succeeded"}
    assert ended[-1] in {"succeeded", "outcome_unknown", "nothing"}
    sure = ended.count("succeeded")
    assert sure <= pressed <= sure + ended.count("outcome_unknown")


@pytest.mark.parametrize("whose", ["the client's", "the daemon's"])
async def test_c38_a_held_button_goes_up_with_whoever_held_it(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp, whose: str
) -> None:
    daemon.start()
    with client(desktop, app, "hold") as doomed:
        assert doomed.stdout is not None
        assert await asyncio.to_thread(doomed.stdout.readline) == "holding\n"
        async with surehand.connect(desktop=desktop.name, start=False) as hand:
            assert (await physical(hand))["buttons"] == [1]
            if whose == "the client's":
                doomed.kill()
                doomed.wait(5)
                await until_so(lambda: let_go(hand), "the release")
        if whose == "the daemon's":
            daemon.kill()
            doomed.kill()
            doomed.wait(5)
            daemon.start()
            async with surehand.connect(desktop=desktop.name, start=False) as hand:
                await until_so(lambda: let_go(hand), "the release")


async def test_a_caller_that_leaves_while_it_waits_its_turn_takes_its_request_along(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    daemon.start()
    mark = app.mark()
    await app.run("arm", control="name", do={"cmd": "sleep", "ms": _BLOCK_MS})
    async with surehand.connect(desktop=desktop.name, start=False) as first:
        await app.run("set_text", control="name", text="before")
        entry = field(await look(first, app))
        async with surehand.connect(desktop=desktop.name, start=False) as second:
            later = button(await look(second, app), "Later")
            writing = asyncio.create_task(first.act(SetValue(value="slow"), entry, operation_id="slow"))
            await app.wait_for("text", "name", after=mark)
            waiting = asyncio.create_task(second.act(Invoke(), later, operation_id="waiting"))

            async def proposed() -> bool:
                return bool((await first.status("waiting")).get("in_flight"))

            await until_so(proposed, "the second request")
        with pytest.raises((SurehandError, asyncio.CancelledError)):
            await waiting
        # It either read the text back once the handler was over, or does not know.
        with contextlib.suppress(OutcomeUnknown):
            assert (await writing).status == "succeeded"
    await app.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
    await app.settle()
    assert app.presses("later", after=mark) == []
    daemon.stop()
    assert check_history((await daemon.operations()).get("waiting", [])) == "nothing"
