"""No picture shows a pixel of a secret field, on real toolkits: hidden, in clear, scrolled, scaled, cut off, floating."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from PIL import Image

from surehand.errors import PolicyDenied, SecureSurface
from surehand.model.actions import Invoke
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.runtime.host import Host
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS
from tests.desktop.cases.kit import LONG, Hand, named, until_so, window_of, write_policy

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

APP = Path(__file__).with_name("secret_app.py")
#: With what reads as "hunter" in a text, so that no toolkit's way of saying it is missed.
CODE = "hunter2"
SCALES: dict[int, dict[str, str]] = {1: {}, 2: {"GDK_SCALE": "2", "QT_SCALE_FACTOR": "2"}}
#: Every toolkit at every scale in the long run; else each once, at the scale at which it is less exact.
SHOWN = [
    (toolkit, scale) for toolkit in TOOLKITS for scale in SCALES if LONG or scale == (2 if toolkit != "gtk4" else 1)
]


class Form:
    """The window of one toolkit at one scale."""

    def __init__(self, hand: Hand, toolkit: str, surface: str) -> None:
        self.hand = hand
        self.toolkit = toolkit
        self.surface = surface

    async def press(self, name: str) -> None:
        (button,) = await self.hand.find(self.surface, named(name), {"role": "button"})
        reply = await self.hand.act(Invoke(), button)
        assert reply["status"] == "succeeded", reply

    async def fields(self) -> list[dict[str, Any]]:
        found = await self.hand.find(self.surface, {"role": "password"})
        return [one for one in found if "bounds" in one]

    async def pictures(self) -> list[Image.Image]:
        """Return the window, the desktop, and each field as an element would be shown."""
        asked: list[dict[str, Any]] = [{"surface": self.surface}, {}]
        asked += [{"surface": self.surface, "label": one["label"]} for one in await self.fields()]
        return [picture(await self.hand.call("screenshot", **one)) for one in asked]

    async def check_hidden(self) -> None:
        fields = await self.fields()
        assert fields, "the field is known as a secret"
        assert all(one["secret"] is True and "value" not in one for one in fields)
        for image in await self.pictures():
            assert secret_pixels(image) == 0


def picture(answer: dict[str, Any]) -> Image.Image:
    with Image.open(io.BytesIO(base64.b64decode(answer["png_base64"]))) as opened:
        return opened.convert("RGB")


def secret_pixels(image: Image.Image) -> int:
    """Return how many pixels are magenta or were mixed with it: much red and blue beside little green."""
    red, green, blue = (np.asarray(image, dtype=np.int16)[:, :, channel] for channel in range(3))
    return int(((np.minimum(red, blue) - green) > 60).sum())


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=SHOWN,
    ids=lambda param: f"{param[0]}-scale{param[1]}",
)
async def form(request: pytest.FixtureRequest, host: Host, desktop: IsolatedDesktop) -> AsyncIterator[Form]:
    toolkit, scale = request.param
    app = await desktop.launch(["/usr/bin/python3", "-I", "-B", APP, toolkit], binds=[APP], env=SCALES[scale])
    hand = await Hand.connect(host, desktop)
    try:
        yield Form(hand, toolkit, await hand.window(app.pid, "Form"))
    finally:
        await hand.close()
        await app.terminate()


async def test_fields_are_magenta_where_nobody_paints_them(form: Form) -> None:
    """What the other tests look for is there: the raw picture shows it."""
    desk = form.hand.channel.desk
    assert desk is not None
    assert desk.screen is not None
    surface, _ = await desk.surface(form.surface)

    async def shown() -> bool:
        assert desk.screen is not None
        _, data = await desk.screen.capture(surface)
        with Image.open(io.BytesIO(data)) as opened:
            return secret_pixels(opened.convert("RGB")) > 1_000

    await until_so(shown, "the fields were drawn")


async def test_no_pixel_of_a_secret_field_is_shown_hidden_or_in_clear(form: Form) -> None:
    assert len(await form.fields()) == 2
    await form.check_hidden()
    await form.press("Show")
    assert len(await form.fields()) == 2
    await form.check_hidden()
    text = (await form.hand.call("observe", surface=form.surface, full=True))["text"]
    assert CODE not in text
    for one in await form.fields():
        for method, more in (("read_text", {}), ("find_text", {"find": {"text": CODE}})):
            with pytest.raises(SecureSurface):
                await form.hand.call(method, surface=form.surface, label=one["label"], **more)


async def test_no_pixel_of_a_field_that_is_scrolled_half_out_of_view_is_shown(form: Form) -> None:
    await form.press("Scroll")
    for _ in range(3):
        await form.check_hidden()


async def test_no_pixel_of_a_field_is_shown_wherever_its_window_stands(form: Form) -> None:
    for x, y in ((-60, 30), (1100, 500), (200, 150)):
        moved = await form.hand.act({"kind": "window", "op": "move", "x": x, "y": y}, window_of(form.surface))
        assert moved["status"] == "succeeded", moved
        await form.check_hidden()


async def test_no_pixel_of_a_field_in_a_pop_up_is_shown(form: Form) -> None:
    if form.toolkit != "gtk4":
        pytest.skip("only GTK 4 has a pop-up that holds a field in a window of its own")
    await form.press("Float")

    async def floats() -> bool:
        desk = form.hand.channel.desk
        assert desk is not None
        assert desk.screen is not None
        return bool(await desk.screen.popups())

    await until_so(floats, "the pop-up shows")
    for image in await form.pictures():
        assert secret_pixels(image) == 0


async def test_no_pixel_of_a_closed_application_is_shown_whatever_stands_before_it(
    form: Form, desktop: IsolatedDesktop, tmp_path: Path
) -> None:
    """Its fields are not even looked at, so its whole window is painted, the part behind another window too."""
    windows = (await form.hand.call("surfaces"))["surfaces"]
    app = next(one["app"] for one in windows if one["surface_id"] == form.surface)
    closed = f'version = 1\n[[rule]]\nid = "c"\neffect = "deny"\nreason = "closed"\n[rule.match]\napp = ["{app}"]\n'
    host = await build_host(Config(policy=str(write_policy(tmp_path, closed))), state_dir=tmp_path / "state")
    cover = await desktop.launch(["xterm", "-geometry", "20x5+250+200"])
    try:
        hand = await Hand.connect(host, desktop)
        # Again and again while another window comes up before it: in none of them is a pixel of it.
        for _ in range(4):
            answer = await hand.call("screenshot")
            assert secret_pixels(picture(answer)) == 0
            assert answer["covered_windows"] >= 1
        with pytest.raises(PolicyDenied):
            await hand.call("screenshot", surface=form.surface)
        await hand.close()
    finally:
        await cover.terminate()
        await host.close()
