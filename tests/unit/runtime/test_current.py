"""Which desktop `current` means, and what of a session is believed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from surehand.errors import PermissionMissing, SurehandError, Unavailable
from surehand.runtime.current import current_desktop, paired_display


@pytest.mark.parametrize(
    ("pairings", "environ", "found"),
    [
        ((":0",), {"DISPLAY": ":0"}, ":0"),
        ((":0.0",), {"DISPLAY": ":0"}, ":0"),
        ((":0",), {"DISPLAY": ":0.1"}, ":0"),
        ((":0", ":1"), {"DISPLAY": ":1"}, ":1"),
        ((":7",), {}, ":7"),
        ((":7", ":7.0"), {}, ":7"),
    ],
)
def test_it_is_the_daemons_own_display_or_the_only_paired_one(
    pairings: tuple[str, ...], environ: dict[str, str], found: str
) -> None:
    assert paired_display(pairings, environ) == found


@pytest.mark.parametrize(
    ("pairings", "environ", "said"),
    [
        ((), {}, 'pairings = [":0"]'),
        ((), {"DISPLAY": ":3"}, 'pairings = [":3"]'),
        ((":1",), {"DISPLAY": ":0"}, 'pairings = [":0"]'),
        (("localhost:0", "host/unix:0", "0", "", ":", ":0x"), {}, 'pairings = [":0"]'),
        (("localhost:10.0",), {"DISPLAY": "localhost:10.0"}, 'pairings = [":0"]'),
        ((":0", ":1"), {}, "surehand serve"),
    ],
)
def test_any_other_is_refused_and_the_fix_is_named(
    pairings: tuple[str, ...], environ: dict[str, str], said: str
) -> None:
    with pytest.raises(PermissionMissing) as refused:
        paired_display(pairings, environ)
    assert said in (refused.value.fix or "")


@pytest.mark.parametrize("what", ["missing", "a file", "deaf"])
async def test_a_session_that_does_not_answer_is_said_and_nothing_is_started(what: str, tmp_path: Path) -> None:
    bus = tmp_path / "bus"
    listener = socket.socket(socket.AF_UNIX)
    if what == "a file":
        bus.touch()
    elif what == "deaf":
        listener.bind(str(bus))
    with pytest.raises(Unavailable):
        await current_desktop((":0",), {"XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path)
    listener.close()


async def test_an_unpaired_display_is_refused_before_the_session_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(SurehandError) as refused:
        await current_desktop((), {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}, tmp_path)
    assert refused.value.code == "permission_missing"
