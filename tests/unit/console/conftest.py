"""The guarded pages in this process, with a browser's requests as a test writes them; no daemon answers behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from surehand.console.credentials import Credentials, Keys
from surehand.console.daemon import Daemon
from surehand.console.door import Door
from surehand.console.pages.listed import PAGES
from surehand.console.peers import Peer
from surehand.console.server import build
from surehand.console.views import Console

PORT = 47_001
ORIGIN = f"http://localhost:{PORT}"
UID = 1000
#: As a browser sends a form of the page itself.
OWN = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


class Pages:
    """The pages, a clock that a test moves, and whose connection it is."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = 1_000_000
        self.peer: Peer | None = Peer(UID, 1)
        self.opened: list[int | None] = []
        self.door = Door(PORT, lambda: self.now_ms)
        self.daemon = Daemon(PORT)
        shared = Console(
            daemon=self.daemon,
            door=self.door,
            credentials=Credentials([Keys(folder / "keys")]),
            pages=tuple((one.TITLE, one.PATH) for one in PAGES),
        )
        self._app = build(shared, uid=UID, opened=self.opened.append)

    async def __call__(self, scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        scope.setdefault("state", {})["peer"] = self.peer
        await self._app(scope, receive, send)

    def browser(self) -> TestClient:
        return TestClient(self, base_url=ORIGIN, follow_redirects=False)

    def inside(self) -> tuple[TestClient, str]:
        """Return a browser that came in, and its forms' token."""
        browser = self.browser()
        assert browser.get(self.door.link()).status_code == 200
        secret = browser.cookies[self.door.cookie]
        session = self.door.session(secret)
        assert session is not None
        return browser, session.csrf


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "none"))
    return Pages(tmp_path)
