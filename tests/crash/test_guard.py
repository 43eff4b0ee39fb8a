"""Nothing stays down, and nothing stays changed, whoever dies when (case C38, spec §10)."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.adapters.x11.connection import XServer
from surehand.adapters.x11.input import Injector
from surehand.core.input.ledger import Held, press_line, release_line
from surehand.errors import Unavailable
from surehand.runtime import guard as guard_module
from surehand.runtime.guard import Guard
from tests.desktop.x11_support import WAIT_S, Display, display, environment, until, until_async

pytestmark = pytest.mark.desktop
OWNER = str(Path(__file__).with_name("x11_owner.py"))
KILLS = 60 if os.environ.get("SUREHAND_LONG") else 6


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display(manager=False) as made:
        yield made


class Witness:
    """Sees the display from outside."""

    def __init__(self, shown: Display) -> None:
        self.server = XServer(shown.name, None)
        self.injector = Injector(self.server, lambda _: None)
        self.server.handler = self.injector.handle

    def state(self) -> dict[str, Any]:
        core = self.server.core
        self.server.drain()
        keys = core.QueryKeymap().reply().keys
        setup = self.server.conn.setup
        count = setup.max_keycode - setup.min_keycode + 1
        mapping = list(core.GetKeyboardMapping(setup.min_keycode, count).reply().keysyms)
        keyboard = self.injector.keyboard.state()
        return {
            "down": [8 * place + bit for place, byte in enumerate(keys) for bit in range(8) if byte & 1 << bit],
            "buttons": core.QueryPointer(self.server.root).reply().mask & 0x1F00,
            "mapping": mapping,
            "locks": (keyboard.locked, keyboard.locked_group, keyboard.base),
        }

    def close(self) -> None:
        self.server.conn.disconnect()


@pytest.fixture
def witness(shared: Display) -> Iterator[Witness]:
    made = Witness(shared)
    yield made
    made.close()


def own(shown: Display, scene: str) -> tuple[subprocess.Popen[bytes], int]:
    owner = subprocess.Popen(
        [sys.executable, OWNER, shown.name, scene], stdout=subprocess.PIPE, env=environment(shown.name)
    )
    assert owner.stdout is not None
    ready, _, _ = select.select([owner.stdout], [], [], WAIT_S)
    assert ready, "the owner did not get ready"
    return owner, int(owner.stdout.readline())


def finish(owner: subprocess.Popen[bytes]) -> None:
    owner.wait(WAIT_S)
    assert owner.stdout is not None
    owner.stdout.close()


def gone(pid: int) -> bool:
    return (
        not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_owner_leaves_no_key_down_and_no_keycode_lent(shared: Display, witness: Witness, number: int) -> None:
    before = witness.state()
    owner, guard_pid = own(shared, "chord")
    during = witness.state()
    assert len(during["down"]) == 4
    assert during["mapping"] != before["mapping"]
    assert during["locks"] != before["locks"]
    owner.send_signal(number)
    finish(owner)
    until(lambda: witness.state() == before, "display as it was")
    until(lambda: gone(guard_pid), "end of the guard")


def test_a_killed_owner_leaves_no_button_down(shared: Display, witness: Witness) -> None:
    before = witness.state()
    owner, _ = own(shared, "button")
    assert witness.state()["buttons"] == 0x100
    owner.kill()
    finish(owner)
    until(lambda: witness.state() == before, "display as it was")


def test_a_keycode_that_somebody_else_took_stays_theirs(shared: Display, witness: Witness) -> None:
    before = witness.state()
    owner, guard_pid = own(shared, "chord")
    core = witness.server.core
    lent = next(code for code in range(255, 8, -1) if 0x1006F22 in core.GetKeyboardMapping(code, 1).reply().keysyms)
    core.ChangeKeyboardMapping(1, lent, 2, [0xFFCA, 0xFFCA])  # F13
    witness.server.sync()
    owner.kill()
    finish(owner)
    until(lambda: gone(guard_pid), "end of the guard")
    assert next(iter(core.GetKeyboardMapping(lent, 1).reply().keysyms)) == 0xFFCA
    core.ChangeKeyboardMapping(1, lent, 2, [0, 0])
    until(lambda: witness.state() == before, "display as it was")


def test_kills_at_random_moments_of_typing_leave_nothing(shared: Display, witness: Witness) -> None:
    before = witness.state()
    chance = random.Random(38)  # noqa: S311 - moments, not secrets
    for _ in range(KILLS):
        owner, guard_pid = own(shared, "typing")
        for _ in range(chance.randrange(1, 400)):
            witness.server.sync()  # each one waits out the owner's grabs: moments, not milliseconds
        owner.kill()
        finish(owner)
        until(lambda: witness.state() == before, "display as it was")
        until(lambda pid=guard_pid: gone(pid), "end of the guard")


def test_signals_to_the_owners_group_do_not_reach_the_guard(shared: Display, witness: Witness) -> None:
    before = witness.state()
    owner, guard_pid = own(shared, "chord")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        os.kill(guard_pid, number)
    assert os.getsid(guard_pid) == guard_pid
    owner.kill()
    finish(owner)
    until(lambda: witness.state() == before, "display as it was")


def test_an_owner_that_hangs_holds_nothing_for_ever(shared: Display, witness: Witness, tmp_path: Path) -> None:
    # The process under test gets the short limit through its own module, since limits are constants.
    site = tmp_path / "short.py"
    site.write_text(
        "import sys\nfrom surehand import limits\nlimits.HOLD_MS_MAX = 200\n"
        "from surehand.runtime import guard\nsys.exit(guard.main())\n"
    )
    before = witness.state()
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, str(site), "--display", shared.name], stdin=read, stdout=subprocess.PIPE,
        env=environment(shared.name),
    )  # fmt: skip
    os.close(read)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    os.write(write, press_line(Held("button", 1)))
    witness.injector.press(Held("button", 1))
    assert witness.state()["buttons"] == 0x100
    until(lambda: witness.state() == before, "release of what is held too long")
    os.close(write)
    assert process.wait(WAIT_S) == 0


async def test_a_guard_that_dies_is_replaced_and_knows_what_is_held(shared: Display, witness: Witness) -> None:
    before = witness.state()
    guard = Guard(shared.name, None)
    await guard.start()
    first = guard.pid
    assert first is not None
    injector = Injector(witness.server, guard.note)
    injector.press(Held("key", 38))
    os.kill(first, signal.SIGKILL)

    async def replaced() -> bool:
        return guard.pid not in {None, first}

    await until_async(replaced, "second guard")
    assert witness.state()["down"] == [38]
    await guard.close()  # as if the owner ended: the second guard releases what only the first was told of
    until(lambda: witness.state() == before, "display as it was")


async def test_without_a_guard_nothing_is_pressed(shared: Display, witness: Witness) -> None:
    before = witness.state()
    guard = Guard(shared.name, None)
    injector = Injector(witness.server, guard.note)
    with pytest.raises(Unavailable):
        injector.press(Held("key", 38))
    with pytest.raises(Unavailable):
        injector.keyboard.lend([0x1006F22])
    assert witness.state() == before
    await guard.start()
    await guard.close()
    with pytest.raises(Unavailable):
        injector.press(Held("key", 38))
    assert witness.state() == before


async def test_a_guard_without_a_display_says_so() -> None:
    guard = Guard(":3998", None)
    with pytest.raises(Unavailable) as caught:
        await guard.start()
    assert caught.value.fix
    await guard.close()


async def test_a_stopped_guard_is_noticed_before_its_pipe_is_full(shared: Display) -> None:
    guard = Guard(shared.name, None)
    await guard.start()
    assert guard.pid is not None
    os.kill(guard.pid, signal.SIGSTOP)

    def note_much() -> None:
        for _ in range(100_000):
            guard.note(press_line(Held("key", 38)))
            guard.note(release_line(Held("key", 38)))

    with pytest.raises(Unavailable):
        note_much()
    os.kill(guard.pid, signal.SIGCONT)
    await guard.close()


def test_the_guard_takes_nothing_from_the_owners_environment() -> None:
    source = Path(guard_module.__file__).read_text()
    assert "os.environ" not in source
    assert limits.GUARD_START_MS_MAX > 0
