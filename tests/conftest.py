"""Fixtures that every test may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surehand.testing.desktop import IsolatedDesktop, running_desktop


@pytest.fixture(scope="module")
def desktop() -> Iterator[IsolatedDesktop]:
    """Return one isolated desktop for all tests of a module; usable from any event loop."""
    with running_desktop() as running:
        yield running


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a Python script into the test's own folder."""

    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write
