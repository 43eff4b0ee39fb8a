"""How long a list that an action opens is waited for; the clock is the tests' own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from surehand import limits
from surehand.adapters.atspi import acting_dropdown
from surehand.errors import TargetNotActionable
from tests.virtual_time import VirtualLoop, run

OPEN_MS = limits.DROPDOWN_OPEN_MS_MAX
LOOK_MS = round(acting_dropdown._LOOK_S * 1000)


def waited_for(opens_at_ms: int) -> str:
    loop = VirtualLoop()

    class Way(acting_dropdown._Way):
        """Looks at a list that opens when the test says, in place of an application's."""

        def _look(self, _):
            if loop.monotonic_ms() < opens_at_ms:
                raise TargetNotActionable("not yet")
            return "open"

    async def family():
        return None

    way = Way(SimpleNamespace(family=family), None, "One")
    return run(way._opened(SimpleNamespace(checkpoint=lambda _: None)), loop)


def test_a_list_that_opens_at_the_last_moment_is_found():
    assert waited_for(OPEN_MS) == "open"


def test_a_list_that_opens_later_is_not_waited_for():
    with pytest.raises(TargetNotActionable):
        waited_for(OPEN_MS + 2 * LOOK_MS)
