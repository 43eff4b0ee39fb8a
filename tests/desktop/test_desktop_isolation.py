"""What a program in an isolated desktop sees of the host: nothing that was not granted (spec §13, C39)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surehand.errors import InvalidRequest
from surehand.runtime.desktops import IsolatedDesktop, find_desktop
from surehand.testing.desktop import isolated_desktop
from tests.desktop.desktop_support import (
    PYTHON,
    WAIT_S,
    run_script,
)

pytestmark = pytest.mark.desktop


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


_POWERS = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND, CLONE_NEWUSER = 32, 4096, 0x10000000
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
remounted = libc.mount(b"none", b"/usr", None, MS_REMOUNT | MS_BIND, None) == 0
print(json.dumps({
    "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": int(status["NoNewPrivs"]),
    "remounted": remounted,
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    "namespaces": libc.unshare(CLONE_NEWUSER) == 0,
}))
"""


@pytest.mark.parametrize("user_namespaces", [False, True])
async def test_a_program_has_no_powers_even_when_root_started_it(
    desktop: IsolatedDesktop, script: Callable[[str], Path], user_namespaces: bool
) -> None:
    seen = await run_script(desktop, script(_POWERS), user_namespaces=user_namespaces)
    assert seen == {
        "capabilities": [0] * 5,
        "no_new_privileges": 1,
        "remounted": False,
        "descriptors": [0, 1, 2, 3],  # the last lists the others
        "namespaces": user_namespaces,
    }


_SHARED_MEMORY = """
import ctypes, json, sys

class Info(ctypes.Structure):
    _fields_ = [("segment", ctypes.c_ulong), ("id", ctypes.c_int), ("address", ctypes.c_void_p), ("read_only", ctypes.c_int)]

x11, ext = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXext.so.6")
x11.XOpenDisplay.restype = ctypes.c_void_p
failed = []
handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: failed.append(1) or 0)
x11.XSetErrorHandler(handler)
display = ctypes.c_void_p(x11.XOpenDisplay(None))
ext.XShmAttach(display, ctypes.byref(Info(0, int(sys.argv[1]), None, 0)))
x11.XSync(display, 0)
print(json.dumps(not failed))
"""


async def test_the_display_does_not_open_the_hosts_shared_memory_to_a_program(
    desktop: IsolatedDesktop, tmp_path: Path, script: Callable[[str], Path]
) -> None:
    """The pictures of the person's windows are in such segments, and the display server runs as the same user."""
    host = Host(tmp_path / "secret.txt", desktop)
    try:
        assert await run_script(desktop, script(_SHARED_MEMORY), str(host.shm)) is False
    finally:
        host.close()
    async with isolated_desktop(sandbox=False) as open_desktop:
        host = Host(tmp_path / "secret.txt", open_desktop)
        try:  # where nothing confines the server it does: the test looks at the right thing
            assert await run_script(open_desktop, script(_SHARED_MEMORY), str(host.shm)) is True
        finally:
            host.close()


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


async def test_what_a_desktop_was_started_with_is_there_for_its_programs_and_those_of_visitors(
    tmp_path: Path, script: Callable[[str], Path]
) -> None:
    read, write = tmp_path / "read", tmp_path / "write"
    for folder in (read, write):
        folder.mkdir()
        (folder / "note").write_text("x")
    path = script(
        "import json, os, sys\nprint(json.dumps([[os.access(p + '/note', m) for m in (4, 2)] for p in sys.argv[1:]]))"
    )
    with pytest.raises(InvalidRequest, match="cannot be bound"):
        await IsolatedDesktop.start(extra_writable=[tmp_path / "missing"])
    async with (
        isolated_desktop(extra_binds=[read], extra_writable=[write]) as desktop,
        await IsolatedDesktop.attach(find_desktop(desktop.name)) as visitor,
    ):
        for owner in (desktop, visitor):
            assert await run_script(owner, path, str(read), str(write)) == [[True, False], [True, True]]


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
