"""Isolated desktops with real servers and applications: programs, display, finding, attaching (spec §13, C39)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from surehand import limits
from surehand.errors import AppNotFound, Conflict, InvalidRequest, Unavailable
from surehand.runtime import _desktop_bringup as bringup
from surehand.runtime._desktop_records import process_generation, records_folder
from surehand.runtime._desktop_x import DisplayProbe, DisplayRefused
from surehand.runtime.desktops import IsolatedDesktop, find_desktop, list_desktops
from surehand.testing.desktop import isolated_desktop
from tests.desktop.desktop_support import (
    PYTHON,
    WAIT_S,
    alive,
    appears,
    application_names,
    executable,
    family,
    own,
    run_script,
    there,
    tool,
    until,
    until_gone,
)

pytestmark = pytest.mark.desktop


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


@pytest.mark.parametrize("sandbox", [True, False], ids=["isolated", "display_only"])
async def test_terminate_ends_a_program_that_ignores_the_request_and_all_it_started(
    sandbox: bool, monkeypatch: pytest.MonkeyPatch, script: Callable[[str], Path]
) -> None:
    monkeypatch.setattr(limits, "DESKTOP_TERMINATE_MS", 200)
    path = script(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n        os.setsid()\n"
        "open(sys.argv[1] + str(os.getpid()), 'w')\n"
        "time.sleep(1000)\n"
    )
    async with isolated_desktop(sandbox=sandbox) as desktop:
        app = await desktop.launch([PYTHON, "-I", path, str(desktop.folder / "ready")], binds=[path])
        await until(lambda: len(list(desktop.folder.glob("ready*"))) == 4)
        started = {process_generation(app.pid) or "", *family(app.pid)}
        assert len(started) == 4
        assert await app.terminate() != 0
        await until_gone(lambda: alive(started))
        assert desktop.is_running


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


async def test_a_start_that_fails_at_once_is_an_error_with_its_own_words(
    desktop: IsolatedDesktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await desktop.launch(["sleep", "1000"])).check_start()
    monkeypatch.setattr(limits, "DESKTOP_LAUNCH_SURE_MS", 10_000)  # a busy machine takes longer
    await (await desktop.launch(["true"])).check_start()  # it may have handed over to one that runs
    for owner in (desktop, await IsolatedDesktop.attach(find_desktop(desktop.name))):
        with pytest.raises(Unavailable, match="python3 ended at once with status 2") as caught:
            await (await owner.launch([PYTHON, "/nonesuch.py"])).check_start()
        assert "/nonesuch.py" in caught.value.observed["log"]
        assert "  /usr/bin/python3: can't open file '/nonesuch.py'" in str(caught.value)
        assert caught.value.details == {"exit_code": 2}
        assert not caught.value.retry_safe


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


async def test_the_layout_is_the_built_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XKB_DEFAULT_LAYOUT", "de")
    async with isolated_desktop() as desktop:
        assert tool(desktop, "setxkbmap", "-query").split()[-2:] == ["layout:", "us"]


async def test_a_shown_desktop_takes_neither_layout_nor_clients_of_the_persons_display(
    script: Callable[[str], Path],
) -> None:
    async with isolated_desktop(geometry=(1400, 900)) as person:
        tool(person, "setxkbmap", "de")
        async with isolated_desktop(view=True, view_environment=person.environment, name=own("shown")) as shown:
            assert find_desktop(own("shown")).view is True
            window = tool(person, "xdotool", "search", "--sync", "--name", f"Surehand: {own('shown')}").split()[0]
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
    async with isolated_desktop(name=own("recorded")) as desktop:
        record = find_desktop(own("recorded"))
        assert (record.display, record.isolation) == (desktop.display, desktop.isolation)
        assert record.owner_pid == os.getpid()
        path = records_folder() / f"{own('recorded')}.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with pytest.raises(Conflict, match="runs already"):
            await IsolatedDesktop.start(name=own("recorded"))
    assert there(path, record.control) == []
    with pytest.raises(Unavailable, match=f"no desktop named '{own('recorded')}'"):
        find_desktop(own("recorded"))
    with pytest.raises(Unavailable, match=r"ended|answer"):
        await IsolatedDesktop.attach(record)


@pytest.mark.parametrize("name", ["", "-x", "A", "a/b", "..", "a b", "x" * 33, "é"])
async def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="no name"):
        await IsolatedDesktop.start(name=name)


async def test_the_longest_name_still_leaves_room_for_sockets() -> None:
    async with isolated_desktop(name=own("x").ljust(limits.DESKTOP_NAME_CHARS_MAX, "x")) as desktop:
        await desktop.launch(["mousepad"])
        await appears(desktop, "mousepad")
        sockets = [path for path in desktop.folder.rglob("*") if path.is_socket()]
        assert sockets
        assert max(len(str(path)) for path in sockets) < 108
