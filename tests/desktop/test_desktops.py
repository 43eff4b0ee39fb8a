"""Isolated desktops with real servers, buses and applications (spec §13; C31, C39)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbus_fast import Message
from dbus_fast.aio import MessageBus

from surehand import limits
from surehand.errors import AppNotFound, Conflict, InvalidRequest, Unavailable
from surehand.runtime import _desktop_bringup as bringup
from surehand.runtime import _desktop_folder as folders
from surehand.runtime._desktop_ready import NotReady, start_accessibility
from surehand.runtime._desktop_records import process_generation, records_folder
from surehand.runtime._desktop_x import DisplayProbe, DisplayRefused
from surehand.runtime.desktops import IsolatedDesktop, find_desktop, list_desktops
from surehand.testing.desktop import isolated_desktop

pytestmark = pytest.mark.desktop

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
WAIT_S = 20.0


async def until(condition: Callable[[], Any], wait_s: float = WAIT_S) -> Any:
    """Poll a cheap condition of the outside world until it holds; there is no event for it."""
    deadline = time.monotonic() + wait_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {condition}")
        await asyncio.sleep(0.01)
    return value


def there(*paths: Path | str) -> list[str]:
    return [str(path) for path in paths if os.path.lexists(path)]


async def ask(bus: MessageBus, destination: str, path: str, interface: str, member: str, *body: Any) -> Any:
    signature = "s" * len(body)
    reply = await bus.call(
        Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
    )
    assert reply is not None
    return reply.body[0] if reply.body else None


async def application_names(desktop: IsolatedDesktop) -> set[str]:
    """Return the names of the applications that the accessibility registry shows to us, outside."""
    bus = await MessageBus(bus_address=desktop.a11y_bus_address).connect()
    try:
        registry, root, accessible = (
            "org.a11y.atspi.Registry",
            "/org/a11y/atspi/accessible/root",
            "org.a11y.atspi.Accessible",
        )
        names = set()
        for name, path in await ask(bus, registry, root, accessible, "GetChildren"):
            value = await ask(bus, name, path, "org.freedesktop.DBus.Properties", "Get", accessible, "Name")
            names.add(str(getattr(value, "value", "")))
        return names
    finally:
        bus.disconnect()


async def appears(desktop: IsolatedDesktop, name: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not any(name in seen.lower() for seen in await application_names(desktop)):
        if time.monotonic() > deadline:
            pytest.fail(f"{name} never appeared: {await application_names(desktop)}")
        await asyncio.sleep(0.05)


async def run_script(desktop: IsolatedDesktop, path: Path, *arguments: str, **options: Any) -> Any:
    """Run a Python script inside and return the JSON that it printed."""
    app = await desktop.launch([PYTHON, "-I", "-B", path, *arguments], binds=[path], **options)
    code = await app.wait(WAIT_S)
    assert code == 0, app.log_text()
    return json.loads(app.log_text())


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


# --- what programs see --------------------------------------------------------------------------------------------

_LOOK = """
import ctypes, json, os, socket, sys
host = json.loads(sys.argv[1])

