"""Fixtures that every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from surehand.testing.desktop import IsolatedDesktop, running_desktop


@pytest.fixture(scope="module")
def desktop() -> Iterator[IsolatedDesktop]:
    """Return one isolated desktop for all tests of a module; usable from any event loop."""
    with running_desktop() as running:
        yield running
