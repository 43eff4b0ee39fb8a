"""A GTK 3 application that says the worst about itself. Runs under the system's Python; imports nothing of surehand.

Every name it shows to accessibility comes from a JSON file, so that texts of any size and kind can be tried. Each press
is one line in its log: which button, by its place.
"""

import json
import os
import pathlib
import sys

import gi

gi.require_version("Atk", "1.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk  # noqa: E402


def main():
    names_path, log_path = sys.argv[1:]
    said = json.loads(pathlib.Path(names_path).read_text(encoding="utf-8"))
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    window = Gtk.Window(title=said["title"])
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    for place, name in enumerate(said["names"]):
        button = Gtk.Button(label=str(place))
        button.get_accessible().set_name(name)
        button.get_accessible().set_description(name[: said.get("description", 0)])
        button.connect("clicked", lambda _, place=place: os.write(log, b"%d\n" % place))
        box.add(button)
    entry = Gtk.Entry()
    entry.get_accessible().set_name("Entry")
    box.add(entry)
    view = Gtk.TextView()
    view.get_accessible().set_name("View")
    view.get_buffer().set_text(said.get("text", ""))
    box.add(view)
    window.add(box)
    window.connect("destroy", Gtk.main_quit)
    window.show_all()
    Gtk.main()


if __name__ == "__main__":
    main()
