"""Tools over a host in this process, on real applications; and the tables that tests page through.

Run as a program with a toolkit's name it is such an application: a table of ten thousand rows.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

ROWS = 10_000
TITLES = ["Name", "Count", "Done", "Note"]


def line(number: int) -> list[Any]:
    return [f"row {number}", str(number), number % 3 == 0, f'π "{number}", x']


def gtk3() -> None:
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import Gtk

    window, pane = Gtk.Window(title="Big"), Gtk.ScrolledWindow()
    window.set_default_size(600, 400)
    model = Gtk.ListStore(str, str, bool, str)
    for number in range(ROWS):
        model.append(line(number))
    view = Gtk.TreeView(model=model)
    view.get_accessible().set_name("Big")
    for column, title in enumerate(TITLES):
        if column == 2:
            view.append_column(Gtk.TreeViewColumn(title, Gtk.CellRendererToggle(), active=column))
        else:
            view.append_column(Gtk.TreeViewColumn(title, Gtk.CellRendererText(), text=column))
    pane.add(view)
    window.add(pane)
    window.show_all()
    Gtk.main()


def gtk4() -> None:
    import gi

    gi.require_version("Gtk", "4.0")
    from gi.repository import GLib, Gtk

    names = Gtk.StringList.new([line(number)[0] for number in range(ROWS)])
    factory = Gtk.SignalListItemFactory()
    factory.connect("setup", lambda _, item: item.set_child(Gtk.Label()))
    factory.connect("bind", lambda _, item: item.get_child().set_text(item.get_item().get_string()))
    pane = Gtk.ScrolledWindow(child=Gtk.ListView(model=Gtk.SingleSelection(model=names), factory=factory))
    window = Gtk.Window(title="Big", default_width=600, default_height=400, child=pane)
    window.present()
    GLib.MainLoop().run()


def qt() -> None:
    from PyQt5.QtCore import Qt
    from PyQt5.QtWidgets import QApplication, QTableWidget, QTableWidgetItem

    application = QApplication(sys.argv)
    table = QTableWidget(ROWS, len(TITLES))
    table.setWindowTitle("Big")
    table.setAccessibleName("Big")
    table.setHorizontalHeaderLabels(TITLES)
    table.resize(600, 400)
    for number in range(ROWS):
        for column, cell in enumerate(line(number)):
            item = QTableWidgetItem("" if column == 2 else cell)
            if column == 2:
                item.setCheckState(Qt.Checked if cell else Qt.Unchecked)
            table.setItem(number, column, item)
    table.show()
    application.exec_()


if __name__ == "__main__":
    {"gtk3": gtk3, "gtk4": gtk4, "qt": qt}[sys.argv[1]]()
else:
    from surehand.testing.desktop import IsolatedDesktop
    from surehand.tools import catalog
    from surehand.tools.context import Context, Progress, silent
    from surehand.tools.tool import Answer
    from tests.desktop.cases.kit import Hand

    class HostSession:
        """What a context asks, answered by a host in this process, in JSON as over the wire."""

        def __init__(self, hand: Hand) -> None:
            self.hand = hand
            self.asked: list[str] = []

        async def ask(self, method: str, params: dict[str, Any], **_: Any) -> Any:
            self.asked.append(method)
            found = await self.hand.call(method, **json.loads(json.dumps(params)))
            return json.loads(json.dumps(found))

        async def act(self, method: str, params: dict[str, Any], *_: Any, **__: Any) -> Any:
            return await self.ask(method, params)

    class Seat:
        """One agent's tools."""

        def __init__(self, hand: Hand) -> None:
            self.hand = hand
            self.context = Context(desktop=None, client="test")
            self.context.session = self.session = HostSession(hand)  # type: ignore[assignment]

        async def call(self, name: str, /, progress: Progress = silent, **arguments: Any) -> Answer:
            """Call a tool; a refusal is an answer too."""
            tool = catalog.find_tool(catalog.TOOLS, name)
            return await catalog.call(self.context.for_call(None, progress), tool, arguments)

        async def ok(self, name: str, /, **arguments: Any) -> Answer:
            answer = await self.call(name, **arguments)
            assert not answer.is_error, answer.text
            return answer

        async def refused(self, name: str, /, **arguments: Any) -> str:
            """Call a tool that must refuse, and return the code."""
            answer = await self.call(name, **arguments)
            assert answer.is_error, answer.text
            assert answer.images == ()
            return str(answer.data["error"]["code"])

        async def window(self, title: str, seconds: float = 20.0) -> str:
            """Return the window whose title contains this, waiting until it has come."""
            async with asyncio.timeout(seconds):
                while True:
                    for window in (await self.ok("list_windows")).data["windows"]:
                        if title in window["title"]:
                            return str(window["window"])
                    await asyncio.sleep(0.02)

    async def launch_table(desktop: IsolatedDesktop, toolkit: str) -> Any:
        """Start an application with a table of ten thousand rows."""
        argv = ["/usr/bin/python3", Path(__file__), toolkit]
        return await desktop.launch(argv, binds=[Path(__file__)], env={"PYTHONDONTWRITEBYTECODE": "1"})
