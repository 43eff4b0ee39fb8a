"""Writes a note into a real editor, checks it, and shows that the same operation id acts once.

surehand desktop start --name play && surehand desktop launch play -- mousepad
python examples/notes.py --desktop play
surehand desktop stop play
"""

from __future__ import annotations

import argparse
import secrets

import surehand

NOTE = "Milk\nBread\nünïcode-€"


def main() -> None:
    """Write, read back, replay, and be refused for the right reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--desktop", default=None, help="which desktop; default: the one that runs")
    desktop = parser.parse_args().desktop
    with surehand.open(desktop=desktop, client="notes-example") as hand:
        text = hand.app("mousepad").get_by_role("text")

        written = text.set_value(NOTE, operation_id=f"note-{secrets.token_hex(8)}", observe_after=True)
        print(written)
        print(written.diff)
        check(written.verified, "the note was read back")
        check(text.value == NOTE, "the editor holds exactly the note")

        again = text.set_value(NOTE, operation_id=written.operation_id)
        check(again.replayed, "the same id gives the stored receipt and acts no second time")
        check(again.receipt == written.receipt, "and that receipt is the same")

        try:
            text.set_value("something else", operation_id=written.operation_id)
        except surehand.SurehandError as error:
            check(error.code == "conflict", "the same id with another text is a conflict")
        else:
            check(False, "the same id with another text is a conflict")

        try:
            hand.app("mousepad").get_by_role("button", name="No such button").press(timeout_s=0.5)
        except surehand.TargetNotFound as error:
            check(bool(error.observed["candidates"]), "what is not there is answered with what is")


def check(holds: bool, what: str) -> None:
    """End with an error where something does not hold."""
    if not holds:
        raise SystemExit(f"FAILED: {what}")
    print(f"ok: {what}")


if __name__ == "__main__":
    main()
