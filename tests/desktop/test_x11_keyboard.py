"""Text arrives exactly as asked, only where it is meant to, and leaves the keyboard as it was (C09, C36–C38)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.adapters.x11.connection import XServer
from surehand.errors import (
    FocusRequired,
    InvalidRequest,
    SecureSurface,
    TargetNotActionable,
    UnsupportedAction,
    WindowNotFound,
)
from surehand.model.actions import Press, TypeText, Window
from surehand.model.scene import LiveNode, Node
from surehand.model.secrets import HeldSecret
from tests.desktop.x11_actor_support import RecordingAttempt, Stage, Stop, stage
from tests.desktop.x11_support import Display, Painter, display, end, until, until_async, window

pytestmark = pytest.mark.desktop
RECEIVER = str(Path(__file__).with_name("x11_receiver.py"))
TOOLKITS = ("gtk3", "gtk4", "qt", "xterm")
LAYOUTS = ("us", "de", "fr", "us,gr")
C36 = "yz/@{[-_ äéß€Ω漢"
TEXTS = {
    "c36": C36,
    "first and levels": "@first ^~´`\\|{}[]~ AltGr €µ ñÑ ÅÄÖ",
    "repeated": "aaaabbbb  ßßßß漢漢漢漢..",
    "emoji": "🙂👍🏽👨‍👩‍👧🇩🇪❤️!",
    "right to left": "שלום עולם مرحبا بالعالم",
    "combining": "é å̊ q̣̇ ñ",
    "more than there are free keycodes": "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    "capitals": "AbCdEfGÉèÀçZ",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display() as made:
        yield made


@pytest.fixture
async def on(shared: Display) -> AsyncIterator[Stage]:
    shared.run("setxkbmap", "-layout", "us")
    async with stage(shared) as made:
        yield made


class Receiver:
    """A text field of a toolkit, and what it holds."""

    def __init__(self, toolkit: str, folder: Path, shown: Display, nap: float = 0.0) -> None:
        self.toolkit = toolkit
        self.out = folder / toolkit
        self.title = f"receiver {toolkit}"
        if toolkit == "xterm":
            script = f"stty -echo raw; echo ready > '{self.out}'; exec cat > '{self.out}'"
            self.program = shown.launch("xterm", "-u8", "-T", self.title, "-e", "sh", "-c", script)
        else:
            self.program = shown.launch("/usr/bin/python3", RECEIVER, toolkit, str(self.out), str(nap))
        self.entry: dict[str, Any] = {}

    async def ready(self, on: Stage) -> None:
        self.entry = await window(on.screen, self.title)
        until(lambda: self.out.exists() and self.out.read_bytes() == b"", "empty field")
        assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), self.entry))).status == "done"

    @property
    def text(self) -> str:
        return self.out.read_text("utf-8", errors="replace")

    async def holds(self, text: str) -> None:
        try:
            await until_async(lambda: self.text == text, "text", 5)
        except AssertionError:
            raise AssertionError(f"{self.toolkit} holds {self.text!r}, not {text!r}") from None


@pytest.fixture
async def receive(shared: Display, on: Stage, tmp_path: Path) -> AsyncIterator[Any]:
    made: list[Receiver] = []

    async def make(toolkit: str, nap: float = 0.0) -> Receiver:
        receiver = Receiver(toolkit, tmp_path, shared, nap)
        made.append(receiver)
        await receiver.ready(on)
        return receiver

    yield make
    for receiver in made:
        end(receiver.program)


def keyboard_of(shown: Display) -> dict[str, Any]:
    """Return what a stranger sees of the keyboard: keys down, mapping, locks, group."""
    server = XServer(shown.name, None)
    setup = server.conn.setup
    count = setup.max_keycode - setup.min_keycode + 1
    seen = {
        "down": [byte for byte in server.core.QueryKeymap().reply().keys if byte],
        "mapping": [sym for sym in server.core.GetKeyboardMapping(setup.min_keycode, count).reply().keysyms if sym],
    }
    server.conn.disconnect()
    return seen


async def type_text(on: Stage, receiver: Receiver, text: str, **options: Any) -> Any:
    return await on.actor.perform(RecordingAttempt(TypeText(text=text, **options), receiver.entry))


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_text_arrives_exactly_under_every_layout(shared: Display, on: Stage, receive: Any, toolkit: str) -> None:
    receiver = await receive(toolkit)
    expected = ""
    for layout in LAYOUTS:
        shared.run("setxkbmap", "-layout", layout)
        before = keyboard_of(shared)
        for name, text in TEXTS.items():
            done = await type_text(on, receiver, text)
            assert done.status == "done", (layout, name)
            expected += text
            await receiver.holds(expected)
            assert keyboard_of(shared) == before, (layout, name)


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_five_hundred_characters_at_once_all_arrive_in_order(
    shared: Display, on: Stage, receive: Any, toolkit: str
) -> None:
    receiver = await receive(toolkit)
    text = ("Pack my box with five dozen liquor jugs; Zwölf Boxkämpfer! €5 漢字 " * 9)[:500]
    done = await type_text(on, receiver, text)
    assert done.output == {"delivered": 500, "units": 500}
    await receiver.holds(text)


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt"])
async def test_clear_and_submit_replace_and_end_with_return(on: Stage, receive: Any, toolkit: str) -> None:
    receiver = await receive(toolkit)
    await type_text(on, receiver, "old\ttext\nsecond")
    await receiver.holds("old\ttext\nsecond")
    await type_text(on, receiver, "new", clear=True, submit=True)
    await receiver.holds("new\n")
    await type_text(on, receiver, "", clear=True)
    await receiver.holds("")
    done = await type_text(on, receiver, "")
    assert done.output == {"delivered": 0, "units": 0}


@pytest.mark.parametrize("toolkit", ["gtk3", "gtk4", "qt"])
async def test_chords_in_three_spellings_do_what_they_say(on: Stage, receive: Any, toolkit: str) -> None:
    receiver = await receive(toolkit)
    await type_text(on, receiver, "one two")
    for chords, expected in (
        (("ctrl+a", "BackSpace"), ""),
        (("Shift+KeyH", "i", "plus", "space", "y"), "Hi+ y"),
        (("Control+Shift+ArrowLeft", "Delete"), "Hi+ "),
        (("Home", "Control_L+KeyA", "\ue017"), ""),
    ):
        await on.actor.perform(RecordingAttempt(Press(chords=chords), receiver.entry))
        await receiver.holds(expected)
    assert not (await on.actor.physical_state())["modifiers"]


async def test_a_shortcut_works_while_another_group_is_active(shared: Display, on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    await type_text(on, receiver, "alpha")
    shared.run("setxkbmap", "-layout", "us,gr")
    lock_group(shared, 1)
    await on.actor.perform(RecordingAttempt(Press(chords=("ctrl+a", "BackSpace")), receiver.entry))
    await receiver.holds("")
    await type_text(on, receiver, "zω")
    await receiver.holds("zω")
    assert group_of(shared) == 1


async def test_caps_and_num_lock_change_no_letter_and_stay_as_they_were(
    shared: Display, on: Stage, receive: Any
) -> None:
    receiver = await receive("gtk3")
    shared.run("xdotool", "key", "Caps_Lock")
    shared.run("xdotool", "key", "Num_Lock")
    before = (await on.actor.physical_state())["modifiers"]
    assert before & 2
    await type_text(on, receiver, "aBc 1! é漢É")
    await receiver.holds("aBc 1! é漢É")
    await on.actor.perform(RecordingAttempt(Press(chords=("KP_7", "Return")), receiver.entry))
    await receiver.holds("aBc 1! é漢É7\n")
    assert (await on.actor.physical_state())["modifiers"] == before
    shared.run("xdotool", "key", "Caps_Lock")
    shared.run("xdotool", "key", "Num_Lock")


async def test_text_stops_when_another_window_takes_the_keyboard(shared: Display, on: Stage, receive: Any) -> None:
    # C09: nothing may arrive in the other window.
    receiver = await receive("gtk3")
    thief = await receive("qt")
    assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), receiver.entry))).status == "done"

    def steal(delivered: int) -> None:
        if delivered == 4:
            shared.run("xdotool", "windowactivate", "--sync", str(thief.entry["id"]))

    attempt = RecordingAttempt(TypeText(text="secret words"), receiver.entry, before=steal)
    done = await on.actor.perform(attempt)
    assert done.status == "unknown"
    assert done.output is not None
    assert (done.output["delivered"], done.output["units"]) == (4, 12)
    assert done.output["error"]["code"] == "focus_required"
    await receiver.holds("secr")
    assert thief.text == ""
    assert not (await on.actor.physical_state())["held"]


async def test_a_secret_stops_when_its_application_moves_the_keyboard_on(shared: Display, receive: Any) -> None:
    reads = 0

    async def read_live(_: str, __: Any) -> dict[str, LiveNode | None]:
        nonlocal reads
        reads += 1
        states = frozenset({"focusable", "focused"} if reads <= 4 else {"focusable"})
        node = Node(handle="pw", role="password", name="Password", states=states, secret=True)
        return {"pw": LiveNode(node=node, parent="root")}

    async with stage(shared, live_reader=read_live) as on:
        receiver = await receive("gtk3")
        assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), receiver.entry))).status == "done"
        action = TypeText(secret_ref="vault:mail")  # noqa: S106 - a name, not a secret
        node = Node(handle="pw", role="password", name="Password", secret=True)
        attempt = RecordingAttempt(action, receiver.entry, node=node, fence_handles=("pw",))
        attempt.secret = HeldSecret(bytearray(b"secret words"))
        done = await on.actor.perform(attempt)
        assert (done.status, done.output["error"]["code"]) == ("unknown", "focus_required")
        await receiver.holds("secr")
        assert not (await on.actor.physical_state())["held"]


async def test_text_is_refused_while_another_window_has_the_keyboard(on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    other = await receive("gtk4")
    attempt = RecordingAttempt(TypeText(text="not there"), receiver.entry)
    with pytest.raises(FocusRequired) as caught:
        await on.actor.perform(attempt)
    assert caught.value.fix
    assert not attempt.entered
    assert (receiver.text, other.text) == ("", "")


async def test_nothing_is_typed_into_a_minimised_or_vanished_window(shared: Display, on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    assert (await on.actor.perform(RecordingAttempt(Window(op="minimize"), receiver.entry))).status == "done"
    with pytest.raises(TargetNotActionable):
        await type_text(on, receiver, "x")
    end(receiver.program)

    async def gone() -> bool:
        return all(entry["id"] != receiver.entry["id"] for entry in await on.screen.stacking())

    await until_async(gone, "vanished window")
    with pytest.raises(WindowNotFound):
        await type_text(on, receiver, "x")


async def test_a_program_that_took_the_keyboard_gets_no_text(shared: Display, on: Stage, receive: Any) -> None:
    # A lock screen does not take the focus: it grabs the keyboard over everything.
    receiver = await receive("gtk3")
    code = (
        "import xcffib, xcffib.xproto, sys\n"
        "c = xcffib.connect(sys.argv[1]); s = c.setup.roots[0]; w = c.generate_id()\n"
        "c.core.CreateWindow(24, w, s.root, 0, 0, 1280, 800, 0, 1, s.root_visual, 512 | 2048, [1, 3])\n"
        "c.core.MapWindow(w)\n"
        "while c.core.GrabKeyboard(0, w, 0, 1, 1).reply().status: pass\n"
        "c.core.GetInputFocus().reply(); print('locked', flush=True)\n"
        "while True: print(type(c.wait_for_event()).__name__, flush=True)\n"
    )
    import sys

    locker = shared.launch(sys.executable, "-c", code, shared.name, stdout=subprocess.PIPE)
    assert locker.stdout is not None
    assert locker.stdout.readline() == b"locked\n"
    attempt = RecordingAttempt(TypeText(text="password"), receiver.entry)
    with pytest.raises(SecureSurface):
        await on.actor.perform(attempt)
    assert not attempt.entered
    end(locker)
    assert b"KeyPress" not in locker.stdout.read()
    locker.stdout.close()
    assert receiver.text == ""
    await type_text(on, receiver, "unlocked")
    await receiver.holds("unlocked")


async def test_text_is_refused_while_somebody_holds_a_modifier(shared: Display, on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    shared.run("xdotool", "keydown", "Control_L")
    try:
        with pytest.raises(TargetNotActionable):
            await type_text(on, receiver, "abc")
    finally:
        shared.run("xdotool", "keyup", "Control_L")
    assert receiver.text == ""


async def test_a_slow_application_reads_the_right_characters_in_the_end(
    shared: Display, on: Stage, receive: Any
) -> None:
    # It sleeps in its first key handler, so it reads the layout long after the last key was sent.
    receiver = await receive("gtk3", nap=2.0)
    before = keyboard_of(shared)
    done = await type_text(on, receiver, "aЖ漢ß")
    assert done.status == "sent"
    assert keyboard_of(shared)["mapping"] != before["mapping"]
    await receiver.holds("aЖ漢ß")
    await until_async(lambda: keyboard_of(shared) == before, "keyboard as it was")


async def test_an_application_that_never_answers_costs_others_no_text(
    shared: Display, on: Stage, receive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "APP_CALL_MS_MAX", 200)
    monkeypatch.setattr(limits, "KEYMAP_SETTLE_MS_MAX", 100)
    monkeypatch.setattr(limits, "LENT_MS_MAX", 1500)
    before = keyboard_of(shared)
    hung = await receive("gtk3")
    hung.program.send_signal(signal.SIGSTOP)
    assert (await type_text(on, hung, "Жж")).status == "sent"
    other = await receive("qt")
    assert (await type_text(on, other, "Яя漢")).status == "done"
    await other.holds("Яя漢")
    # Its time is over at last, whether or not it read them.
    await until_async(lambda: keyboard_of(shared) == before, "keyboard as it was")
    hung.program.send_signal(signal.SIGCONT)


async def test_a_stop_between_two_characters_releases_and_restores(shared: Display, on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    before = keyboard_of(shared)

    def stop(delivered: int) -> None:
        if delivered == 3:
            raise Stop

    attempt = RecordingAttempt(TypeText(text="漢ЖßABC"), receiver.entry, before=stop)
    with pytest.raises(Stop):
        await on.actor.perform(attempt)
    await receiver.holds("漢Жß")
    await until_async(lambda: keyboard_of(shared) == before, "keyboard as it was")


async def test_a_layout_that_changes_in_the_middle_loses_no_character(shared: Display, on: Stage, receive: Any) -> None:
    receiver = await receive("qt")
    layouts = iter(("de", "fr", "us,gr"))

    text = "yzЖ漢@{yz漢Ж@{[é"

    def change(delivered: int) -> None:
        if delivered in {3, 7, 11}:
            # What was sent and not yet read would be read under the new layout, by whoever sent it.
            until(lambda: receiver.text == text[:delivered], "characters so far")
            shared.run("setxkbmap", "-layout", next(layouts))

    await on.actor.perform(RecordingAttempt(TypeText(text=text), receiver.entry, before=change))
    await receiver.holds(text)
    wanted = keyboard_of(shared)["mapping"]
    shared.run("setxkbmap", "-layout", "us,gr")
    await until_async(lambda: keyboard_of(shared)["mapping"] == wanted, "the last layout, untouched")


async def test_a_keycode_that_somebody_else_took_meanwhile_stays_theirs(
    shared: Display, on: Stage, receive: Any
) -> None:
    receiver = await receive("gtk3")
    server = XServer(shared.name, None)
    taken: list[int] = []

    def take(delivered: int) -> None:
        if delivered == 1:
            until(lambda: receiver.text == "漢", "first character")
            lent = next(line for line in on.notes if line.startswith(b"m+"))
            taken.append(int(lent.split()[1]))
            server.core.ChangeKeyboardMapping(1, taken[0], 2, [0xFFCA, 0xFFCA])  # F13
            server.sync()

    await on.actor.perform(RecordingAttempt(TypeText(text="漢abc"), receiver.entry, before=take))
    await receiver.holds("漢abc")
    assert next(iter(server.core.GetKeyboardMapping(taken[0], 1).reply().keysyms)) == 0xFFCA
    server.core.ChangeKeyboardMapping(1, taken[0], 2, [0, 0])
    server.sync()
    server.conn.disconnect()


async def test_without_a_window_manager_the_focus_alone_decides() -> None:
    with display(manager=False) as bare:
        async with stage(bare) as on:
            first = Painter(bare.name, "first", (100, 100, 200, 100), 0xFF)
            second = Painter(bare.name, "second", (100, 300, 200, 100), 0xFF)
            entry, other = await window(on.screen, "first"), await window(on.screen, "second")
            # Nobody, the root, and another window: none of them is the first window.
            for focus in (0, 1, first.root, second.id):
                first.do(lambda core, focus=focus: core.SetInputFocus(0, focus, 0))
                first.settle()
                with pytest.raises(FocusRequired):
                    await on.actor.perform(RecordingAttempt(TypeText(text="x"), entry))
            assert (first.key_events(), len(second.key_events())) == ([], 0)
            await on.actor.perform(RecordingAttempt(TypeText(text="x"), other))
            assert len(second.key_events()) == 2
            first.close()
            second.close()


@pytest.mark.parametrize("text", ["a\x1bb", "\x07", "x\x7f"])
async def test_a_control_character_is_refused_before_anything(on: Stage, receive: Any, text: str) -> None:
    receiver = await receive("gtk3")
    attempt = RecordingAttempt(TypeText(text=text), receiver.entry)
    with pytest.raises(InvalidRequest):
        await on.actor.perform(attempt)
    assert not attempt.entered
    assert receiver.text == ""


async def test_an_unknown_chord_stops_all_of_them(on: Stage, receive: Any) -> None:
    receiver = await receive("gtk3")
    with pytest.raises(InvalidRequest):
        await on.actor.perform(RecordingAttempt(Press(chords=("a", "b", "nosuchkey")), receiver.entry))
    assert receiver.text == ""


async def test_a_modifier_that_the_layout_lacks_is_said_and_not_skipped(
    shared: Display, on: Stage, receive: Any
) -> None:
    receiver = await receive("gtk3")
    attempt = RecordingAttempt(Press(chords=("Shift_R+Hyper_R+a",)), receiver.entry)
    with pytest.raises(UnsupportedAction) as caught:
        await on.actor.perform(attempt)
    assert caught.value.details == {"key": "Hyper_R"}
    assert not attempt.entered
    assert receiver.text == ""


async def test_an_element_without_the_keyboard_gets_no_text(shared: Display, receive: Any, on: Stage) -> None:
    receiver = await receive("gtk3")
    node = Node(handle="h", role="text", states=frozenset({"focusable"}))
    states = {"now": node}

    async def read(_: str, __: Any) -> dict[str, LiveNode | None]:
        return {"h": LiveNode(node=states["now"], parent="")}

    async with stage(shared, live_reader=read) as other:
        attempt = RecordingAttempt(TypeText(text="x"), receiver.entry, node=node, fence_handles=("h",))
        with pytest.raises(FocusRequired):
            await other.actor.perform(attempt)
        assert receiver.text == ""
        states["now"] = Node(handle="h", role="text", states=frozenset({"focusable", "focused"}))
        await other.actor.perform(RecordingAttempt(TypeText(text="x"), receiver.entry, node=node, fence_handles=("h",)))
    await receiver.holds("x")


async def test_a_plain_program_sees_modifiers_pressed_around_the_key(shared: Display, on: Stage) -> None:
    painter = Painter(shared.name, "plain", (200, 200, 200, 100), 0xFF)
    entry = await window(on.screen, "plain")
    assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), entry))).status == "done"
    painter.received.clear()
    await on.actor.perform(RecordingAttempt(Press(chords=("ctrl+shift+s",)), entry))
    kinds = [what for what, _ in painter.key_events()]
    codes = [code for _, code in painter.key_events()]
    assert kinds == ["key down"] * 3 + ["key up"] * 3
    assert codes[3:] == codes[2::-1]
    assert painter.received[2][4] & 0xFF == 5
    painter.close()


def lock_group(shown: Display, group: int) -> None:
    import xcffib.xkb

    server = XServer(shown.name, None)
    server.extension(xcffib.xkb).UseExtension(1, 0).reply()
    server.extension(xcffib.xkb).LatchLockState(256, 0, 0, True, group, 0, False, 0)
    server.sync()
    server.conn.disconnect()


def group_of(shown: Display) -> int:
    import xcffib.xkb

    server = XServer(shown.name, None)
    xkb = server.extension(xcffib.xkb)
    xkb.UseExtension(1, 0).reply()
    group = int(xkb.GetState(256).reply().group)
    server.conn.disconnect()
    return group
