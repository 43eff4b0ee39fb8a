"""A browser that shows the console page is out of an agent's reach, each way an agent might try (spec §6.2).

The desktop has no walls, so that a browser in it reaches the page as a person's would; the operator opens it there.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
import shutil
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surehand.testing.desktop import IsolatedDesktop
from tests.browser.kit import Console, console_of
from tests.desktop.mcp.test_people import Agent, Stage, asked_to_pay, stage

__all__ = ["stage"]

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]
ALWAYS = ("--no-sandbox", "--password-store=basic", "--no-first-run", "--disable-gpu", "--force-renderer-accessibility")
#: Painted over all of the harmless page, and so of what the desktop's picture shows of the browser.
GREEN = "data:text/html,<title>harmless</title><body style='background:rgb(0,200,0)'><button>Press</button>"


@pytest.fixture
async def open_desktop() -> AsyncIterator[IsolatedDesktop]:
    async with await IsolatedDesktop.start(sandbox=False) as desktop:
        yield desktop


async def browse(desktop: IsolatedDesktop, profile: str, address: str) -> Any:
    home = desktop.folder / "home"
    return await desktop.launch(
        ["chromium", *ALWAYS, f"--user-data-dir={home}/{profile}", address], env={"HOME": str(home)}
    )


async def windows(agent: Agent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.data("list_windows"))["windows"]
    return found


async def until(agent: Agent, *, there: bool) -> list[dict[str, Any]]:
    async with asyncio.timeout(30):
        while bool(found := await windows(agent)) is not there:
            pass
    return found


async def greens(agent: Agent) -> int:
    """Return how many pixels of the desktop's picture are the harmless page's."""
    found = await agent.call("screenshot")
    if found.is_error:
        return 0
    (image,) = (part for part in found.content if part.type == "image")
    with Image.open(io.BytesIO(base64.b64decode(image.data))) as opened:
        pixels = np.asarray(opened.convert("RGB"), dtype=np.int16)
    return int(((pixels[:, :, 1] > 150) & (pixels[:, :, 0] < 60) & (pixels[:, :, 2] < 60)).sum())


async def test_a_browser_that_shows_the_console_is_neither_read_nor_pictured_nor_operated(
    stage: Stage, open_desktop: IsolatedDesktop
) -> None:
    desktop = open_desktop
    keys = f"{stage.environment['SUREHAND_RUNTIME_DIR']}/state/keys"
    async with stage.client(desktop.name) as agent, stage.client() as other:
        approval_id = await asked_to_pay(other, "self-console")
        app = await browse(desktop, "one", GREEN)
        # While it shows something else it is as any application.
        window = (await until(agent, there=True))[0]
        async with asyncio.timeout(30):
            while not await greens(agent):
                pass
        with console_of(stage.folder, keys) as console:
            await browse(desktop, "one", await asyncio.to_thread(console.link))
            await asyncio.to_thread(console.terminal.expect, "opened by process")
            await until(agent, there=False)
            await each_way_is_closed(agent, window["window"], console)
            # Its process is out of reach whatever it shows beside: no other window or tab of it helps.
            await browse(desktop, "one", GREEN)
            assert await windows(agent) == []
            assert await greens(agent) == 0
            assert approval_id in {one["approval_id"] for one in (await stage.operator("approvals", "list"))["pending"]}
            assert stage.app.presses("pay") == []
        # The page is gone; what it left standing in a tab is still called by its name, the harmless one can be read.
        await until(agent, there=True)
        await app.terminate()


async def each_way_is_closed(agent: Agent, surface: str, console: Console) -> None:
    port = console.port
    for where in ({"app": "chromium"}, {"window": surface}):
        for name, arguments in (
            ("observe", {}),
            ("screenshot", {}),
            ("query", {"filters": [{"role": "button"}]}),
            ("read_text", {}),
            ("press_key", {"keys": ["a"]}),
            ("type_text", {"text": "a"}),
            ("invoke", {"target": {"role": "button", "name": "Approve"}}),
            ("set_value", {"target": {"role": "text", "name": "Passphrase"}, "value": "guess"}),
        ):
            found = await agent.call(name, **arguments, **where)
            assert found.is_error, (name, where, found.structured_content)
    assert await greens(agent) == 0
    for address in (
        f"http://localhost:{port}/",
        f"localhost:{port}",
        f"http://[::1]:{port}/x",
        f"http://a.example:{port}",
    ):
        found = await agent.call("launch_app", name="chromium", arguments=[address], operation_id=os.urandom(8).hex())
        assert found.is_error, address
        assert found.structured_content["error"]["code"] == "policy_denied", found.structured_content
        assert "own-surfaces" in str(found.structured_content)


async def test_a_process_with_a_window_that_only_claims_to_show_it_is_closed_while_there_is_one(
    stage: Stage, open_desktop: IsolatedDesktop
) -> None:
    desktop = open_desktop
    keys = f"{stage.environment['SUREHAND_RUNTIME_DIR']}/state/keys"
    async with stage.client(desktop.name) as agent:
        with console_of(stage.folder, keys) as console:
            await asyncio.to_thread(console.link)
            title = "Approvals - Surehand console"
            await browse(desktop, "two", f"data:text/html,<title>{title}</title><button>Approve</button>")
            async with asyncio.timeout(30):
                while "Surehand console" not in await titles(desktop):
                    pass
            # Windows without a title that belong to it, such as a browser's own lists, go with it.
            await until(agent, there=False)
            found = await agent.call("observe", app="chromium")
            assert found.is_error


async def titles(desktop: IsolatedDesktop) -> str:
    """Return what the windows of a desktop are called, as its window manager knows."""
    words = ("xprop", "-root", "-notype", "_NET_CLIENT_LIST")
    listed = await run(desktop, *words)
    ids = [word.strip(",") for word in listed.split() if word.startswith("0x")]
    return "\n".join([await run(desktop, "xprop", "-id", one, "-notype", "_NET_WM_NAME") for one in ids])


async def run(desktop: IsolatedDesktop, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *words, env=desktop.environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    return (await process.communicate())[0].decode()
