"""A scripted accessible application on a real bus, for trees that no real toolkit would show.

It is fake on purpose: hostile structure, objects that never answer and exact call counts cannot be had from a real
application. Real applications are in tests/desktop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from surehand.adapters.atspi.calls import ACCESSIBLE, ROOT_PATH, TEXT, VALUE, Channel
from surehand.adapters.atspi.transport import Connection, Signal

SHOWING = 1 << 8 | 1 << 24 | 1 << 25 | 1 << 30
ROLE = {"application": 75, "frame": 23, "panel": 39, "list": 31, "item": 32, "button": 43, "label": 29, "text": 61}
ROLE |= {"password": 40, "slider": 51, "table": 55, "cell": 56, "combo box": 11, "menu": 33, "column header": 57}


class FakeObject:
    def __init__(self, role: str, name: str = "", children: tuple[str, ...] = (), **facts: Any) -> None:
        self.role = role
        self.name = name
        self.children = list(children)
        self.states = facts.pop("states", SHOWING)
        self.interfaces = ["Accessible", "Component", *facts.pop("interfaces", ())]
        self.facts = facts


class FakeApp:
    """Objects by path; `/` stands for the root. Paths are short: `a` is `/a`."""

    def __init__(self) -> None:
        self.objects: dict[str, FakeObject] = {ROOT_PATH: FakeObject("application", "fake", ("/w",))}
        self.objects["/w"] = FakeObject("frame", "Window")
        self.calls: Counter[tuple[str, str]] = Counter()
        #: (path, member) that are never answered.
        self.mute: set[tuple[str, str]] = set()
        self.silent = False
        #: Called before the answer of (path, member).
        self.hooks: dict[tuple[str, str], Callable[[], Any]] = {}
        self.foreign: dict[str, str] = {}
        #: Places that are not where everything is.
        self.extents: dict[str, list[int]] = {}
        self._bus: MessageBus | None = None

    @property
    def owner(self) -> str:
        assert self._bus is not None
        return str(self._bus.unique_name)

    async def start(self, address: str) -> None:
        self._bus = await MessageBus(bus_address=address).connect()
        self._bus.add_message_handler(self._handle)

    def stop(self) -> None:
        assert self._bus is not None
        self._bus.disconnect()

    def add(self, parent: str, path: str, role: str, name: str = "", **facts: Any) -> None:
        self.objects[path] = FakeObject(role, name, **facts)
        self.objects[parent].children.append(path)

    def remove(self, parent: str, path: str) -> None:
        self.objects[parent].children.remove(path)
        self.objects.pop(path, None)

    def channel(self, connection: Connection) -> Channel:
        return Channel(connection, self.owner)

    def signal(self, path: str, member: str, detail: str = "") -> Signal:
        return Signal(self.owner, path, "org.a11y.atspi.Event.Object", member, [detail, 0, 0, Variant("i", 0), {}])

    def count(self, member: str) -> int:
        return sum(number for (_, name), number in self.calls.items() if name == member)

    # --- answers ----------------------------------------------------------------------------------------------

    def _handle(self, message: Message) -> Message | bool | None:
        if message.message_type is not MessageType.METHOD_CALL:
            return None
        member = message.body[1] if message.member == "Get" else message.member
        self.calls[message.path, member] += 1
        self.hooks.get((message.path, member), lambda: None)()
        if self.silent or (message.path, member) in self.mute:
            return True
        found = self.objects.get(message.path)
        if found is None:
            return Message.new_error(message, "org.freedesktop.DBus.Error.UnknownObject", "no such object")
        answer = self._answer(found, message, member)
        if answer is None:
            return Message.new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "no such method")
        return Message.new_method_return(message, *answer)

    def _ref(self, path: str) -> list[str]:
        return [self.foreign.get(path, self.owner), path]

    def _answer(self, found: FakeObject, message: Message, member: str) -> tuple[str, list[Any]] | None:
        states = [found.states & 0xFFFFFFFF, found.states >> 32]
        parent = next((path for path, one in self.objects.items() if message.path in one.children), ROOT_PATH)
        text = str(found.facts.get("text", ""))
        answers: dict[str, tuple[str, list[Any]]] = {
            "GetRole": ("u", [ROLE[found.role]]),
            "GetInterfaces": ("as", [["org.a11y.atspi." + name for name in found.interfaces]]),
            "GetState": ("au", [states]),
            "GetChildren": ("a(so)", [[self._ref(path) for path in found.children]]),
            "GetRelationSet": ("a(ua(so))", [[]]),
            "GetExtents": ("(iiii)", [self.extents.get(message.path or "", [1, 2, 30, 40])]),
            "GetText": ("s", [text[slice(*message.body)] if member == "GetText" else ""]),
            "GetActions": ("a(sss)", [[["Klick", "", ""], ["Druck", "", ""]] if "Action" in found.interfaces else []]),
            "GetName": ("s", [["click", "press"][message.body[0]] if member == "GetName" else ""]),
            "Name": ("v", [Variant("s", found.name)]),
            "Description": ("v", [Variant("s", "")]),
            "ChildCount": ("v", [Variant("i", len(found.children))]),
            "CharacterCount": ("v", [Variant("i", len(text))]),
            "CurrentValue": ("v", [Variant("d", float(found.facts.get("value", 0)))]),
            "NColumns": ("v", [Variant("i", found.facts.get("columns", 0))]),
            "Parent": ("v", [Variant("(so)", [self.owner, parent])]),
        }
        if member == "GetChildAtIndex":
            return "(so)", [self._ref(found.children[message.body[0]])]
        known = {"CharacterCount": TEXT, "GetText": TEXT, "CurrentValue": VALUE}.get(member, ACCESSIBLE)
        return answers.get(member) if known.rpartition(".")[2] in found.interfaces else None
