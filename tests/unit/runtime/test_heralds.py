"""Nobody misses a question: a real web server and a real session bus hear of it, signed and without the screen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

from surehand import limits
from surehand.adapters.notify_dbus import DesktopNotices, session_bus
from surehand.adapters.webhook import Webhook, check_address
from surehand.errors import InvalidRequest, Unavailable
from surehand.model.approval import Notice
from surehand.runtime.heralds import Heralds
from surehand.signing.ed25519 import SigningKey, verify
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_people import ASK
from tests.unit.runtime.test_people import Scene, until

KEY = SigningKey(b"a webhook's seed for tests, no..")


class Server:
    """A web server that keeps what it was sent and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.came = threading.Condition()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with server.came:
                    server.got.append((dict(self.headers), body))
                    server.came.notify_all()
                self.send_response(server.statuses.pop(0) if server.statuses else 204)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._http = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_port}/hook?a=1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    async def until(self, count: int) -> list[dict[str, Any]]:
        def wait() -> None:
            with self.came:
                assert self.came.wait_for(lambda: len(self.got) >= count, 10), self.got

        await asyncio.to_thread(wait)
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


@contextlib.asynccontextmanager
async def told(*heralds: Any, **options: Any) -> AsyncIterator[tuple[Scene, Heralds]]:
    scene = await Scene(World([button("pay", "Pay 10 to carol")], policy=ASK)).open()
    found = Heralds(heralds, scene.world.clock, **{"pauses_s": (0.01, 0.01), **options})
    found.start()
    scene.host.listen(found.heard)
    try:
        yield scene, found
    finally:
        await found.close()
        await scene.host.close()


# --- a webhook ------------------------------------------------------------------------------------------------------


async def test_a_web_server_hears_of_a_question_and_its_end_signed_and_without_the_screen(server: Server) -> None:
    async with told(Webhook(server.address, KEY)) as (scene, _):
        await scene.act("op", handle="pay")
        (pending,) = scene.world.approvals.pending()
        (asked,) = await server.until(1)
        await scene.world.answer(pending, "deny")
        await scene.act("op", handle="pay")
        _, ended = await server.until(2)
    assert (asked["approval_id"], asked["presentation_hash"]) == (pending.approval_id, pending.presentation_hash)
    assert (asked["categories"], asked["action"]) == (["purchase"], "desktop.invoke")
    assert (ended["event"], ended["approval_id"], ended["state"]) == ("approval.ended", pending.approval_id, "denied")
    for headers, body in server.got:
        assert b"carol" not in body
        assert "presentation" not in json.loads(body)
        message = b"surehand/webhook/v1\x00" + headers["Surehand-Timestamp"].encode() + b"." + body
        signature = bytes.fromhex(headers["Surehand-Signature"])
        assert headers["Surehand-Key"] == KEY.key_id
        assert verify(bytes.fromhex(KEY.public_key), message, signature)
        assert not verify(bytes.fromhex(KEY.public_key), message + b" ", signature)


async def test_an_operator_who_wants_the_whole_question_told_gets_it(server: Server) -> None:
    async with told(Webhook(server.address, KEY, content=True)) as (scene, _):
        await scene.act("op", handle="pay")
        (asked,) = await server.until(1)
    assert asked["presentation"]["element"] == "button Pay 10 to carol"


async def test_a_web_server_that_fails_is_tried_again_so_often_and_redirects_lead_nowhere(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.statuses = [500, 302, 200, 503, 503, 503]
    with caplog.at_level(logging.WARNING, "surehand.heralds"):
        async with told(Webhook(server.address, KEY)) as (scene, _):
            await scene.act("op", handle="pay")
            first = await server.until(3)
            await scene.act("op-2", handle="pay")
            assert len({one["approval_id"] for one in first}) == 1
            await server.until(6)
            await scene.act("op-3", handle="pay")
            last = (await server.until(7))[-1]
            assert last["approval_id"] == scene.world.approvals.pending()[-1].approval_id
    assert "answers 302" in caplog.text
    assert "carol" not in caplog.text


async def test_a_web_server_that_answers_nothing_holds_nobody_up() -> None:
    class Silent:
        name = "silent"

        async def tell(self, _: Notice) -> None:
            await asyncio.Event().wait()

        async def close(self) -> None:
            pass

    heard: list[str] = []

    class Other(Silent):
        async def tell(self, notice: Notice) -> None:
            heard.append(notice.approval_id)

    async with told(Silent(), Other(), timeout_s=60) as (scene, heralds):
        for number in range(3):
            assert (await scene.act(f"op-{number}", handle="pay"))["status"] == "approval_required"
        await until(lambda: len(heard) == 3)
        (pending, *_) = scene.world.approvals.pending()
        for _ in range(limits.NOTICES_QUEUED_MAX + 10):
            heralds.heard({"event": "approval.ended", "approval_id": pending.approval_id, "state": "used"})
        assert [len(line.queue) for line in heralds._lines] == [limits.NOTICES_QUEUED_MAX] * 2


async def test_what_is_open_at_a_start_is_told_again(server: Server) -> None:
    world = World(policy=ASK)
    await world.act("op")
    again = await world.restart()
    heralds = Heralds([Webhook(server.address, KEY)], again.clock, pauses_s=())
    heralds.start(again.approvals.pending())
    (asked,) = await server.until(1)
    await heralds.close()
    assert asked["approval_id"] == again.approvals.pending()[0].approval_id


async def test_a_server_that_is_not_there_is_unavailable(server: Server) -> None:
    server.close()
    with pytest.raises(Unavailable, match="does not answer"):
        await Webhook(server.address, KEY).tell(Notice(event="approval.ended", approval_id="a", state="used"))


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/",
        "ftp://localhost/",
        "https://ann:pw@example.org/",
        "https:///x",
        "https://h:x/",
        "https://h/#a",
    ],
)
def test_notices_go_over_tls_or_stay_on_this_machine(address: str) -> None:
    with pytest.raises(InvalidRequest):
        check_address(address)


