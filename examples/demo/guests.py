"""A small guest list, the demo's own application (GTK 3). Runs under the system's Python.

Its log is the demo's ground truth: one JSON line per thing that reached it, written before anything else happens. It
knows nothing of Surehand. One command comes on standard input, so that the demo can play the rest of the world: new
names for the rows, put into the same widgets, as lists that recycle their rows do.
"""

import argparse
import json
import os
import sys
from typing import Any

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk  # noqa: E402 - after the version was chosen

GUESTS = ("alice", "bob", "carol", "dave", "erin")
#: Writing a backup takes this long, without holding the window up.
BACKUP_MS = 900


class Log:
    """The application's own record of what it received."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: str, value: Any = None) -> None:
        """Write one line."""
        os.write(self._file, (json.dumps({"event": event, "value": value}, ensure_ascii=False) + "\n").encode())


class Guests(Gtk.Window):
    """The window."""

    def __init__(self, log: Log) -> None:
        super().__init__(title="Guests", default_width=420, default_height=420)
        self._log = log
        self._rows = []
        self._backups = 0
        self.connect("destroy", Gtk.main_quit)
        page = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=8, margin=12)
        heading = Gtk.Label(xalign=0)
        heading.set_markup("<big><b>Dinner on Friday</b></big>")
        page.pack_start(heading, False, False, 0)
        self._list = Gtk.ListBox(selection_mode=Gtk.SelectionMode.NONE)
        for name in GUESTS:
            self._add(name)
        frame = Gtk.ScrolledWindow(hscrollbar_policy=Gtk.PolicyType.NEVER)
        frame.add(self._list)
        page.pack_start(frame, True, True, 0)
        page.pack_start(self._door(), False, False, 0)
        page.pack_start(self._foot(), False, False, 0)
        self.add(page)
        self.show_all()

    def _add(self, name: str) -> None:
        row = Gtk.ListBoxRow(activatable=False)
        line = Gtk.Box(spacing=8, margin=4)
        row.label = Gtk.Label(label=name, xalign=0)
        line.pack_start(row.label, True, True, 4)
        for verb in ("Open", "Delete"):
            button = Gtk.Button(label=verb)
            button.connect("clicked", self._pressed, row, verb)
            line.pack_start(button, False, False, 0)
        row.add(line)
        self._list.add(row)
        self._rows.append(row)

    def _pressed(self, _button: Gtk.Button, row: Gtk.ListBoxRow, verb: str) -> None:
        # What the row holds when it is pressed is what is acted upon.
        self._log.write(verb.lower(), row.label.get_text())
        if verb == "Delete":
            self._rows.remove(row)
            row.destroy()

    def _door(self) -> Gtk.Box:
        line = Gtk.Box(spacing=8)
        caption, entry = Gtk.Label(label="Sign at the door"), Gtk.Entry()
        caption.set_mnemonic_widget(entry)
        entry.get_accessible().set_name("Sign at the door")
        entry.connect("changed", lambda one: self._log.write("sign", one.get_text()))
        line.pack_start(caption, False, False, 0)
        line.pack_start(entry, True, True, 0)
        return line

    def _foot(self) -> Gtk.Box:
        line = Gtk.Box(spacing=8)
        self._count = Gtk.Label(label="Backups: 0", xalign=0)
        line.pack_start(self._count, True, True, 4)
        for label, pressed in (("Back up", self._back_up), ("Reset all", self._reset)):
            button = Gtk.Button(label=label)
            button.connect("clicked", pressed)
            line.pack_start(button, False, False, 0)
        return line

    def _back_up(self, _button: Gtk.Button) -> None:
        self._log.write("backup")
        GLib.timeout_add(BACKUP_MS, self._backed_up)

    def _backed_up(self) -> bool:
        self._backups += 1
        self._count.set_text(f"Backups: {self._backups}")
        return False

    def _reset(self, _button: Gtk.Button) -> None:
        self._log.write("reset")
        for row in self._rows:
            row.destroy()
        self._rows.clear()

    def recycle(self, names: list[str]) -> None:
        """Put other names into the rows there are."""
        for row, name in zip(self._rows, names, strict=True):
            row.label.set_text(name)
        self._log.write("recycled", names)


def main() -> None:
    """Show the window until somebody closes it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    log = Log(parser.parse_args().log)
    window = Guests(log)

    def commanded(*_: Any) -> bool:
        line = sys.stdin.readline()
        if line:
            window.recycle(json.loads(line))
        return bool(line)

    GLib.io_add_watch(sys.stdin.fileno(), GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, commanded)
    log.write("ready", os.getpid())
    Gtk.main()


if __name__ == "__main__":
    main()
