"""A window with one text field, in the toolkit named first; the text goes to the file named second at each change.

Run under the system's Python. With a third argument the program sleeps that many seconds in its first key handler.
"""

import sys
import time
from pathlib import Path

TOOLKIT, OUT = sys.argv[1], sys.argv[2]
NAP = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
TITLE = f"receiver {TOOLKIT}"


def save(text: str) -> None:
    new = Path(OUT + ".new")
    new.write_text(text, encoding="utf-8")
    new.rename(OUT)


def nap() -> None:
    global NAP
    seconds, NAP = NAP, 0.0
    time.sleep(seconds)


def gtk3() -> None:
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import Gtk

    window, view = Gtk.Window(title=TITLE), Gtk.TextView()
    buffer = view.get_buffer()
    view.connect("key-press-event", lambda *_: nap())
    buffer.connect("changed", lambda *_: save(buffer.get_text(*buffer.get_bounds(), False)))
    window.add(view)
    window.set_default_size(400, 300)
    window.connect("destroy", Gtk.main_quit)
    window.show_all()
    Gtk.main()


def gtk4() -> None:
    import gi

    gi.require_version("Gtk", "4.0")
    from gi.repository import Gtk

    def start(app: Gtk.Application) -> None:
        window, view = Gtk.ApplicationWindow(application=app, title=TITLE), Gtk.TextView()
        buffer = view.get_buffer()
        buffer.connect("changed", lambda *_: save(buffer.get_text(*buffer.get_bounds(), False)))
        window.set_child(view)
        window.set_default_size(400, 300)
        window.present()

    app = Gtk.Application(application_id=None)
    app.connect("activate", start)
    app.run(None)


def qt() -> None:
    from PyQt5.QtWidgets import QApplication, QPlainTextEdit

    app = QApplication(sys.argv[:1])
    edit = QPlainTextEdit()
    edit.setWindowTitle(TITLE)
    edit.textChanged.connect(lambda: save(edit.toPlainText()))
    edit.resize(400, 300)
    edit.show()
    app.exec_()


save("")
{"gtk3": gtk3, "gtk4": gtk4, "qt": qt}[TOOLKIT]()