def test_an_address_over_tls_or_of_this_machine_will_do() -> None:
    for address in ("https://example.org/hook", "http://localhost:8080/", "http://[::1]/x"):
        check_address(address)


# --- requests for help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [False, True])
async def test_a_request_for_help_is_told_like_a_question_and_its_words_only_where_wanted(
    server: Server, content: bool
) -> None:
    async with told(Webhook(server.address, KEY, content=content)) as (scene, _):
        asked = await scene.ask("read me the code 918273")
        (requested,) = await server.until(1)
        await scene.control("requests.take", request_id=asked["request_id"])
        _, taken = await server.until(2)
        await scene.control("requests.done", request_id=asked["request_id"], note="the note")
        *_, ended = await server.until(3)
    assert (requested["event"], requested["request_id"], requested["kind"]) == (
        "human.requested",
        asked["request_id"],
        "captcha",
    )
    assert ("918273" in json.dumps(requested)) == content
    assert [(one["event"], one["state"]) for one in (taken, ended)] == [
        ("human.ended", "taken"),
        ("human.ended", "done"),
    ]
    assert not any(b"the note" in body for _, body in server.got)


async def test_a_request_for_help_is_notified_without_the_agents_words_and_goes_when_it_is_taken(bus: str) -> None:
    shower, got, came = await desktop(bus)
    async with told(DesktopNotices(bus)) as (scene, _):
        asked = await scene.ask("type <b>your password</b> here")
        async with asyncio.timeout(10):
            await came.get()
            _, _, _, head, body, actions, _, _ = got[0].body
            assert (head, actions) == ("An agent asks for your help", [])
            assert "password" not in body
            assert "a captcha" in body
            await scene.control("requests.take", request_id=asked["request_id"])
            await came.get()
    assert (got[1].member, got[1].body) == ("CloseNotification", [7])
    shower.disconnect()


# --- a desktop ------------------------------------------------------------------------------------------------------


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    """A session bus of its own."""
    address = f"unix:path={tmp_path}/bus"
    argv = ["dbus-daemon", "--session", "--nofork", f"--address={address}", "--print-address"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline()
        yield address
        daemon.terminate()


async def desktop(address: str) -> tuple[MessageBus, list[Message], asyncio.Queue[str]]:
    """Be the one who shows notifications."""
    bus = await MessageBus(bus_address=address).connect()
    got: list[Message] = []
    came: asyncio.Queue[str] = asyncio.Queue()

    def take(message: Message) -> Message | None:
        if message.interface != "org.freedesktop.Notifications" or message.message_type is not MessageType.METHOD_CALL:
            return None
        got.append(message)
        came.put_nowait(message.member or "")
        return (
            Message.new_method_return(message, "u", [7])
            if message.member == "Notify"
            else Message.new_method_return(message)
        )

    bus.add_message_handler(take)
    await bus.request_name("org.freedesktop.Notifications")
    return bus, got, came


async def test_a_notification_names_no_text_of_a_screen_and_goes_with_its_question(bus: str) -> None:
    shower, got, came = await desktop(bus)
    async with told(DesktopNotices(bus)) as (scene, _):
        await scene.act("op", handle="pay")
        async with asyncio.timeout(10):
            await came.get()
            _, _, _, head, body, actions, hints, _ = got[0].body
            (pending,) = scene.world.approvals.pending()
            assert head == "An agent asks for approval"
            assert f"surehand approvals show {pending.approval_id}" in body
            assert "carol" not in body
            assert actions == []
            assert hints["urgency"].value == 2
            await scene.world.answer(pending, "deny")
            await scene.act("op", handle="pay")
            await came.get()
    assert (got[1].member, got[1].body) == ("CloseNotification", [7])
    shower.disconnect()


async def test_a_bus_without_anybody_who_shows_it_is_unavailable_and_no_bus_is_none(bus: str, tmp_path: Path) -> None:
    herald = DesktopNotices(bus)
    notice = Notice(event="approval.requested", approval_id="a", state="waiting", app="exe:/usr/bin/<b>")
    with pytest.raises(Unavailable):
        await herald.tell(notice)
    await herald.close()
    with pytest.raises(Unavailable):
        await DesktopNotices(f"unix:path={tmp_path}/none").tell(notice)
    assert session_bus({"DBUS_SESSION_BUS_ADDRESS": bus}) == bus
