"""Something of the same window lies on the control that is about to be clicked (case C30)."""

from __future__ import annotations

import pytest

from surehand.model.actions import Click, Invoke
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS
from tests.desktop.cases.kit import Hand, named, until, until_so, window_of
from tests.desktop.cases.test_places import point

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

_LOG = """
import sys
def log(name):
    with open(sys.argv[1], "a") as file:
        file.write(name + "\\n")
"""
_GTK = """
import gi
gi.require_version("Gtk", "{version}.0")
from gi.repository import Gtk
def button(name, where):
    made = Gtk.Button(label=name)
    made.connect("clicked", lambda _: log(name))
    where(made)
    return made
def fill(window):
    overlay, box = Gtk.Overlay(), Gtk.Box(homogeneous=True)
    overlay.{child}(box)
    window.{child}(overlay)
    for name in ("Under", "Beside"):
        button(name, lambda made: box.{pack})
    over = button("Over", overlay.add_overlay)
    over.set_size_request(200, 200)
    over.set_halign(Gtk.Align.START)
    window.set_default_size(400, 200)
"""
_SCRIPTS = {
    "gtk3": _LOG
    + _GTK.format(version=3, child="add", pack="pack_start(made, True, True, 0)")
    + 'window = Gtk.Window(title="Layers")\nfill(window)\nwindow.show_all()\nGtk.main()\n',
    "gtk4": _LOG
    + _GTK.format(version=4, child="set_child", pack="append(made)")
    + """
def activate(app):
    window = Gtk.ApplicationWindow(application=app, title="Layers")
    fill(window)
    window.present()
app = Gtk.Application(application_id="test.surehand.Layers")
app.connect("activate", activate)
app.run([])
""",
    "qt": _LOG
    + """
from PyQt5.QtWidgets import QApplication, QPushButton, QWidget
app = QApplication(sys.argv)
window = QWidget()
window.setWindowTitle("Layers")
window.resize(400, 200)
for name, left in (("Under", 0), ("Beside", 200), ("Over", 0)):
    button = QPushButton(name, window)
    button.setGeometry(left, 0, 200, 200)
    button.clicked.connect(lambda _, name=name: log(name))
window.show()
app.exec()
""",
}


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_c30_what_lies_on_a_control_in_its_own_window_is_not_clicked_in_its_place(
    hand: Hand, desktop: IsolatedDesktop, toolkit: str
) -> None:
    script, log = (desktop.folder / "home" / f"layers-{toolkit}.{end}" for end in ("py", "log"))
    script.write_text(_SCRIPTS[toolkit])
    log.touch()
    app = await desktop.launch(["/usr/bin/python3", str(script), str(log)])
    try:
        surface = await hand.window(app.pid, "Layers")
        await hand.act({"kind": "window", "op": "focus"}, window_of(surface))
        await until_so(lambda: hand.find(surface, named("Over"), {"role": "button"}), "the buttons")
        for name in ("Beside", "Over"):
            (found,) = await hand.find(surface, named(name), {"role": "button"})
            assert (await hand.act(Click(), found))["status"] == "succeeded"
            await until(lambda name=name: log.read_text().split()[-1:] == [name], name)
        (under,) = await hand.find(surface, named("Under"), {"role": "button"})
        reply = await hand.act(Click(), under)
        assert (reply["status"], reply["error"]["code"]) == ("refused", "stale_target"), reply
        assert reply["error"]["observed"]["covered_by"] == "button Over"

        # Whatever a picture shows there, a click in it never becomes a press of what is beneath.
        taken = (await hand.call("screenshot", surface=surface))["capture"]
        x, y, width, height = under["bounds"]
        middle = (x + width // 2 - taken["origin_x"], y + height // 2 - taken["origin_y"])
        there = await hand.call("at", point=point(taken, middle))
        assert there["element"]["name"] == "Over" or not there["pressable"]

        assert log.read_text().split() == ["Beside", "Over"]
        assert (await hand.act(Invoke(), under))["status"] == "succeeded"
        await until(lambda: log.read_text().split() == ["Beside", "Over", "Under"], "the press that needs no place")
    finally:
        app.kill()
