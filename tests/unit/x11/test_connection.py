"""Display names and authority files."""

from __future__ import annotations

import struct

import pytest

from surehand.adapters.x11.connection import FAMILY_LOCAL, FAMILY_WILD, cookie_for, display_number
from surehand.errors import Unavailable

NAME = b"MIT-MAGIC-COOKIE-1"


def entry(family: int, address: bytes, display: bytes, name: bytes, data: bytes) -> bytes:
    parts = (struct.pack(">H", len(field)) + field for field in (address, display, name, data))
    return struct.pack(">H", family) + b"".join(parts)


def test_the_cookie_of_this_host_and_display_is_found() -> None:
    data = (
        entry(FAMILY_LOCAL, b"there", b"5", NAME, b"a" * 16)
        + entry(FAMILY_LOCAL, b"here", b"6", NAME, b"b" * 16)
        + entry(FAMILY_LOCAL, b"here", b"5", b"XDM-AUTHORIZATION-1", b"c" * 16)
        + entry(FAMILY_LOCAL, b"here", b"5", NAME, b":" * 16)
        + entry(FAMILY_WILD, b"", b"", NAME, b"e" * 16)
    )
    assert cookie_for(5, data, b"here") == b":" * 16
    assert cookie_for(7, data, b"here") == b"e" * 16


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_cut_authority_file_gives_no_cookie(cut: int) -> None:
    whole = entry(FAMILY_LOCAL, b"here", b"5", NAME, b"b" * 16)
    found = cookie_for(5, whole[:cut], b"here")
    assert found is None


@pytest.mark.parametrize(("name", "number"), [(":0", 0), (":95.0", 95), ("unix:12", 12), (":3999", 3999)])
def test_local_displays_have_a_number(name: str, number: int) -> None:
    assert display_number(name) == number


@pytest.mark.parametrize("name", ["", "0", ":", ":x", "host:0", "10.0.0.1:0", ":-1", ":²", "tcp/host:0"])
def test_other_displays_are_refused(name: str) -> None:
    with pytest.raises(Unavailable) as caught:
        display_number(name)
    assert caught.value.fix
