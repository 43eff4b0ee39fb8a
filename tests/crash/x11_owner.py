"""An owner of held input, to be killed: `x11_owner.py DISPLAY SCENE`; prints the guard's pid when everything is down.

Scenes: `chord` holds ctrl+shift+F9 and a lent keycode with the group locked; `button` holds a pointer button;
`typing` types without end.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from surehand.adapters.x11.connection import XServer
from surehand.adapters.x11.input import Injector
from surehand.core.input.keys import Key, keysym_of, named_key
from surehand.core.input.ledger import Held
from surehand.runtime.guard import Guard


def hold_chord(server: XServer, injector: Injector) -> None:
    keyboard = injector.keyboard
    state = keyboard.state()
    keyboard.lend([keysym_of("漢"), keysym_of("Ж")])
    keyboard.set_locks(state, state.locked | 2, state.group)
    for name in ("Control_L", "Shift_L", "F9"):
        stroke = keyboard.stroke(named_key(name), state)
        assert stroke is not None
        injector.press(Held("key", stroke.keycode))
    lent = keyboard.stroke(Key(keysym_of("漢"), "漢"), state)
    assert lent is not None
    injector.press(Held("key", lent.keycode))
    server.sync()


def hold_button(server: XServer, injector: Injector) -> None:
    injector.move(5, 5)
    injector.press(injector.button(1))
    server.sync()


def type_without_end(server: XServer, injector: Injector) -> None:
    from surehand.core.input.plan import plan_text

    units = plan_text("aB漢Ж€ß ")
    while True:
        for unit in units:
            with server.grabbed():
                server.drain()
                send = injector.prepare(unit, units)
                assert send is not None
                send()
            server.sync()


def tell(guard: Guard) -> None:
    sys.stdout.write(f"{guard.pid}\n")
    sys.stdout.flush()


async def main() -> None:
    display, scene = sys.argv[1:3]
    guard = Guard(display, None)
    await guard.start()
    server = XServer(display, None)
    injector = Injector(server, guard.note)
    server.handler = injector.handle
    if scene == "typing":
        tell(guard)
        type_without_end(server, injector)
    {"chord": hold_chord, "button": hold_button}[scene](server, injector)
    tell(guard)
    await asyncio.get_running_loop().create_future()


asyncio.run(main())
