"""Fixtures that every test may ask for."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surehand.testing.desktop import IsolatedDesktop, running_desktop
from tests.leftovers import Leftovers

_LEFTOVERS = pytest.StashKey[Leftovers]()


def pytest_configure() -> None:
    """Let interrupts arrive: a shell starts what it runs in the background with them ignored, children included."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the run when a process that a test started outlives it, and say which test's it is."""
    base = tmp_path_factory.getbasetemp()
    found = request.config.stash[_LEFTOVERS] = Leftovers(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTS_FOLDER", str(base))  # what tests start is known by it
        patch.setenv("SUREHAND_RUNTIME_DIR", str(base / "nobodys"))  # never the daemon of whoever runs the tests
        # Nor their desktops: what is written down of those that run is this run's alone, as is whether there is one.
        own = base / "runtime"
        own.mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(own))
        yield
    left = found.end()
    assert not left, "left running:\n" + "\n".join(left)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if found := item.config.stash.get(_LEFTOVERS, None):
        if "tmp_path" in getattr(item, "funcargs", {}):
            found.made(item.funcargs["tmp_path"], item.nodeid)
        if nextitem is None or nextitem.path != item.path:
            found.ended(str(item.path.relative_to(item.config.rootpath)))


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
