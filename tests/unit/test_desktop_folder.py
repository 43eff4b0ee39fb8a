"""What a desktop's folder and its programs' environment are made of."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from surehand.errors import Unavailable
from surehand.runtime import _desktop_folder as folders
from surehand.runtime._desktop_programs import viewer_of


def fields(data: bytes) -> list[bytes]:
    found, place = [], 2
    while place < len(data):
        (length,) = struct.unpack_from(">H", data, place)
        found.append(data[place + 2 : place + 2 + length])
        place += 2 + length
    return found


def test_the_cookie_is_for_every_host_and_display_and_read_back(tmp_path: Path) -> None:
    layout = folders.fill(tmp_path)
    data = layout.xauthority.read_bytes()
    assert struct.unpack_from(">H", data)[0] == 65535
    assert fields(data) == [b"", b"", b"MIT-MAGIC-COOKIE-1", layout.cookie]
    assert len(layout.cookie) == 16
    assert layout.xauthority.stat().st_mode & 0o777 == 0o600
    assert folders.read(tmp_path) == layout


def test_a_cookie_never_holds_a_colon(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [b"good-cookie-here", b"sixteen:bytes:ok", b":" * 16]
    monkeypatch.setattr(folders.secrets, "token_bytes", lambda _: drawn.pop())
    assert folders._new_cookie() == b"good-cookie-here"


def test_every_part_is_for_us_alone(tmp_path: Path) -> None:
    layout = folders.fill(tmp_path)
    for folder in (layout.etc, layout.home, layout.run, layout.log):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_the_window_manager_runs_nothing_for_anybody(tmp_path: Path) -> None:
    text = (folders.fill(tmp_path).etc / "openbox.xml").read_text()
    assert "Execute" not in text
    assert "ShowMenu" not in text
    assert "<menu></menu>" in text


def test_the_session_bus_starts_the_accessibility_bus_and_nothing_else(tmp_path: Path) -> None:
    layout = folders.fill(tmp_path)
    assert [path.name for path in (layout.etc / "services").iterdir()] == ["org.a11y.Bus.service"]
    text = (layout.etc / "bus.conf").read_text()
    assert text.count("<servicedir>") == 1
    assert "standard_session_servicedirs" not in text
    assert "include" not in text


def test_the_user_files_name_nobody_of_the_host(tmp_path: Path) -> None:
    layout = folders.fill(tmp_path)
    lines = (layout.etc / "passwd").read_text().splitlines()
    assert len(lines) <= 2
    assert lines[0].split(":")[2:6] == [str(os.getuid()), str(os.getgid()), "", str(layout.home)]


def test_a_uid_without_a_name_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(folders.pwd, "getpwuid", unknown)
    layout = folders.fill(tmp_path)
    assert folders.program_environment(layout, ":91", None)["USER"] == "user"


def test_the_environment_depends_on_the_desktop_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layout = folders.fill(tmp_path)
    before = folders.program_environment(layout, ":91", "unix:path=/a")
    for name in before:
        monkeypatch.setenv(name, "from outside")
    assert folders.program_environment(layout, ":91", "unix:path=/a") == before
    assert "NO_AT_BRIDGE" not in before
    assert before["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] == before["ACCESSIBILITY_ENABLED"] == "1"
    assert "AT_SPI_BUS_ADDRESS" not in folders.program_environment(layout, ":91", None)


def test_a_machine_without_the_accessibility_service_is_told_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folders, "_A11Y_SERVICE", tmp_path / "none")
    monkeypatch.setattr(folders, "_LAUNCHERS", (str(tmp_path / "none"),))
    with pytest.raises(Unavailable, match="accessibility service") as caught:
        folders.fill(tmp_path)
    assert caught.value.fix == "apt install at-spi2-core"


def test_the_launcher_is_found_without_its_activation_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = tmp_path / "launcher"
    launcher.touch()
    monkeypatch.setattr(folders, "_A11Y_SERVICE", tmp_path / "none")
    monkeypatch.setattr(folders, "_LAUNCHERS", (str(tmp_path / "other"), str(launcher)))
    assert folders.a11y_launcher() == str(launcher)


def test_nothing_but_display_and_authority_is_taken_from_the_person(tmp_path: Path) -> None:
    authority = tmp_path / ".Xauthority"
    authority.touch()
    environment = {"DISPLAY": ":0", "HOME": str(tmp_path), "LD_PRELOAD": "/evil", "DBUS_SESSION_BUS_ADDRESS": "x"}
    viewer = viewer_of(environment)
    assert viewer.environment == {"DISPLAY": ":0", "XAUTHORITY": str(authority)}
    assert viewer.files == (authority,)
    authority.unlink()
    assert viewer_of(environment).environment == {"DISPLAY": ":0"}


@pytest.mark.parametrize("environment", [{}, {"DISPLAY": ""}, {"WAYLAND_DISPLAY": "wayland-0"}])
def test_without_a_display_there_is_no_view(environment: dict[str, str]) -> None:
    with pytest.raises(Unavailable, match="DISPLAY is not set"):
        viewer_of(environment)