def tries(function):
    try:
        function()
        return "worked"
    except OSError as error:
        return type(error).__name__

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(2)
        sock.connect(address)

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
print(json.dumps({
    "secret": os.path.exists(host["secret"]),
    "home": os.path.exists(host["home"]),
    "roots": sorted(os.listdir("/")),
    "pids": [int(name) for name in os.listdir("/proc") if name.isdigit()],
    "kill": tries(lambda: os.kill(host["pid"], 0)),
    "x_sockets": os.listdir("/tmp/.X11-unix"),
    "tmp": sorted(os.listdir("/tmp")),
    "run": os.listdir("/run"),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "loopback": tries(lambda: connect(socket.AF_INET, ("127.0.0.1", host["port"]))),
    "abstract": tries(lambda: connect(socket.AF_UNIX, "\\0" + host["abstract"])),
    "shared_memory": libc.shmat(host["shm"], None, 0) not in (None, ctypes.c_void_p(-1).value),
    "write_usr": tries(lambda: open("/usr/surehand-was-here", "w")),
    "write_etc": tries(lambda: open(host["folder"] + "/etc/xauthority", "ab")),
    "logs": os.listdir(host["folder"] + "/log"),
    "shadow": tries(lambda: open("/etc/shadow").read(1)),
    "namespaces": libc.unshare(0x10000000),
    "hostname": socket.gethostname(),
    "machine": open("/etc/machine-id").read() if os.path.exists("/etc/machine-id") else "",
    "passwd": open("/etc/passwd").read(),
}))
"""


class Host:
    """Things of the host that a program inside must not reach."""

    def __init__(self, secret: Path, desktop: IsolatedDesktop) -> None:
        import ctypes

        secret.write_text("secret")
        self.name = f"surehand-test-{os.getpid()}-{time.monotonic_ns()}"
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.abstract.bind("\0" + self.name)
        self.abstract.listen()
        self._libc = ctypes.CDLL(None)
        self.shm = self._libc.shmget(0, 4096, 0o1600)
        self.value = {
            "secret": str(secret),
            "home": str(Path.home()),
            "pid": os.getpid(),
            "port": self.tcp.getsockname()[1],
            "abstract": self.name,
            "shm": self.shm,
            "folder": str(desktop.folder),
        }

    def close(self) -> None:
        self.tcp.close()
        self.abstract.close()
        self._libc.shmctl(self.shm, 0, None)


async def look(desktop: IsolatedDesktop, tmp_path: Path, script: Callable[[str], Path]) -> dict[str, Any]:
    host = Host(tmp_path / "secret.txt", desktop)
    try:
        seen = await run_script(desktop, script(_LOOK), json.dumps(host.value))
        assert isinstance(seen, dict)
        return seen
    finally:
        host.close()


def host_machine_id() -> str | None:
    path = Path("/etc/machine-id")
    return path.read_text() if path.exists() else None


async def test_a_program_sees_nothing_of_the_host(
    desktop: IsolatedDesktop, tmp_path: Path, script: Callable[[str], Path]
) -> None:
    assert desktop.isolation == "isolated", desktop.isolation_reason
    seen = await look(desktop, tmp_path, script)
    assert seen["secret"] is False
    assert seen["home"] is False
    assert not {"home", "root", "boot", "srv", "mnt", "media", "sys"} & set(seen["roots"])
    assert len(seen["pids"]) <= 2
    assert seen["kill"] == "ProcessLookupError"
    assert seen["x_sockets"] == [f"X{desktop.display[1:]}"]
    assert seen["run"] == []
    assert seen["interfaces"] == ["lo"]
    assert seen["loopback"] == "ConnectionRefusedError"
    assert seen["abstract"] == "ConnectionRefusedError"
    assert seen["shared_memory"] is False
    assert seen["write_usr"] == "OSError"
    assert seen["write_etc"] == "OSError"
    assert seen["logs"] == []
    assert seen["shadow"] in {"FileNotFoundError", "PermissionError"}
    assert seen["namespaces"] != 0
    assert seen["hostname"] == "desktop"
    assert seen["machine"] != host_machine_id()
    assert str(Path.home()) not in seen["passwd"].replace(str(desktop.folder), "")


async def test_a_program_with_network_still_reaches_no_abstract_socket_of_the_host(
    tmp_path: Path, script: Callable[[str], Path]
) -> None:
    async with isolated_desktop(network=True) as desktop:
        if desktop.isolation != "isolated":
            assert desktop.isolation_reason
            pytest.skip(desktop.isolation_reason)
        seen = await look(desktop, tmp_path, script)
    assert seen["loopback"] == "worked"
    assert seen["abstract"] == "PermissionError"
    assert seen["secret"] is False
    assert seen["x_sockets"] == [f"X{desktop.display[1:]}"]


async def test_a_program_inherits_no_variable(monkeypatch: pytest.MonkeyPatch, script: Callable[[str], Path]) -> None:
    planted = {
        "DISPLAY": ":0",
        "WAYLAND_DISPLAY": "wayland-0",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus",
        "AT_SPI_BUS_ADDRESS": "unix:path=/run/user/0/at-spi",
        "XAUTHORITY": "/root/.Xauthority",
        "SESSION_MANAGER": "local/host",
        "XKB_DEFAULT_LAYOUT": "de",
        "NO_AT_BRIDGE": "yes-please",
        "GTK_MODULES": "evil",
        "LD_PRELOAD": "",
        "GTK_PATH": "/evil",
        "QT_PLUGIN_PATH": "/evil",
        "SUREHAND_SECRET": "s3cret",
        "SSH_AUTH_SOCK": "/evil",
        "LANG": "xx_XX",
    }
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    async with isolated_desktop() as desktop:
        path = script("import json, os; print(json.dumps(dict(os.environ)))")
        seen = await run_script(desktop, path, env={"ADDED": "yes"})
        expected = desktop.environment
    seen.pop("LC_CTYPE", None)  # Python's own
    assert set(seen) <= {*expected, "ADDED", "PWD"}
    assert seen["ADDED"] == "yes"
    assert not {value for value in planted.values() if value} & set(seen.values())
    assert {name: seen[name] for name in expected} == expected


async def test_the_home_is_shared_by_the_desktops_programs_and_dies_with_it(script: Callable[[str], Path]) -> None:
    path = script(
        "import os, pathlib, json; p = pathlib.Path.home() / 'a'; e = p.exists(); p.touch(); print(json.dumps(e))"
    )
    async with isolated_desktop() as desktop:
        assert await run_script(desktop, path) is False
        assert await run_script(desktop, path) is True
        folder = desktop.folder
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


async def test_a_writable_bind_is_written_and_a_read_only_one_is_not(
    desktop: IsolatedDesktop, tmp_path: Path, script: Callable[[str], Path]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    path = script(
        "import json, pathlib, sys\n"
        "try:\n    pathlib.Path(sys.argv[1], 'x').write_text('x'); print(json.dumps(True))\n"
        "except OSError:\n    print(json.dumps(False))\n"
    )
    assert await run_script(desktop, path, str(outside), writable=[outside]) is True
    assert (outside / "x").read_text() == "x"
    (outside / "x").unlink()
    app = await desktop.launch([PYTHON, "-I", path, str(outside)], binds=[path, outside])
    assert await app.wait(WAIT_S) == 0
    assert json.loads(app.log_text()) is False
    assert list(outside.iterdir()) == []


async def test_a_link_planted_in_the_folder_does_not_lead_out(
    desktop: IsolatedDesktop, tmp_path: Path, script: Callable[[str], Path]
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "note").write_text("secret")
    planted = desktop.folder / "planted"
    planted.symlink_to(secret)
    path = script("import json, os, sys; print(json.dumps(os.path.exists(sys.argv[1] + '/note')))")
    try:
        assert await run_script(desktop, path, str(planted), writable=[planted]) is False
    finally:
        planted.unlink()


@pytest.mark.parametrize("which", ["root", "records", "control", "desktops", "relative", "missing"])
async def test_a_bind_that_hands_out_control_or_does_not_exist_is_refused(desktop: IsolatedDesktop, which: str) -> None:
    record = find_desktop(desktop.name)
    paths = {
        "root": "/",
        "records": str(Path(record.control).parent),
        "control": record.control,
        "desktops": str(desktop.folder.parent),
        "relative": "x",
        "missing": "/no/such/path",
    }
    with pytest.raises(InvalidRequest, match="cannot be bound"):
        await desktop.launch(["true"], binds=[paths[which]])


# --- real applications ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["mousepad", "gnome-calculator", "featherpad", "kcalc"])
@pytest.mark.parametrize("sandbox", [True, False], ids=["isolated", "display_only"])
async def test_real_applications_show_their_trees(program: str, sandbox: bool) -> None:
    async with isolated_desktop(sandbox=sandbox) as desktop:
        assert desktop.isolation == ("isolated" if sandbox else "display_only")
        app = await desktop.launch([program])
        assert executable(app.pid).endswith(f"/{program}")
        await appears(desktop, program)
        assert app.returncode is None
        await app.terminate()


async def test_a_python_application_of_each_toolkit_runs(
    desktop: IsolatedDesktop, script: Callable[[str], Path]
) -> None:
    gtk = "import gi; gi.require_version('Gtk', '{v}'); from gi.repository import Gtk; import json, sys; "
    texts = (
        gtk.format(v="3.0") + "print(json.dumps(Gtk.init_check(sys.argv)[0]))",
        gtk.format(v="4.0") + "print(json.dumps(Gtk.init_check()))",
        "from PyQt5.QtWidgets import QApplication; import json; a = QApplication([]); print(json.dumps(a.platformName()))",
        "import json, tkinter; print(json.dumps(tkinter.Tk().winfo_screenwidth()))",
    )
    seen = [await run_script(desktop, script(text)) for text in texts]
    assert seen == [True, True, "xcb", 1280]


async def test_terminate_ends_a_program_that_ignores_the_request_and_all_it_started(
    desktop: IsolatedDesktop, monkeypatch: pytest.MonkeyPatch, script: Callable[[str], Path]
) -> None:
    monkeypatch.setattr(limits, "DESKTOP_TERMINATE_MS", 200)
    log = desktop.folder / "ready"
    path = script(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n        os.setsid()\n"
        "open(sys.argv[1] + str(os.getpid()), 'w')\n"
        "time.sleep(1000)\n"
    )
    app = await desktop.launch([PYTHON, "-I", path, str(log)], binds=[path])
    await until(lambda: len(list(desktop.folder.glob("ready*"))) == 4)
    inside = namespace_members(app.pid)
    assert len(inside) >= 5
    assert await app.terminate() != 0
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))


def executable(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


def namespace_members(pid: int) -> set[int]:
    wanted = Path(f"/proc/{pid}/ns/pid").readlink()
    found = set()
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and (path / "ns/pid").readlink() == wanted:
                found.add(int(path.name))
    return found


async def test_a_program_that_is_not_there_is_named(desktop: IsolatedDesktop) -> None:
    with pytest.raises(AppNotFound, match="no-such-program"):
        await desktop.launch(["no-such-program"])
    with pytest.raises(AppNotFound):
        await desktop.launch(["./relative"])
    with pytest.raises(InvalidRequest):
        await desktop.launch([])
    with pytest.raises(InvalidRequest):
        await desktop.launch(["true", "a\0b"])


async def test_a_program_that_ends_at_once_tells_how(desktop: IsolatedDesktop, script: Callable[[str], Path]) -> None:
    path = script("import sys; print('bye'); sys.exit(7)")
    app = await desktop.launch([PYTHON, "-I", path], binds=[path])
    assert await app.wait(WAIT_S) == 7
    assert app.returncode == 7
    assert app.log_text() == "bye\n"
    assert await app.terminate() == 7


async def test_arguments_never_meet_a_shell(desktop: IsolatedDesktop, script: Callable[[str], Path]) -> None:
    words = ["$(touch /tmp/x)", "; exit 3", "`id`", "a b", "*", ""]
    assert await run_script(desktop, script("import json, sys; print(json.dumps(sys.argv[1:]))"), *words) == words


async def test_a_command_longer_than_a_packet_is_refused(desktop: IsolatedDesktop) -> None:
    with pytest.raises(InvalidRequest, match="too long"):
        await desktop.launch(["true", "x" * 200_000])
    app = await desktop.launch(["true", "x" * 100_000])
    assert await app.wait(WAIT_S) == 0


async def test_output_can_go_to_a_descriptor_of_ours(desktop: IsolatedDesktop) -> None:
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    app = await desktop.launch(["echo", "hello"], stdio=(null, write, null))
    os.close(write)
    assert await app.wait(WAIT_S) == 0
    assert os.read(read, 100) == b"hello\n"
    os.close(read)
    os.close(null)


# --- the display ------------------------------------------------------------------------------------------------------


async def test_a_stranger_without_the_cookie_is_refused(desktop: IsolatedDesktop) -> None:
    number = int(desktop.display[1:])
    async with DisplayProbe.connected(number, desktop.cookie):
        pass
    for cookie in (b"", b"\0" * 16, desktop.cookie[:-1] + bytes([desktop.cookie[-1] ^ 1])):
        with pytest.raises(DisplayRefused):
            async with DisplayProbe.connected(number, cookie):
                pass


async def test_two_desktops_at_once_are_separate(desktop: IsolatedDesktop) -> None:
    async with isolated_desktop() as other:
        assert other.display != desktop.display
        assert other.session_bus_address != desktop.session_bus_address
        assert other.a11y_bus_address != desktop.a11y_bus_address
        await other.launch(["mousepad"])
        await appears(other, "mousepad")
        assert "mousepad" not in " ".join(await application_names(desktop))
        with pytest.raises(DisplayRefused):
            async with DisplayProbe.connected(int(other.display[1:]), desktop.cookie):
                pass
        names = {record.name for record in list_desktops()}
        assert {desktop.name, other.name} <= names


async def test_four_starters_at_once_get_four_displays() -> None:
    desktops = await asyncio.gather(*(IsolatedDesktop.start() for _ in range(4)))
    try:
        assert len({desktop.display for desktop in desktops}) == 4
        assert len({desktop.a11y_bus_address for desktop in desktops}) == 4
    finally:
        await asyncio.gather(*(desktop.close() for desktop in desktops))
    assert not any(desktop.folder.exists() for desktop in desktops)


async def test_a_number_that_somebody_took_first_is_left_to_them(
    desktop: IsolatedDesktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = int(desktop.display[1:])
    free = bringup._free_display
    numbers = [taken, taken]
    monkeypatch.setattr(bringup, "_free_display", lambda: numbers.pop() if numbers else free())
    async with isolated_desktop() as other:
        assert other.display != desktop.display
        assert numbers == []
    async with DisplayProbe.connected(taken, desktop.cookie):
        pass  # and the first owner still has it


@pytest.mark.parametrize("geometry", [(63, 600), (800, 63), (8193, 600), (800, 8193), (-1, 600)])
async def test_a_screen_out_of_bounds_is_refused(geometry: tuple[int, int]) -> None:
    before = {record.name for record in list_desktops()}
    with pytest.raises(InvalidRequest, match="out of bounds") as caught:
        await IsolatedDesktop.start(geometry=geometry)
    assert caught.value.fix
    assert {record.name for record in list_desktops()} <= before


async def test_the_smallest_screen_starts() -> None:
    async with isolated_desktop(geometry=(64, 64)) as desktop:
        assert desktop.geometry == (64, 64)


def tool(desktop: IsolatedDesktop, *words: str) -> str:
    done = subprocess.run(words, env=desktop.environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
    return done.stdout


async def test_the_layout_is_the_built_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XKB_DEFAULT_LAYOUT", "de")
    async with isolated_desktop() as desktop:
        assert tool(desktop, "setxkbmap", "-query").split()[-2:] == ["layout:", "us"]


async def test_a_shown_desktop_takes_neither_layout_nor_clients_of_the_persons_display(
    script: Callable[[str], Path],
) -> None:
    async with isolated_desktop(geometry=(1400, 900)) as person:
        tool(person, "setxkbmap", "de")
        async with isolated_desktop(view=True, view_environment=person.environment, name="shown") as shown:
            assert find_desktop("shown").view is True
            window = tool(person, "xdotool", "search", "--sync", "--name", "Surehand: shown").split()[0]
            log = shown.folder / "typed"
            shell = f"stty -echo; read typed; echo $typed > {log}"
            await shown.launch(["xterm", "-e", "/bin/sh", "-c", shell])
            inner = tool(shown, "xdotool", "search", "--sync", "--onlyvisible", "--class", "xterm").split()[0]
            tool(shown, "xdotool", "windowfocus", "--sync", inner)
            tool(person, "xdotool", "windowfocus", "--sync", window)
            # The person presses the keys that carry z and - on a German keyboard; the desktop reads them as US keys.
            tool(person, "xdotool", "key", "29", "61", "36")
            await until(lambda: log.exists() and log.read_text().strip())
            assert log.read_text().strip() == "y/"
            await shown.launch(["mousepad"])
            await appears(shown, "mousepad")
            assert "mousepad" not in " ".join(await application_names(person))


async def test_showing_needs_a_display() -> None:
    with pytest.raises(Unavailable, match="DISPLAY is not set") as caught:
        await IsolatedDesktop.start(view=True, view_environment={})
    assert caught.value.fix == "run it in a graphical session, or without --view"


# --- finding and attaching ------------------------------------------------------------------------------------------


async def test_another_process_finds_the_desktop_and_starts_programs_in_it(desktop: IsolatedDesktop) -> None:
    code = (
        "import asyncio, json, sys\n"
        "from surehand.runtime.desktops import IsolatedDesktop, find_desktop\n"
        "async def main():\n"
        "    async with await IsolatedDesktop.attach(find_desktop(sys.argv[1])) as desktop:\n"
        "        app = await desktop.launch(['/usr/bin/env'])\n"
        "        code = await app.wait(20)\n"
        "        print(json.dumps([code, app.log_text(), desktop.display, desktop.cookie.hex()]))\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, desktop.name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    code, text, display, cookie = json.loads(done.stdout)
    assert (code, display, cookie) == (0, desktop.display, desktop.cookie.hex())
    assert f"DISPLAY={desktop.display}" in text.splitlines()
    app = await desktop.launch(["true"])  # the desktop outlives the visitor
    assert await app.wait(WAIT_S) == 0


async def test_a_record_is_private_and_goes_with_the_desktop() -> None:
    async with isolated_desktop(name="recorded") as desktop:
        record = find_desktop("recorded")
        assert (record.display, record.isolation) == (desktop.display, desktop.isolation)
        assert record.owner_pid == os.getpid()
        path = Path(record.control).with_suffix(".json")
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with pytest.raises(Conflict, match="runs already"):
            await IsolatedDesktop.start(name="recorded")
    assert there(path, record.control) == []
    with pytest.raises(Unavailable, match="no desktop named 'recorded'"):
        find_desktop("recorded")
    with pytest.raises(Unavailable, match=r"ended|answer"):
        await IsolatedDesktop.attach(record)


@pytest.mark.parametrize("name", ["", "-x", "A", "a/b", "..", "a b", "x" * 33, "é"])
async def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="no name"):
        await IsolatedDesktop.start(name=name)


async def test_the_longest_name_still_leaves_room_for_sockets() -> None:
    async with isolated_desktop(name="x" * limits.DESKTOP_NAME_CHARS_MAX) as desktop:
        await desktop.launch(["mousepad"])
        await appears(desktop, "mousepad")
        sockets = [path for path in desktop.folder.rglob("*") if path.is_socket()]
        assert sockets
        assert max(len(str(path)) for path in sockets) < 108


# --- parts that are missing or silent ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "package"), [("Xvfb", "xvfb"), ("openbox", "openbox"), ("dbus-daemon", "dbus")])
async def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, program: str, package: str
) -> None:
    from surehand.runtime import _desktop_programs as programs

    find = programs.shutil.which
    monkeypatch.setattr(programs.shutil, "which", lambda word, **kw: None if word == program else find(word, **kw))
    with pytest.raises(Unavailable, match=f"{program} is not installed") as caught:
        await IsolatedDesktop.start()
    assert caught.value.fix == f"apt install {package}"


async def test_a_missing_accessibility_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "a11y_launcher", lambda: None)
    with pytest.raises(Unavailable, match="accessibility service") as caught:
        await IsolatedDesktop.start(name="no-a11y")
    assert caught.value.fix == "apt install at-spi2-core"
    assert not (folders_of_this_user() / "no-a11y").exists()


def folders_of_this_user() -> Path:
    return Path(f"/tmp/surehand-{os.getuid()}/d")  # noqa: S108


@pytest.mark.parametrize(
    ("part", "stand_in", "named"),
    [
        ("Xvfb", "/bin/false", "display server"),
        ("openbox", "/bin/false", "window manager"),
        ("dbus-daemon", "/bin/false", "session bus"),
    ],
)
async def test_a_part_that_dies_at_start_is_named_at_once_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, part: str, stand_in: str, named: str
) -> None:
    real = bringup.required
    monkeypatch.setattr(bringup, "required", lambda word: stand_in if word == part else real(word))
    with pytest.raises(Unavailable, match=named) as caught:
        await asyncio.wait_for(IsolatedDesktop.start(name="broken"), 10)
    assert caught.value.details["part"] == named
    assert not (folders_of_this_user() / "broken").exists()


async def test_a_silent_accessibility_bus_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """C31: it is there and never answers."""
    launcher = tmp_path / "launcher"
    launcher.write_text("#!/bin/sh\nexec sleep 1000\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(folders, "a11y_launcher", lambda: str(launcher))
    with pytest.raises(Unavailable, match="accessibility bus: it is present but does not answer") as caught:
        await IsolatedDesktop.start(name="silent", timeout_ms=1500, sandbox=False)
    assert caught.value.details["part"] == "accessibility bus"
    assert "at-spi2-core" in (caught.value.fix or "")
    assert not (folders_of_this_user() / "silent").exists()


async def test_a_silent_registry_is_told_from_a_silent_bus() -> None:
    """C31: the bus answers, its registry is stopped."""
    async with isolated_desktop() as desktop:
        registry = next(
            pid for pid in descendants(desktop._programs.client.pid or 0) if command_name(pid) == "at-spi2-registr"
        )
        os.kill(registry, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(NotReady, match="does not answer") as caught:
            await start_accessibility(desktop.session_bus_address, 0.5)
        assert caught.value.part == "accessibility registry"
        assert time.monotonic() - started < 2
        os.kill(registry, signal.SIGCONT)
        await start_accessibility(desktop.session_bus_address, WAIT_S)


# --- death ------------------------------------------------------------------------------------------------------------


def command_name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    pending = [pid]
    while pending:
        parent = pending.pop()
        with contextlib.suppress(OSError):
            children = {int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
            found |= children
            pending += children
    return found


_OWNER = """
import asyncio, json, sys
from surehand.runtime.desktops import IsolatedDesktop
async def main():
    async with await IsolatedDesktop.start(sandbox=sys.argv[1] == "isolated") as desktop:
        await desktop.launch(["mousepad"])
        # A program that leaves its family and its session.
        app = await desktop.launch(["/bin/sh", "-c", "setsid setsid sleep 1000 & echo started; exec sleep 1000"])
        while "started" not in app.log_text():
            await asyncio.sleep(0.01)
        print(json.dumps({
            "supervisor": desktop._programs.client.pid, "display": desktop.display[1:], "name": desktop.name,
            "folder": str(desktop.folder),
        }), flush=True)
        if sys.argv[2] == "raise":
            raise RuntimeError("on purpose")
        await asyncio.sleep(1000)
