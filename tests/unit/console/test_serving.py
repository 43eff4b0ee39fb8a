"""The serving process itself, over real connections: what it costs to say nothing, too much, or too often."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from surehand import limits
from surehand.console.door import Door
from surehand.console.pages.approvals import _Memory
from surehand.console.server import serve
from surehand.core.approval import ask
from tests.browser.kit import presentation
from tests.unit.console.conftest import Pages


class Served:
    """The page, and raw requests to it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.port = int(door.host.partition(":")[2])
        self.cookie = ""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def answer(self, path: str) -> tuple[bytes, bytes]:
        """Send a request that ends its connection; return head and body."""
        reader, writer = await self.connect()
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.door.host}", f"Cookie: {self.cookie}", "Connection: close"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        whole = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        head, _, body = whole.partition(b"\r\n\r\n")
        return head, body

    async def head(self, path: str, *more: str) -> bytes:
        """Send a request on a connection of its own; return the answer's head, and hang up."""
        reader, writer = await self.connect()
        try:
            lines = [f"GET {path} HTTP/1.1", f"Host: {self.door.host}", f"Cookie: {self.cookie}", *more, "", ""]
            writer.write("\r\n".join(lines).encode())
            return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        finally:
            writer.close()

    async def enter(self) -> None:
        head = await self.head(self.door.link().removeprefix(self.door.origin))
        line = next(one for one in head.split(b"\r\n") if one.lower().startswith(b"set-cookie"))
        self.cookie = line.partition(b": ")[2].partition(b";")[0].decode()


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    up: asyncio.Future[Door] = asyncio.get_running_loop().create_future()

    @contextlib.asynccontextmanager
    async def ready(door: Door) -> AsyncIterator[None]:
        up.set_result(door)
        yield

    task = asyncio.create_task(serve(None, folder / "keys", None, ready=ready))
    try:
        served = Served(await asyncio.wait_for(up, 10))
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(ConnectionError):
                    await served.enter()
                    break
        yield served
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(limits, "CONSOLE_PULSE_MS", 50)
    monkeypatch.setattr(limits, "CONSOLE_CONNECTIONS_MAX", 24)
    async with serving(tmp_path) as found:
        yield found


async def test_a_head_is_taken_up_to_its_bound_and_not_beyond(served: Served) -> None:
    used = len(f"GET /approvals HTTP/1.1\r\nHost: {served.door.host}\r\nCookie: {served.cookie}\r\nX-Long: \r\n\r\n")
    assert b"200 OK" in await served.head("/approvals", "X-Long: " + "a" * (limits.CONSOLE_HEAD_BYTES_MAX - used))
    past = await served.head("/approvals", "X-Long: " + "a" * (limits.CONSOLE_HEAD_BYTES_MAX * 8))
    assert b"400 Bad Request" in past


async def test_a_connection_that_asks_for_nothing_is_closed_and_one_that_asks_is_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_HEAD_MS_MAX", 300)
    silent, writer = await served.connect()
    partly, second = await served.connect()
    second.write(b"GET /approvals HT")
    for reader in (silent, partly):
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    second.close()
    assert b"200 OK" in await served.head("/approvals")


@pytest.mark.parametrize("part", ["GET /approvals HT", "POST /leave"])
async def test_a_later_request_of_a_connection_has_no_more_time_than_the_first(
    served: Served, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_HEAD_MS_MAX", 300)
    reader, writer = await served.connect()
    own = f"Host: {served.door.host}\r\nCookie: {served.cookie}\r\n"
    writer.write(f"GET /approvals HTTP/1.1\r\n{own}\r\n".encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    await asyncio.wait_for(reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0])), 5)
    if part.startswith("POST"):
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100"
        part += f" HTTP/1.1\r\n{own}Origin: {served.door.origin}\r\n{form}\r\n\r\na"
    writer.write(part.encode())
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 4) == b""
    writer.close()


async def test_a_connection_of_another_user_is_closed_before_it_asks(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: uid + 1)  # the page's user is another than this test's
    reader, writer = await served.connect()
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    monkeypatch.undo()


