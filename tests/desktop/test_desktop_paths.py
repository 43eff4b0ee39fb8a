"""A desktop works wherever the user's runtime folder is, sockets being what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from surehand import limits
from surehand.runtime.desktops import IsolatedDesktop, find_desktop
from surehand.testing.desktop import isolated_desktop
from tests.desktop.desktop_support import there

pytestmark = pytest.mark.desktop


async def test_a_runtime_folder_too_long_for_a_socket_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * limits.SOCKET_PATH_BYTES_MAX)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    async with isolated_desktop() as desktop:
        record = find_desktop(desktop.name)
        assert len(record.control.encode()) <= limits.SOCKET_PATH_BYTES_MAX
        assert await (await (await IsolatedDesktop.attach(record)).launch(["true"])).wait(10) == 0
    assert there(record.control) == []
