"""What a desktop's folder contains, and the environment of its programs. Both are built, never inherited.

Layout: `etc/` (read-only for programs: X cookie, window manager and bus configuration, machine id), `home/`, `run/`
(`XDG_RUNTIME_DIR` with the bus sockets), `tmp/`, `log/` (hidden from confined programs).
"""

from __future__ import annotations

import os
import pwd
import secrets
import struct
from pathlib import Path
from typing import Final

import msgspec

from surehand.errors import Unavailable

_A11Y_SERVICE: Final = Path("/usr/share/dbus-1/services/org.a11y.Bus.service")
_LAUNCHERS: Final = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")
_COOKIE_BYTES: Final = 16
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"

# No menus and no bindings that start programs: nothing that is typed or clicked here runs a command (spec §6.2).
_OPENBOX: Final = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <resistance><strength>0</strength><screen_edge_strength>0</screen_edge_strength></resistance>
  <focus><focusNew>yes</focusNew><followMouse>no</followMouse><raiseOnFocus>no</raiseOnFocus></focus>
  <placement><policy>Smart</policy><center>yes</center></placement>
  <theme><name>Clearlooks</name><titleLayout>NLIMC</titleLayout><animateIconify>no</animateIconify></theme>
  <desktops><number>1</number><popupTime>0</popupTime></desktops>
  <keyboard>
    <keybind key="A-F4"><action name="Close"/></keybind>
    <keybind key="A-Tab"><action name="NextWindow"><dialog>none</dialog></action></keybind>
  </keyboard>
  <mouse>
    <context name="Client">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Middle" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Right" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
    <context name="Titlebar">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
      <mousebind button="Left" action="DoubleClick"><action name="ToggleMaximize"/></mousebind>
    </context>
    <context name="Top Left Right Bottom TLCorner TRCorner BLCorner BRCorner">
      <mousebind button="Left" action="Drag"><action name="Resize"/></mousebind>
    </context>
    <context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
    <context name="Iconify"><mousebind button="Left" action="Click"><action name="Iconify"/></mousebind></context>
    <context name="Maximize">
      <mousebind button="Left" action="Click"><action name="ToggleMaximize"/></mousebind>
    </context>
  </mouse>
  <menu></menu>
  <applications></applications>
</openbox_config>
"""

# The only service that may be started by name is the accessibility bus: no portal, no keyring, nothing that prompts.
_BUS: Final = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <keep_umask/>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{services}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
  <limit name="service_start_timeout">15000</limit>
  <limit name="max_match_rules_per_connection">50000</limit>
  <limit name="max_replies_per_connection">50000</limit>
  <limit name="max_names_per_connection">50000</limit>
</busconfig>
"""

_GTK_SETTINGS: Final = """[Settings]
gtk-enable-animations=false
gtk-cursor-blink=false
gtk-recent-files-enabled=false
gtk-font-name=DejaVu Sans 10
"""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are in one desktop's folder."""

    folder: Path
    cookie: bytes

    @property
    def etc(self) -> Path:
        """Configuration; read-only for programs."""
        return self.folder / "etc"

    @property
    def log(self) -> Path:
        """What the parts print; hidden from confined programs."""
        return self.folder / "log"

    @property
    def home(self) -> Path:
        """HOME."""
        return self.folder / "home"

    @property
    def run(self) -> Path:
        """XDG_RUNTIME_DIR."""
        return self.folder / "run"

    @property
    def xauthority(self) -> Path:
        """The X cookie."""
        return self.etc / "xauthority"

    @property
    def window_manager_started(self) -> Path:
        """A pipe into which the window manager writes a line when its start is over."""
        return self.etc / "started"

    @property
    def display_number(self) -> Path:
        """The display's number, for whoever tidies up after a killed supervisor."""
        return self.etc / "display"

    @property
    def session_bus_address(self) -> str:
        """Address of the session bus, the same inside and outside."""
        return f"unix:path={self.run / 'bus'}"


def _new_cookie() -> bytes:
    # Clients that take the cookie as `NAME:DATA` cut it at a colon.
    while b":" in (cookie := secrets.token_bytes(_COOKIE_BYTES)):
        pass
    return cookie


def _xauthority(cookie: bytes) -> bytes:
    """Return an authority file that holds the cookie for any host name and any display number."""
    name = b"MIT-MAGIC-COOKIE-1"
    wild = 65535
    fields = (b"", b"", name, cookie)
    return struct.pack(">H", wild) + b"".join(struct.pack(">H", len(field)) + field for field in fields)


