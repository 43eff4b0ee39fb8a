"""`import surehand` loads next to nothing, opens nothing, reads no environment; the public surface is short."""

from __future__ import annotations

import subprocess
import sys

import surehand

HEAVY = (
    "typer", "rich", "dbus_fast", "xcffib", "apsw", "numpy", "cryptography", "nacl", "re2", "isal", "asyncio", "msgspec",
    "orjson", "socket", "ssl", "surehand.runtime", "surehand.adapters", "surehand.daemon", "surehand.client",
)  # fmt: skip


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_none_of_the_heavy_modules() -> None:
    loaded = python(f"import surehand, sys; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "[]"


def test_the_blocking_client_loads_no_event_loop_and_no_adapter() -> None:
    heavy = [m for m in HEAVY if m not in {"msgspec", "orjson", "socket", "surehand.client"}]
    assert python(f"import surehand, sys; surehand.open; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_importing_opens_nothing_but_code_and_reads_no_environment() -> None:
    code = """
import os, sys
seen = []
class Tripwire(type(os.environ)):
    def __getitem__(self, key): seen.append(('environ', key)); return super().__getitem__(key)
    def __contains__(self, key): seen.append(('environ', key)); return super().__contains__(key)
    def __iter__(self): seen.append(('environ', '*')); return super().__iter__()
os.environ.__class__ = Tripwire
def hook(event, args):
    if event == 'open' and not str(args[0]).endswith(('.py', '.pyc')) or event.startswith(('socket', 'subprocess')):
        seen.append((event, str(args)))
sys.addaudithook(hook)
import surehand
print(seen)
"""
    assert python(code) == "[]"


def test_importing_is_quick() -> None:
    code = "import time; t = time.process_time(); import surehand; print(time.process_time() - t)"
    # Of its own work, the best of several: the machine that runs the tests is busy.
    assert min(float(python(code)) for _ in range(5)) < 0.060


def test_the_public_surface_is_short_and_every_name_of_it_is_there() -> None:
    assert len(surehand.__all__) <= 25
    assert sorted(surehand.__all__) == surehand.__all__
    for name in surehand.__all__:
        assert getattr(surehand, name) is not None
    assert set(dir(surehand)) == set(surehand.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    assert not hasattr(surehand, "Gateway")