async def test_no_more_streams_than_a_browser_may_have_and_each_says_that_it_lives(served: Served) -> None:
    open_: list[asyncio.StreamWriter] = []
    lines = f"GET /events HTTP/1.1\r\nHost: {served.door.host}\r\nCookie: {served.cookie}\r\n\r\n".encode()

    async def stream() -> bytes:
        reader, writer = await served.connect()
        open_.append(writer)
        writer.write(lines)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        if b"200 OK" in head:
            body = await asyncio.wait_for(reader.readuntil(b":\n\n"), 10)
            assert b'data: {"event": "daemon.lost"}' in body
        return head

    for _ in range(limits.CONSOLE_STREAMS_MAX):
        assert b"200 OK" in await stream()
    assert b"413" in await stream()
    for writer in open_:
        writer.close()
    # What hung up is let go of once the stream next says that it lives.
    async with asyncio.timeout(5):
        while b"200 OK" not in await stream():
            pass
    for writer in open_:
        writer.close()


async def test_a_stream_tells_nothing_once_its_session_is_over(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_PULSE_MS", 300)
    reader, writer = await served.connect()
    writer.write(f"GET /events HTTP/1.1\r\nHost: {served.door.host}\r\nCookie: {served.cookie}\r\n\r\n".encode())
    await asyncio.wait_for(reader.readuntil(b"}\n\n\r\n"), 10)
    session = served.door.session(served.cookie.partition("=")[2])
    assert session is not None
    served.door.leave(session)
    rest = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
    assert rest == b"0\r\n\r\n"
    writer.close()


async def test_more_connections_than_there_may_be_are_told_to_wait(served: Served) -> None:
    open_ = [await served.connect() for _ in range(limits.CONSOLE_CONNECTIONS_MAX + 1)]
    assert b"503" in await served.head("/approvals")
    for _, writer in open_:
        writer.close()
    async with asyncio.timeout(5):
        while b"200 OK" not in await served.head("/approvals"):
            pass


async def test_a_page_that_fails_says_so_and_costs_no_other_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("what nobody is to read")

    with monkeypatch.context() as patch:
        patch.setattr("surehand.console.pages.approvals._memory", broken)
        for _ in range(limits.CONSOLE_CONNECTIONS_MAX + 1):
            head, body = await served.answer("/approvals")
            assert b"500" in head
            assert b"ZeroDivisionError" in body
            assert b"nobody is to read" not in body
    assert b"200 OK" in await served.head("/approvals")


def test_what_a_browser_was_shown_and_answered_is_remembered_within_bounds() -> None:
    memory = _Memory()
    for number in range(limits.CONSOLE_SHOWN_MAX + 1):
        memory.show(ask(presentation(), approval_id=f"ap{number}", operation_id="o", now_ms=1))
        assert ("ap0" in memory.shown) is (number < limits.CONSOLE_SHOWN_MAX)
    assert len(memory.shown) == limits.CONSOLE_SHOWN_MAX
    for number in range(limits.CONSOLE_ANSWERED_MAX + 1):
        memory.note((f"ap{number}", "key:ann"), {"text": "", "tone": ""})
        assert (("ap0", "key:ann") in memory.answered) is (number < limits.CONSOLE_ANSWERED_MAX)
    assert len(memory.answered) == limits.CONSOLE_ANSWERED_MAX


def test_a_page_that_loads_itself_again_takes_no_notice_from_the_one_that_is_about_to_show_it(pages: Pages) -> None:
    browser, _ = pages.inside()
    session = pages.door.session(browser.cookies[pages.door.cookie])
    assert session is not None
    browser.get("/approvals")
    session.kept["/approvals"].flash = {"tone": "good", "text": "Approved, as ann"}
    assert "Approved, as ann" not in browser.get("/approvals", headers={"X-Surehand-By-Itself": "1"}).text
    assert "Approved, as ann" in browser.get("/approvals").text
    assert "Approved, as ann" not in browser.get("/approvals").text