asyncio.run(main())
"""


async def start_owner(isolation: str, ending: str) -> tuple[asyncio.subprocess.Process, dict[str, Any], set[int]]:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OWNER, isolation, ending, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    facts = json.loads(await asyncio.wait_for(owner.stdout.readline(), WAIT_S))
    pids = {facts["supervisor"], *descendants(facts["supervisor"])}
    assert len(pids) >= 8
    return owner, facts, pids


def leftovers(facts: dict[str, Any], pids: set[int]) -> list[str]:
    number = facts["display"]
    paths = [
        facts["folder"],
        f"/tmp/.X{number}-lock",  # noqa: S108
        f"/tmp/.X11-unix/X{number}",  # noqa: S108
        *(str(path) for path in records_folder().glob(f"{facts['name']}.*")),
    ]
    return there(*paths) + [f"pid {pid}" for pid in pids if process_generation(pid)]


@pytest.mark.parametrize("isolation", ["isolated", "display_only"])
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGINT", "raise"])
async def test_everything_dies_with_the_owner(isolation: str, ending: str) -> None:
    owner, facts, pids = await start_owner(isolation, ending)
    if ending != "raise":
        assert leftovers(facts, pids)
        owner.send_signal(signal.Signals[ending])
    await asyncio.wait_for(owner.wait(), WAIT_S)
    await until(lambda: not leftovers(facts, pids))
    assert facts["name"] not in {record.name for record in list_desktops()}


async def test_after_owner_and_supervisor_were_killed_the_next_look_removes_the_rest() -> None:
    owner, facts, pids = await start_owner("isolated", "SIGKILL")
    os.kill(owner.pid, signal.SIGSTOP)  # so that it cannot notice
    os.kill(facts["supervisor"], signal.SIGKILL)
    owner.kill()
    await asyncio.wait_for(owner.wait(), WAIT_S)
    await until(lambda: not any(process_generation(pid) for pid in pids))
    assert there(facts["folder"])
    assert facts["name"] not in {record.name for record in list_desktops()}
    assert leftovers(facts, pids) == []


async def test_a_killed_supervisor_is_noticed_and_its_desktop_removed() -> None:
    desktop = await IsolatedDesktop.start()
    app = await desktop.launch(["sleep", "1000"])
    supervisor = desktop._programs.client.pid or 0
    pids = descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    await asyncio.wait_for(desktop.wait_closed(), WAIT_S)
    assert not desktop.is_running
    assert await app.wait(WAIT_S) == -signal.SIGKILL
    with pytest.raises(Unavailable, match="has ended"):
        await desktop.launch(["true"])
    await until(lambda: not any(process_generation(pid) for pid in pids))
    await desktop.close()
    assert not desktop.folder.exists()


async def test_closing_twice_is_fine_and_leaves_nothing() -> None:
    desktop = await IsolatedDesktop.start()
    pids = descendants(desktop._programs.client.pid or 0)
    await desktop.launch(["mousepad"])
    await desktop.close()
    await desktop.close()
    assert leftovers({"display": desktop.display[1:], "folder": str(desktop.folder), "name": desktop.name}, pids) == []


async def test_a_cancelled_start_leaves_nothing() -> None:
    task = asyncio.create_task(IsolatedDesktop.start(name="cancelled"))
    folder = folders_of_this_user() / "cancelled"
    await until(folder.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not folder.exists())


# --- as an ordinary user ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.getuid() != 0, reason="the tests run as an ordinary user already")
async def test_it_works_as_an_ordinary_user(tmp_path: Path) -> None:
    code = (
        "import asyncio, os\n"
        "from surehand.runtime.desktops import IsolatedDesktop\n"
        "async def main():\n"
        "    async with await IsolatedDesktop.start() as desktop:\n"
        "        app = await desktop.launch(['mousepad'])\n"
        "        print(desktop.isolation, os.getuid(), os.stat(desktop.folder).st_uid, app.returncode)\n"
        "asyncio.run(main())\n"
    )
    import surehand

    packages = [str(Path(surehand.__file__).parents[1]), *(word for word in sys.path if "site-packages" in word)]
    command = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", PYTHON, "-B", "-c", code]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(packages), "LANG": "C.UTF-8"}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("an ordinary user cannot read this checkout")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["isolated", "65534", "65534", "None"]
