"""Waiting for the parts of a new desktop: a window manager on the display, an accessibility bus that answers.

Waits on conditions (property events, replies), never on time, each with a bound. It changes nothing but the two
switches that make toolkits expose their trees, `org.a11y.Status`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from surehand.errors import Unavailable
from surehand.runtime._desktop_x import DisplayProbe, DisplayRefused

_REGISTRY = "org.a11y.atspi.Registry"


class NotReady(Exception):
    """A part did not come up in time; `part` names it."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(reason)
        self.part = part
        self.reason = reason


async def wait_for_window_manager(number: int, cookie: bytes, timeout_s: float) -> None:
    """Wait until a window manager has announced itself on the display's root window.

    Raises:
        NotReady: none did in time, or the display went away.
    """
    try:
        async with asyncio.timeout(timeout_s), DisplayProbe.connected(number, cookie) as probe:
            await probe.wait_for_property("_NET_SUPPORTING_WM_CHECK")
    except TimeoutError as error:
        raise NotReady("window manager", "no window manager announced itself on the display") from error
    except DisplayRefused as error:
        raise NotReady("display server", str(error)) from error


async def _call(bus: MessageBus, **fields: Any) -> list[Any]:
    reply = await bus.call(Message(**fields))
    if reply is None or reply.message_type is MessageType.ERROR:
        detail = "no answer" if reply is None else f"{reply.error_name}: {reply.body[0] if reply.body else ''}"
        raise Unavailable(f"{fields['interface']}.{fields['member']}: {detail}")
    return list(reply.body)


async def _connected(address: str) -> MessageBus:
    return await MessageBus(bus_address=address).connect()


async def _switch_on(bus: MessageBus) -> str:
    """Set both switches and return the accessibility bus's address."""
    where = {"destination": "org.a11y.Bus", "path": "/org/a11y/bus"}
    (address,) = await _call(bus, **where, interface="org.a11y.Bus", member="GetAddress")
    for name in ("IsEnabled", "ScreenReaderEnabled"):
        await _call(
            bus,
            **where,
            interface="org.freedesktop.DBus.Properties",
            member="Set",
            signature="ssv",
            body=["org.a11y.Status", name, Variant("b", True)],
        )
    return str(address)


async def _registry_answers(address: str) -> None:
    bus = await _connected(address)
    try:
        await _call(
            bus,
            destination=_REGISTRY,
            path="/org/a11y/atspi/registry",
            interface=_REGISTRY,
            member="GetRegisteredEvents",
        )
    finally:
        bus.disconnect()


async def start_accessibility(session_bus_address: str, timeout_s: float) -> str:
    """Start the accessibility bus, switch it on, wait until its registry answers; returns the bus's address.

    Raises:
        NotReady: a part is missing or silent (C31).
    """
    part, deadline = "session bus", asyncio.get_running_loop().time() + timeout_s
    try:
        async with asyncio.timeout_at(deadline):
            bus = await _connected(session_bus_address)
            try:
                part = "accessibility bus"
                address = await _switch_on(bus)
            finally:
                bus.disconnect()
            part = "accessibility registry"
            await _registry_answers(address)
            return address
    except TimeoutError as error:
        raise NotReady(part, "it is present but does not answer") from error
    except (OSError, EOFError, Unavailable) as error:
        raise NotReady(part, str(error)) from error
