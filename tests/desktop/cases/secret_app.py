"""A GTK 3, GTK 4 or Qt window whose fields are magenta all over, so that a picture tells which of their pixels it shows.

Runs under the system's Python; imports nothing of surehand. "Unlock code" hides what it holds until "Show" is pressed,
as a person would to check it; "Password" shows it in clear from the start. "Scroll" moves both half out of view;
"Float" opens a pop-up with a field in clear (GTK 4 only: the others have no pop-up that holds one).
"""

import sys

COLOUR = "#ff00ff"
CODE = "hunter2 correct horse"
SIZE = (340, 260)


def gtk(version):
    import gi

    gi.require_version("Gtk", version)
    gi.require_version("Gdk", version)
    from gi.repository import Gdk, GLib, Gtk

    four = version == "4.0"
    colours = ("background", "color", "border-color", "caret-color")
    paint = "entry, entry text {" + "".join(f"{name}: {COLOUR};" for name in colours) + "}"
    style = Gtk.CssProvider()
    style.load_from_data(paint.encode())
    context = Gtk.StyleContext
    add_style = context.add_provider_for_display if four else context.add_provider_for_screen
    add_style(Gdk.Display.get_default() if four else Gdk.Screen.get_default(), style, 800)
    window = Gtk.Window(title="Form", default_width=SIZE[0], default_height=SIZE[1])
    add = (lambda box, child: box.append(child)) if four else (lambda box, child: box.add(child))
    box, inside = (Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=4) for _ in range(2))
    scrolled = Gtk.ScrolledWindow(vexpand=True)
    (scrolled.set_child if four else scrolled.add)(inside)

    def entry(called, where, made):
        caption = Gtk.Label(label=called)
        made.set_text(CODE)
        caption.set_mnemonic_widget(made)
        add(where, caption)
        add(where, made)
        return made

    # GTK 4 tells accessibility the whole text of a plain entry that hides it, and not that it does.
    hidden = entry("Unlock code", inside, Gtk.PasswordEntry() if four else Gtk.Entry())
    shows = hidden.get_first_child() if four else hidden
    shows.set_visibility(False)
    entry("Password", inside, Gtk.Entry())
    filler = Gtk.Label(label="filler")
    filler.set_size_request(-1, 500)
    add(inside, filler)

    def button(name, pressed):
        made = Gtk.Button(label=name)
        made.connect("clicked", lambda _: pressed())
        add(box, made)

    def scroll():
        place = hidden.get_allocation()
        scrolled.get_vadjustment().set_value(place.y + place.height // 2)

    button("Show", lambda: shows.set_visibility(not shows.get_visibility()))
    button("Scroll", scroll)
    if four:
        popover = Gtk.Popover(autohide=False)
        held = Gtk.Box()
        entry("Password", held, Gtk.Entry())
        popover.set_child(held)
        popover.set_parent(scrolled)
        button("Float", popover.popup)
    add(box, scrolled)
    (window.set_child if four else window.add)(box)
    (window.present if four else window.show_all)()
    GLib.MainLoop().run()


def qt():
    from PyQt5.QtWidgets import (
        QApplication,
        QLabel,
        QLineEdit,
        QPushButton,
        QScrollArea,
        QVBoxLayout,
        QWidget,
    )

    app = QApplication(sys.argv[:1])
    window, inside, area = QWidget(), QWidget(), QScrollArea()
    window.setWindowTitle("Form")
    window.resize(*SIZE)
    box, rows = QVBoxLayout(window), QVBoxLayout(inside)

    def entry(called):
        caption, made = QLabel(called), QLineEdit(CODE)
        caption.setBuddy(made)
        made.setAccessibleName(called)
        made.setStyleSheet(f"background: {COLOUR}; color: {COLOUR}; border: 1px solid {COLOUR};")
        rows.addWidget(caption)
        rows.addWidget(made)
        return made

    hidden = entry("Unlock code")
    hidden.setEchoMode(QLineEdit.Password)
    entry("Password")
    filler = QLabel("filler")
    filler.setMinimumHeight(500)
    rows.addWidget(filler)

    def button(name, pressed):
        made = QPushButton(name)
        made.clicked.connect(pressed)
        box.addWidget(made)

    def show():
        shown = hidden.echoMode() == QLineEdit.Normal
        hidden.setEchoMode(QLineEdit.Password if shown else QLineEdit.Normal)

    button("Show", show)
    button("Scroll", lambda: area.verticalScrollBar().setValue(hidden.y() + hidden.height() // 2))
    area.setWidget(inside)
    area.setWidgetResizable(True)
    box.addWidget(area)
    window.show()
    app.exec()


if __name__ == "__main__":
    {"gtk3": lambda: gtk("3.0"), "gtk4": lambda: gtk("4.0"), "qt": qt}[sys.argv[1]]()
