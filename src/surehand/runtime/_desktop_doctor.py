"""What this machine has for desktops, and how to fix what it lacks. Looks only: changes, starts and enables nothing.

`try_desktop` is the one exception: it starts a desktop and removes it, and runs only when asked for.
"""

from __future__ import annotations

import asyncio
import ctypes.util
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from dbus_fast import Message, MessageFlag, MessageType
from dbus_fast.aio import MessageBus

from surehand.errors import SurehandError
from surehand.runtime import _desktop_sandbox as sandboxes
from surehand.runtime._desktop_folder import PATH, a11y_launcher
from surehand.runtime._desktop_records import folders_folder, records_folder

_ANSWER_S: Final = 1.0  # a bus that is there and does not answer within this is silent (C31)
_FONT_FOLDERS: Final = ("/usr/share/fonts", "/usr/local/share/fonts")
_SYSTEM_PYTHON: Final = "/usr/bin/python3"
_IMPORT_S: Final = 10.0

#: program, why, package, whether desktops cannot do without it.
_PROGRAMS: Final = (
    ("Xvfb", "the display of a desktop", "xvfb", True),
    ("xkbcomp", "the keyboard of a display", "x11-xkb-utils", True),
    ("openbox", "the window manager of a desktop", "openbox", True),
    ("dbus-daemon", "the buses of a desktop", "dbus", True),
    ("Xephyr", "shows a desktop in a window (--view)", "xserver-xephyr", False),
    ("setxkbmap", "the keyboard layout of a shown desktop (--view)", "x11-xkb-utils", False),
)

#: name, shared library, what it is for, package.
_LIBRARIES: Final = (
    ("gtk3-accessibility", "atk-bridge-2.0", "GTK 3 applications show their trees", "libatk-bridge2.0-0"),
    ("xcb", "xcb", "looking at windows and sending input", "libxcb1"),
    ("xcb-shm", "xcb-shm", "pictures of windows", "libxcb-shm0"),
)


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing doctor looked at. `needed`: desktops do not work without it. `fix` says how, when it is not ok."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None
    needed: bool = False


def _program_facts() -> Iterator[Fact]:
    for program, why, package, needed in _PROGRAMS:
        path = shutil.which(program, path=PATH)
        detail = f"{path}: {why}" if path else f"not installed: {why}"
        yield Fact(name=program, ok=path is not None, detail=detail, fix=_install(path, package), needed=needed)
    launcher = a11y_launcher()
    yield Fact(
        name="at-spi",
        ok=launcher is not None,
        detail=launcher or "the accessibility service is not installed",
        fix=_install(launcher, "at-spi2-core"),
        needed=True,
    )


def _install(found: object, package: str) -> str | None:
    return None if found else f"apt install {package}"


def _library_facts() -> Iterator[Fact]:
    for name, library, why, package in _LIBRARIES:
        found = ctypes.util.find_library(library)
        yield Fact(name=name, ok=found is not None, detail=f"{found or 'missing'}: {why}", fix=_install(found, package))


def _sandbox_facts() -> Iterator[Fact]:
    problem = sandboxes.bubblewrap_problem()
    if problem is None:
        detail = f"{sandboxes.bubblewrap()} confines programs"
        fix = None
    else:
        detail = f"{problem}; desktops are display_only"
        fix = "apt install bubblewrap" if sandboxes.bubblewrap() is None else _user_namespace_fix()
    yield Fact(name="bubblewrap", ok=problem is None, detail=detail, fix=fix)
    scoped = sandboxes.can_scope_sockets()
    yield Fact(
        name="landlock",
        ok=scoped,
        detail="keeps programs with network from the host's abstract sockets"
        if scoped
        else "missing or old: a desktop with network is display_only",
        fix=None if scoped else "use Linux 6.12 or newer with Landlock on",
    )


def _user_namespace_fix() -> str:
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.is_file() and restricted.read_text().strip() == "1":
        return "allow bwrap in AppArmor (a profile with the userns permission for /usr/bin/bwrap)"
    switch = Path("/proc/sys/kernel/unprivileged_userns_clone")
    if switch.is_file() and switch.read_text().strip() == "0":
        return "sysctl kernel.unprivileged_userns_clone=1"
    return "allow user namespaces: sysctl user.max_user_namespaces=15000, or run outside this container"


def _font_fact() -> Fact:
    endings = {".ttf", ".otf", ".ttc", ".pfb"}
    fonts = (path for folder in _FONT_FOLDERS for path in Path(folder).rglob("*") if path.suffix in endings)
    found = next(fonts, None)
    return Fact(
        name="fonts",
        ok=found is not None,
        detail="found" if found else "none: applications show boxes instead of text",
        fix=_install(found, "fonts-dejavu-core"),
        needed=True,
    )


def _toolkit_facts() -> Iterator[Fact]:
    """What the fixture and demo applications need: the system's Python with its toolkits."""
    wanted = (
        ("gtk3-python", "gi; gi.require_version('Gtk', '3.0')", "python3-gi gir1.2-gtk-3.0"),
        ("gtk4-python", "gi; gi.require_version('Gtk', '4.0')", "python3-gi gir1.2-gtk-4.0"),
        ("qt-python", "PyQt5.QtCore", "python3-pyqt5"),
    )
    for name, module, packages in wanted:
        ok = Path(_SYSTEM_PYTHON).exists() and _imports(module)
        detail = f"{_SYSTEM_PYTHON} has it" if ok else f"{_SYSTEM_PYTHON} lacks it: demo and tests need it"
        yield Fact(name=name, ok=ok, detail=detail, fix=None if ok else f"apt install {packages}")


