"""The demo's agent: a script that speaks the public client and nothing else.

It does real work in four applications, tries what it may not do, and looks into what it does not know. Whatever comes
of each thing it tries goes to standard output, one JSON object a line. Where the rest of the world has to move first
(rows that change, a daemon that comes back) it says what it waits for, and goes on at a line `go`.

Before each operation it takes a picture of the window and notes where it is going to act: the film of the evidence
page.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import surehand

EDITOR, LISTER, CALCULATOR, GUESTS = "mousepad", "featherpad", "gnome-calculator", "guests.py"
START_S = 30  # applications of a fresh machine take their time
APPROVAL_S = 30


def tell(**facts: Any) -> None:
    """Say one thing to whoever runs the demo."""
    print(json.dumps(facts, ensure_ascii=False), flush=True)


def wait_for_go(what: str) -> None:
    """Say what has to happen first, and wait until it did."""
    tell(waiting=what)
    if sys.stdin.readline() != "go\n":
        raise SystemExit(f"nobody said go after {what}")


class Film:
    """Pictures of what the agent saw, with where it was going to act."""

    def __init__(self, hand: surehand.Hand, folder: Path) -> None:
        self._hand = hand
        self._folder = folder
        self._frames: list[dict[str, Any]] = []

    def shoot(
        self, operation_id: str, surface: str | None, caption: str, target: surehand.Target | None = None
    ) -> None:
        """Take a picture for an operation: of a window, or of the desktop."""
        picture = self._hand.screenshot(surface)
        frame: dict[str, Any] = {"operation_id": operation_id, "file": f"{len(self._frames) + 1:02}.png"}
        frame["caption"] = caption
        bounds = None if target is None else target.value.get("bounds")
        if bounds is not None:
            left, top = picture.capture["origin_x"], picture.capture["origin_y"]
            frame["outline"] = [bounds[0] - left, bounds[1] - top, bounds[2], bounds[3]]
        (self._folder / frame["file"]).write_bytes(picture.png)
        self._frames.append(frame)
        film = {"version": 1, "frames": self._frames}
        (self._folder / "film.json").write_text(json.dumps(film, ensure_ascii=False, indent=1), "utf-8")


class Agent:
    """What it wants to get done, a method for each part of the story."""

    def __init__(self, hand: surehand.Hand, film: Film, pace_s: float) -> None:
        self.hand = hand
        self.film = film
        self.pace_s = pace_s
        self.guests = hand.app(GUESTS)

    # --- how it acts ------------------------------------------------------------------------------------------------

    def operate(
        self,
        operation_id: str,
        title: str,
        target: surehand.Target,
        act: Callable[..., Any],
        *,
        step: str | None = None,
        **options: Any,
    ) -> Any:
        """Act on exactly the element that was observed, with a picture of it first."""
        self.film.shoot(operation_id, target.value["surface"], title, target)
        return self.present(
            step or operation_id,
            title,
            lambda: act(self.hand.element(target), operation_id=operation_id, **options),
        )

    def present(self, step: str, title: str, call: Callable[[], Any]) -> Any:
        """Make a call and tell what came of it; every outcome is an answer, and none is a reason to stop."""
        threading.Event().wait(self.pace_s)  # for people who watch; none otherwise
        started = time.perf_counter()
        result: Any = None
        try:
            result = call()
            reply = result.reply
        except surehand.SurehandError as error:
            reply = {"status": _status(error), "error": error.to_value()}
        tell(step=step, title=title, ms=round((time.perf_counter() - started) * 1000, 1), reply=reply)
        return result

    # --- the story --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Do all of it."""
        self.look_around()
        self.calculate()
        self.write_a_note()
        self.write_a_list()
        self.try_what_policy_denies()
        self.delete_a_guest()
        self.press_a_button_that_changed()
        self.run_a_batch_that_stops()
        self.live_through_a_crash()

    def look_around(self) -> None:
        """Say what there is, once everything is there."""
        signs = ((CALCULATOR, "button", "= ="), (EDITOR, "menu", "Edit"), (LISTER, "button", "New"))
        for app, role, name in (*signs, (GUESTS, "button", "Back up")):
            self.hand.app(app).get_by_role(role, name=name).one(timeout_s=START_S)
        tell(about=self.hand.about, apps=self.hand.apps())

    def calculate(self) -> None:
        """Compute 12×34 by pressing the calculator's buttons, and read the result back."""
        calculator = self.hand.app(CALCULATOR)
        shown = ""
        for number, key in enumerate("12×34=", 1):
            shown = "408" if key == "=" else shown + key
            button = calculator.get_by_role("button", name=f"{key} {key}").one()
            self.operate(
                f"calculator-{number}",
                f"Calculator: press {key}",
                button,
                surehand.Locator.press,
                verify=appears({"role": "text"}, {"value": {"text": shown}}),
            )
        display = calculator.get_by_role("text", states={"editable": True})
        tell(read="calculator", text=display.read())

    def write_a_note(self) -> None:
        """Write into the editor and save; both are read back."""
        editor = self.hand.app(EDITOR)
        note = "Dinner on Friday: 12 × 34 = 408 €.\nGrüße, the agent ✓\n"
        page = editor.get_by_role("text", states={"multiline": True})
        self.operate("note-write", "Mousepad: write a note", page.one(), surehand.Locator.set_value, value=note)
        tell(read="note", text=page.read())
        save = editor.get_by_role("menuitem", name=re.compile(r"^Save\s*$")).one()
        saved = appears({"role": "window"}, {"name": {"text": r"^[^*].*note\.txt", "match": "regex"}})
        self.operate("note-save", "Mousepad: File ▸ Save", save, surehand.Locator.press, verify=saved)

    def write_a_list(self) -> None:
        """The same with a Qt application."""
        lister = self.hand.app(LISTER)
        page = lister.get_by_role("text", states={"multiline": True}).one()
        text = "bread\nolives\nSchweizer Käse\n"
        self.operate("list-write", "FeatherPad: write a list", page, surehand.Locator.set_value, value=text)
        save = lister.get_by_role("button", name="Save").one()
        saved = {"kind": "state", "states": {"enabled": False}}  # its own sign that everything is saved
        self.operate("list-save", "FeatherPad: press Save", save, surehand.Locator.press, verify=saved)

    def try_what_policy_denies(self) -> None:
        """Two things the operator's policy forbids."""
        reset = self.guests.get_by_role("button", name="Reset all").one()
        self.operate("denied-reset", "Guests: press Reset all", reset, surehand.Locator.press)
        self.film.shoot("denied-terminal", None, "Launch a terminal")
        self.present(
            "denied-terminal",
            "Launch a terminal",
            lambda: self.hand.launch(["/usr/bin/xterm"], operation_id="denied-terminal"),
        )

    def delete_a_guest(self) -> None:
        """Something with consequences: a person has to say yes, once. The same id again changes nothing."""
        delete = self.guests.get_by_role("button", name="Delete", context="dave").one()
        title = "Guests: delete dave"
        gone = {"kind": "disappears", "query": {"filters": [{"role": "listitem"}, {"context": {"text": "dave"}}]}}
        asked = self.operate("delete", title, delete, surehand.Locator.press, step="delete-asked", verify=gone)
        if isinstance(asked, surehand.ApprovalRequired):
            self.present("delete", f"{title}, once a person agreed", lambda: asked.wait(APPROVAL_S))
        same = self.hand.element(delete)
        self.present(
            "delete-again", f"{title}: the same id again", lambda: same.press(operation_id="delete", verify=gone)
        )

    def press_a_button_that_changed(self) -> None:
        """Between looking and pressing, the list puts another guest into the very same row."""
        opened = self.guests.get_by_role("button", name="Open", context="carol").one()
        self.film.shoot("recycled", opened.value["surface"], "Guests: the agent looks at carol's Open", opened)
        wait_for_go("rows")
        self.operate("recycled", "Guests: open carol, whose row changed", opened, surehand.Locator.press)

    def run_a_batch_that_stops(self) -> None:
        """Three steps; the second is forbidden, so the third never comes to it."""
        sign = self.guests.get_by_role("text", name="Sign at the door")
        reset = self.guests.get_by_role("button", name="Reset all")
        opened = self.guests.get_by_role("button", name="Open", context="alice")
        titles = ("Batch: write the sign", "Batch: press Reset all", "Batch: open alice")
        for number, (locator, title) in enumerate(zip((sign, reset, opened), titles, strict=True)):
            target = locator.one()
            self.film.shoot(f"batch:{number}", target.value["surface"], title, target)
        started = time.perf_counter()
        done = self.hand.batch(
            [sign.step.set_value("Welcome!"), reset.step.press(), opened.step.press()], operation_id="batch"
        )
        ms = round((time.perf_counter() - started) * 1000, 1)
        for number, reply in enumerate(done):
            tell(step=f"batch-{number}", title=titles[number], ms=ms if number == 0 else None, reply=reply)
        tell(batch={"presented": len(done), "steps": done.steps, "stopped_by": done.stopped_by})

    def live_through_a_crash(self) -> None:
        """The daemon is killed while a backup is being made. What is known afterwards, and what may be done then?"""
        button = self.guests.get_by_role("button", name="Back up")
        target = button.one()
        title = "Guests: back up"
        done = appears({"role": "label"}, {"name": {"text": "Backups: 1"}})
        tell(about_to="back up")
        self.operate("backup", f"{title}; the daemon is killed", target, surehand.Locator.press, verify=done)
        wait_for_go("daemon")
        same = self.hand.element(target)
        self.present(
            "backup-again", f"{title}: the same id again", lambda: same.press(operation_id="backup", verify=done)
        )
        tell(status=self.hand.status("backup"))
        self.operate("backup-new-id", f"{title} under a new id", button.one(), surehand.Locator.press, verify=done)
        # It looks: the application says how many backups there are, and there is one. So it did happen, once.
        label = self.guests.get_by_role("label", name=re.compile("^Backups: "))
        label.filter(states={"showing": True}).expect(name="Backups: 1")
        tell(read="backups", text=label.one().name)
        self.operate(
            "backup-second",
            f"{title} once more, having looked",
            button.one(),
            surehand.Locator.press,
            reconciles="backup",
            verify=appears({"role": "label"}, {"name": {"text": "Backups: 2"}}),
        )
        tell(read="backups", text=label.one().name)
        tell(status_after=self.hand.status("backup"))


def appears(*filters: dict[str, Any]) -> dict[str, Any]:
    """Return the expectation that an element which passes these filters is there."""
    return {"kind": "appears", "query": {"filters": list(filters)}}


def _status(error: surehand.SurehandError) -> str:
    """Return what kind of outcome an exception stands for."""
    if isinstance(error, surehand.OutcomeUnknown):
        return "outcome_unknown"
    return "failed" if "receipt" in error.details else "refused"


def main() -> None:
    """Connect and do it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--desktop", required=True)
    parser.add_argument("--film", required=True, type=Path)
    parser.add_argument("--pace", type=float, default=0.0)
    options = parser.parse_args()
    # A daemon of another configuration than the operator's must not come up by itself, so start is off.
    with surehand.open(desktop=options.desktop, client="demo-agent", start=False) as hand:
        Agent(hand, Film(hand, options.film), options.pace).run()
    tell(done=True)


if __name__ == "__main__":
    main()
