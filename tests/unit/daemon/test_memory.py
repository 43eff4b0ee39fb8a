"""What the daemon's memory does over many operations: a block that was large once leaves no heap that only grows."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys

import pytest

from surehand import limits
from surehand.daemon.server import collect_rarely

_MB = 1024 * 1024

#: Frees a large block, which teaches the C library to keep such; then says how many new ones it maps by themselves.
_PROGRAM = f"""
import ctypes
from surehand.daemon.server import return_memory

class Facts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Facts
if GUARDED:
    return_memory()
large = bytearray({16 * _MB})
del large
before = libc.mallinfo2().hblks
held = [bytearray({_MB}) for _ in range(8)]
print(libc.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library")
@pytest.mark.parametrize(("guarded", "mapped"), [(True, 8), (False, 0)])
def test_large_blocks_are_given_back_whatever_was_freed_before(guarded: bool, mapped: int) -> None:
    program = f"GUARDED = {guarded}\n{_PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == mapped


def test_the_collector_leaves_what_is_there_alone_and_still_finds_later_cycles() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        collect_rarely()
        assert gc.get_freeze_count() > frozen
        assert gc.isenabled()
        assert gc.get_threshold()[0] == limits.GARBAGE_OBJECTS_MAX
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
