"""The page of what goes on now, in a real browser, before a real desktop with a real application in it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from surehand import limits
from surehand.model.actions import Invoke, TypeText
from surehand.runtime.config import Config
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.browser.kit import Console, LiveHost
from tests.browser.test_page import AXE
from tests.desktop.cases.kit import Hand, On, write_policy

pytestmark = pytest.mark.desktop

TEXT = "the quick brown fox " * 2_000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, desktop: IsolatedDesktop) -> Iterator[LiveHost]:
    # The desktop outlives the host.
    folder = Path(tmp_path_factory.mktemp("live"))
    made = LiveHost(folder, Config(policy=str(write_policy(folder))))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def on(live: LiveHost, desktop: IsolatedDesktop) -> Iterator[On]:
    """Return an agent on an application."""

    async def reach() -> On:
        app = await FixtureApp.start(desktop, "gtk3")
        return await On.reach(await Hand.connect(live.host, desktop), app)

    made = live.do(reach())
    yield made
    made.app.close()


@pytest.fixture(autouse=True)
def nothing_is_held(live: LiveHost, on: On) -> Iterator[None]:
    yield
    brakes = live.host.parts.brakes
    for hold in brakes.all():
        brakes.off(hold.hold_id)


class Typing:
    """An agent that types a long text."""

    def __init__(self, live: LiveHost, on: On) -> None:
        self._on = on
        live.do(self._focus())
        mark = on.app.mark()
        self.reply: concurrent.futures.Future[Any] = asyncio.run_coroutine_threadsafe(self._type(), live.loop)
        wait(lambda: len(on.app.events("key_press", after=mark)) > 5 or self.reply.done(), "typing")

    async def _focus(self) -> None:
        await self._on.change("set_text", control="name", text="")
        await self._on.focus_window()
        await self._on.change("focus", control="name")
        await self._on.change("sync")

    async def _type(self) -> Any:
        entry = await self._on.entry("name", "Name")
        request = await self._on.hand.request(TypeText(text=TEXT), entry)
        return await self._on.hand.call("act", request=request)


def wait(condition: Callable[[], Any], what: str, seconds: float = 10) -> Any:
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(0.005)
    return value


def halts(live: LiveHost) -> list[Any]:
    async def read() -> list[Any]:
        return [one for one in await live.host.parts.journal.read(limit=5_000) if one.type == "agents.halted.v1"]

    return list(live.do(read()))


async def _held(live: LiveHost) -> dict[str, Any]:
    (desk,) = live.host.parts.desks.attached().values()
    actor: Any = next(one for one in desk.actors if one.backend == "x11")
    found: dict[str, Any] = await actor.physical_state()
    return found


def test_stop_ends_a_long_text_on_a_real_application_with_everything_released(
    page: Page, live: LiveHost, on: On, desktop: IsolatedDesktop
) -> None:
    page.goto("/now")
    desk = page.get_by_role("region", name=desktop.name)
    picture = desk.get_by_role("img", name="as it is now")
    wait(lambda: picture.evaluate("image => image.naturalWidth"), "a picture")
    typing = Typing(live, on)
    expect(desk.locator(".doing")).to_contain_text("type text")
    expect(desk.locator(".outlines div")).to_have_count(1)
    page.get_by_role("button", name="Stop everything").click()
    assert typing.reply.result(10)["status"] == "interrupted"
    expect(page.get_by_role("status").filter(has_text="Stopped.")).to_contain_text("type text: interrupted")
    state = live.do(_held(live))
    assert (state["held"], state["buttons"], state["modifiers"] & 0b1101) == ([], [], 0)
    expect(page.get_by_text("every agent: paused")).to_be_visible()
    expect(desk.locator(".past li").first).to_contain_text("interrupted type text")
    page.get_by_role("button", name="Resume all").click()
    expect(page.get_by_text("every agent: paused")).to_be_hidden()


def test_the_picture_follows_the_desktop(page: Page, live: LiveHost, on: On) -> None:
    page.goto("/now")
    picture = page.get_by_role("img", name="as it is now")
    wait(lambda: "tag=" in (picture.get_attribute("src") or ""), "a first picture")
    before = picture.get_attribute("src")
    live.do(on.change("set_text", control="name", text="something else"))
    wait(lambda: picture.get_attribute("src") != before, "another picture", 30)
    wait(lambda: picture.evaluate("image => image.complete && image.naturalWidth"), "it")


def test_a_desktop_is_paused_taken_and_given_back_from_the_keyboard(
    page: Page, live: LiveHost, on: On, desktop: IsolatedDesktop
) -> None:
    page.goto("/now")
    for press, back, what in (
        ("Pause the agents on", "Resume the agents on", "paused"),
        ("Take over", "Hand back", "taken_over"),
    ):
        page.get_by_role("button", name=f"{press} {desktop.name}").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name=f"{back} {desktop.name}")).to_be_visible()
        reply = live.do(_press(on))
        assert reply["error"]["details"]["what"] == what
        page.get_by_role("button", name=f"{back} {desktop.name}").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name=f"{press} {desktop.name}")).to_be_visible()
        assert live.do(_press(on))["status"] == "succeeded"


async def _press(on: On) -> Any:
    return await on.hand.act(Invoke(), await on.button("Count"))


def test_one_key_stops_everything(page: Page, live: LiveHost, on: On) -> None:
    page.goto("/now")
    typing = Typing(live, on)
    page.keyboard.press("s")
    assert typing.reply.result(10)["status"] == "interrupted"
    # Machines that run tests are busy with other things too; that it takes its time each time is what must not be.
    assert min(one.payload["released_ms"] for one in halts(live)) <= limits.HALT_MS_MAX


def test_what_an_agent_asks_of_a_person_is_taken_and_handed_back(page: Page, live: LiveHost, on: On) -> None:
    page.goto("/now")
    hostile = "please <b>solve</b> this \u202e captcha"
    asked = live.do(on.hand.call("human", reason=hostile, kind="captcha"))
    article = page.get_by_role("article", name="captcha on")
    expect(article).to_contain_text("please <b>solve</b> this")
    article.get_by_role("button", name="Take over").click()
    expect(article).to_contain_text("yours")
    article.get_by_label("Your words to the agent").fill("done; go on")
    article.get_by_role("button", name="Done, hand back").click()
    expect(article).to_be_hidden()
    told = live.do(on.hand.call("human", request_id=asked["request_id"], reason=hostile, kind="captcha"))
    assert (told["status"], told["operator_note"]) == ("done", "done; go on")


def test_it_shows_and_stops_without_a_script(
    browser: Browser, inside: dict[str, Any], live: LiveHost, on: On, console: Console
) -> None:
    context = browser.new_context(storage_state=inside["state"], base_url=inside["base"], java_script_enabled=False)
    page = context.new_page()
    page.goto("/now")
    expect(page.get_by_role("img", name="as it is now")).to_be_visible()
    typing = Typing(live, on)
    page.get_by_role("button", name="Stop everything").click()
    assert typing.reply.result(10)["status"] == "interrupted"
    expect(page.get_by_text("every agent: paused")).to_be_visible()
    context.close()


def test_axe_and_hostile_words_find_nothing_at_either_width_in_either_scheme(
    browser: Browser, inside: dict[str, Any], live: LiveHost, on: On, desktop: IsolatedDesktop
) -> None:
    """With everything that the page can show on it: a request, a pause with a reason, a desktop taken over."""
    host, hostile = live.host, "</q><img src=x onerror=window.hit=1><script>window.hit=1</script>"
    person = live.do(host.open_channel(principal="uid:0", role="control", client={}, desktop=None))
    on.hand.channel.client["name"] = hostile
    live.do(on.hand.call("human", reason=hostile, kind="other"))
    live.do(host.call(person, "pause", {"principal": "uid:5", "reason": hostile}))
    live.do(host.call(person, "take", {"name": desktop.name, "reason": hostile}))
    context = browser.new_context(storage_state=inside["state"], base_url=inside["base"], bypass_csp=True)
    page = context.new_page()
    for width, scheme in ((390, "dark"), (390, "light"), (1280, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto("/now")
        expect(page.locator("main q")).to_contain_text("<script>")
        expect(page.get_by_role("button", name=f"Hand back {desktop.name}")).to_be_visible()
        assert page.locator("main script, main [onerror]").count() == 0
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if AXE.exists():
            page.evaluate(AXE.read_text("utf-8"))
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []
    context.close()
    live.do(host.close_channel(person))