def a11y_launcher() -> str | None:
    """Return the accessibility bus launcher of this machine, or None when it is not installed."""
    try:
        for line in _A11Y_SERVICE.read_text().splitlines():
            if line.startswith("Exec="):
                return line.removeprefix("Exec=").split()[0]
    except OSError:
        pass
    return next((path for path in _LAUNCHERS if Path(path).is_file()), None)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under uids that nobody named
        return "user"


def read(folder: Path) -> Layout:
    """Return the layout of a running desktop's folder, with its cookie."""
    data = (folder / "etc" / "xauthority").read_bytes()
    return Layout(folder=folder, cookie=data[-_COOKIE_BYTES:])


def _write_users(etc: Path, home: Path) -> None:
    """Write user and group files that name us, with the desktop's home, and nobody of the host."""
    user, uid, gid = _user_name(), os.getuid(), os.getgid()
    nobody = 65534
    entries = {user: (uid, gid, str(home)), "nobody": (nobody, nobody, "/nonexistent")}
    (etc / "passwd").write_text("".join(f"{n}:x:{u}:{g}::{h}:/bin/sh\n" for n, (u, g, h) in entries.items()))
    (etc / "group").write_text("".join(f"{n}:x:{g}:\n" for n, (_, g, _) in entries.items()))


def fill(folder: Path) -> Layout:
    """Write everything a new desktop needs into its empty folder.

    Raises:
        Unavailable: the accessibility service is not installed.
    """
    launcher = a11y_launcher()
    if launcher is None:
        raise Unavailable("the accessibility service is not installed", fix="apt install at-spi2-core")
    layout = Layout(folder=folder, cookie=_new_cookie())
    for part in ("etc", "etc/services", "log", "home", "run", "tmp"):
        (folder / part).mkdir(mode=0o700)
    layout.xauthority.write_bytes(_xauthority(layout.cookie))
    layout.xauthority.chmod(0o600)
    (layout.etc / "openbox.xml").write_text(_OPENBOX)
    (layout.etc / "machine-id").write_text(secrets.token_hex(16) + "\n")
    _write_users(layout.etc, layout.home)
    services = layout.etc / "services"
    (layout.etc / "bus.conf").write_text(_BUS.format(socket=layout.run / "bus", services=services))
    (services / "org.a11y.Bus.service").write_text(
        f"[D-BUS Service]\nName=org.a11y.Bus\nExec={launcher} --launch-immediately --a11y=1 --screen-reader=1\n"
    )
    for version in ("gtk-3.0", "gtk-4.0"):
        settings = layout.home / ".config" / version
        settings.mkdir(parents=True, mode=0o700)
        (settings / "settings.ini").write_text(_GTK_SETTINGS)
    return layout


def program_environment(layout: Layout, display: str, a11y_bus_address: str | None) -> dict[str, str]:
    """Return the whole environment of a program in the desktop; nothing in it comes from ours (C39)."""
    home = layout.home
    user = _user_name()
    environment = {
        "PATH": PATH,
        "HOME": str(home),
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "DISPLAY": display,
        "XAUTHORITY": str(layout.xauthority),
        "DBUS_SESSION_BUS_ADDRESS": layout.session_bus_address,
        "XDG_RUNTIME_DIR": str(layout.run),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_DATA_DIRS": "/usr/local/share:/usr/share",
        "XDG_CONFIG_DIRS": "/etc/xdg",
        "XDG_SESSION_TYPE": "x11",
        # Toolkits: the X11 back end, software rendering, no settings daemon, accessibility on.
        "GDK_BACKEND": "x11",
        "GSK_RENDERER": "cairo",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "GSETTINGS_BACKEND": "memory",
        "GIO_USE_VFS": "local",
        "GTK_USE_PORTAL": "0",
        "GTK_A11Y": "atspi",
        "GNOME_ACCESSIBILITY": "1",
        "ACCESSIBILITY_ENABLED": "1",
        "QT_QPA_PLATFORM": "xcb",
        "QT_ACCESSIBILITY": "1",
        "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
    }
    if a11y_bus_address is not None:
        environment["AT_SPI_BUS_ADDRESS"] = a11y_bus_address
    return environment