def _imports(module: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and fixed words
            [_SYSTEM_PYTHON, "-I", "-B", "-c", f"import {module}"],
            capture_output=True,
            timeout=_IMPORT_S,
            check=False,
            env={"PATH": PATH, "LANG": "C.UTF-8"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _folder_facts() -> Iterator[Fact]:
    try:
        detail, ok, fix = f"{folders_folder()}, {records_folder()}", True, None
    except SurehandError as error:
        detail, ok, fix = error.message, False, error.fix
    yield Fact(name="private-folders", ok=ok, detail=detail, fix=fix, needed=True)
    sockets = Path("/tmp/.X11-unix")  # noqa: S108 - X11's own place
    if not sockets.exists():
        yield Fact(name="x-socket-folder", ok=True, detail=f"{sockets} is made by the first display")
        return
    facts = sockets.stat()
    ok = bool(stat.S_IMODE(facts.st_mode) & 0o002) or facts.st_uid == os.getuid()
    yield Fact(
        name="x-socket-folder",
        ok=ok,
        detail=f"{sockets} {'can' if ok else 'cannot'} take a display's socket",
        fix=None if ok else f"chmod 1777 {sockets} (as root)",
        needed=True,
    )


async def _ask(bus: MessageBus, **fields: Any) -> list[Any]:
    message = Message(**fields, flags=MessageFlag.NO_AUTOSTART)
    reply = await asyncio.wait_for(bus.call(message), _ANSWER_S)
    if reply is None or reply.message_type is MessageType.ERROR:
        raise OSError("no answer" if reply is None else str(reply.error_name))
    return list(reply.body)


async def _session_facts(environment: Mapping[str, str]) -> list[Fact]:
    """What `--desktop current` would find; asks running services only, and waits a second for each."""
    address = environment.get("DBUS_SESSION_BUS_ADDRESS")
    if not address:
        detail = "there is no session bus here; isolated desktops bring their own"
        return [Fact(name="session-accessibility", ok=True, detail=detail)]
    try:
        bus = await asyncio.wait_for(MessageBus(bus_address=address).connect(), _ANSWER_S)
    except Exception as error:  # noqa: BLE001 - whatever an address leads to is a finding, not a failure of ours
        return [_silent(f"the session bus does not answer: {error}", "log in again, or unset DBUS_SESSION_BUS_ADDRESS")]
    try:
        return [await _session_accessibility(bus)]
    finally:
        bus.disconnect()


def _silent(detail: str, fix: str) -> Fact:
    return Fact(name="session-accessibility", ok=False, detail=detail, fix=fix)


async def _session_accessibility(bus: MessageBus) -> Fact:
    daemon = {"destination": "org.freedesktop.DBus", "path": "/org/freedesktop/DBus"}
    a11y = {"destination": "org.a11y.Bus", "path": "/org/a11y/bus"}
    restart = "systemctl --user restart at-spi-dbus-bus (or log in again)"
    try:
        (owned,) = await _ask(
            bus, **daemon, interface="org.freedesktop.DBus", member="NameHasOwner", signature="s", body=["org.a11y.Bus"]
        )
        if not owned:
            detail = "the session's accessibility bus is not running; the first application that needs it starts it"
            return Fact(name="session-accessibility", ok=True, detail=detail)
        (address,) = await _ask(bus, **a11y, interface="org.a11y.Bus", member="GetAddress")
        (enabled,) = await _ask(
            bus,
            **a11y,
            interface="org.freedesktop.DBus.Properties",
            member="Get",
            signature="ss",
            body=["org.a11y.Status", "IsEnabled"],
        )
    except (TimeoutError, OSError, EOFError):
        return _silent("the session's accessibility bus is present but silent", restart)
    if not await _registry_answers(str(address)):
        return _silent("the session's accessibility registry is present but silent", restart)
    if not enabled.value:
        fix = "gsettings set org.gnome.desktop.interface toolkit-accessibility true"
        return _silent("accessibility is switched off in this session", fix)
    return Fact(name="session-accessibility", ok=True, detail="the session's accessibility answers and is on")


async def _registry_answers(address: str) -> bool:
    try:
        bus = await asyncio.wait_for(MessageBus(bus_address=address).connect(), _ANSWER_S)
    except Exception:  # noqa: BLE001 - as above
        return False
    try:
        name = "org.a11y.atspi.Registry"
        await _ask(bus, destination=name, path="/org/a11y/atspi/registry", interface=name, member="GetRegisteredEvents")
    except (TimeoutError, OSError, EOFError):
        return False
    finally:
        bus.disconnect()
    return True


async def doctor_facts(environment: Mapping[str, str] | None = None) -> list[Fact]:
    """Return what desktops find on this machine, in a fixed order.

    Args:
        environment: Of the person who asks, for what concerns their own session; None leaves that out.
    """

    def looked_at() -> list[Fact]:
        facts = [*_program_facts(), *_sandbox_facts(), *_folder_facts(), _font_fact()]
        return [*facts, *_library_facts(), *_toolkit_facts()]

    facts = await asyncio.to_thread(looked_at)
    return facts if environment is None else [*facts, *await _session_facts(environment)]
