"""Tells the person at this machine that they are asked: a desktop notification, gone with its question (spec §6.4).

Only where the operator's session has a bus, and through nothing but `org.freedesktop.Notifications`. It names who asks,
for what kind of thing, and the command that shows it; nothing of any screen, and no button: a notification is a window
like any other, and answers nothing.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusError

from surehand import limits
from surehand.errors import Unavailable
from surehand.model.approval import Notice

_NAME: Final = "org.freedesktop.Notifications"
_PATH: Final = "/org/freedesktop/Notifications"
_CRITICAL: Final = Variant("y", 2)
_KINDS: Final = {"captcha": "a captcha", "second_factor": "a second factor", "choice": "a choice"}


def session_bus(environ: Mapping[str, str]) -> str | None:
    """Return the address of the operator's session bus; None where there is none."""
    given = environ.get("DBUS_SESSION_BUS_ADDRESS")
    if given:
        return given
    usual = Path(f"/run/user/{os.getuid()}/bus")
    return f"unix:path={usual}" if usual.is_socket() else None


def _words(notice: Notice) -> tuple[str, str, str]:
    """Return heading, text and category."""
    if notice.event == "human.requested":
        # Not what the agent says: its words stand in our own faces, marked as its own.
        kind = _KINDS.get(notice.kind, "something that a person does")
        body = f"{notice.principal} asks for {kind}\nsurehand requests list"
        return "An agent asks for your help", body, "surehand.request"
    what = f"{notice.principal} asks: {notice.action} in {notice.app or 'a new application'} ({notice.risk})"
    return "An agent asks for approval", f"{what}\nsurehand approvals show {notice.approval_id}", "surehand.approval"


class DesktopNotices:
    """Implements `ports.Herald`."""

    name = "desktop notification"

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: Any = None
        #: Notifications that are shown, by question or request; the newest only.
        self._shown: dict[str, int] = {}

    async def tell(self, notice: Notice) -> None:
        """Tell; see `ports.Herald.tell`."""
        if notice.event in {"approval.ended", "human.ended"}:
            number = self._shown.pop(notice.about, None)
            if number is not None:
                await self._call("CloseNotification", "u", [number])
            return
        head, body, category = _words(notice)
        hints = {"urgency": _CRITICAL, "category": Variant("s", category)}
        arguments = ["Surehand", 0, "dialog-question", head, html.escape(body), [], hints, 0]
        reply = await self._call("Notify", "susssasa{sv}i", arguments)
        if reply:
            self._shown[notice.about] = int(reply[0])
        while len(self._shown) > limits.NOTICES_QUEUED_MAX:
            del self._shown[next(iter(self._shown))]

    async def _call(self, member: str, signature: str, body: list[Any]) -> list[Any]:
        try:
            if self._bus is None or not self._bus.connected:
                self._bus = await MessageBus(bus_address=self._address).connect()
            reply = await self._bus.call(
                Message(destination=_NAME, path=_PATH, interface=_NAME, member=member, signature=signature, body=body)
            )
        except (OSError, EOFError, DBusError, ValueError) as error:
            self._let_go()
            raise Unavailable(f"the session bus does not answer: {type(error).__name__}") from error
        if reply is None or reply.message_type is MessageType.ERROR:
            raise Unavailable(f"nothing shows notifications: {getattr(reply, 'error_name', 'no answer')}")
        return list(reply.body)

    async def close(self) -> None:
        """Let go of the bus."""
        self._let_go()

    def _let_go(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None and bus.connected:
            bus.disconnect()
