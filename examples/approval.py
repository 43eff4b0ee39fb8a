"""An agent asks for something that has consequences; a person sees exactly what, and says yes or no.

    python examples/approval.py

It starts a daemon and an isolated desktop of its own. The "person" types at a terminal, where `surehand approvals` asks
for the passphrase of their key.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import surehand
from surehand.testing.terminal import with_passphrase

SUREHAND = str(Path(sys.executable).with_name("surehand"))
PASSPHRASE = "only for this example"  # noqa: S105 - for the example alone
ASKED = ["mousepad", "--disable-server"]


def main() -> None:
    """Ask twice: once the answer is no, once it is yes."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = f"{folder}/run"
        at_a_terminal("keys", "create", "ann", "--passphrase")
        name = f"approval-{secrets.token_hex(3)}"
        surehand_command("desktop", "start", "--name", name)
        try:
            with surehand.open(desktop=name) as hand:
                check(not hand.apps(), "nothing runs yet")
                ask_and_be_refused(hand)
                check(not hand.apps(), "nothing was started")
                ask_and_be_allowed(hand)
                check(hand.app("mousepad").get_by_role("text").wait_for("present", timeout_s=20), "it runs")
            surehand_command("desktop", "stop", name)
        finally:
            surehand_command("stop")


def ask_and_be_refused(hand: surehand.Hand) -> None:
    """Ask to start a program; the person says no."""
    pending = hand.launch(ASKED)
    check(isinstance(pending, surehand.ApprovalRequired), "starting a program needs a person")
    check(not pending, "what waits for a person is not true")
    person = threading.Thread(target=answer, args=("deny", pending.approval_id))
    person.start()
    try:
        pending.wait(60)
    except surehand.ApprovalDenied as error:
        print("the agent is told:", error)
    else:
        check(False, "a no is an error")
    person.join()


def ask_and_be_allowed(hand: surehand.Hand) -> None:
    """Ask again, under a new id; the person says yes, and the waiting agent goes on."""
    pending = hand.launch(ASKED)
    person = threading.Thread(target=answer, args=("approve", pending.approval_id))
    person.start()
    receipt = pending.wait(60)
    person.join()
    print(receipt)
    check(isinstance(receipt, surehand.Receipt), "after a yes it happens")
    again = hand.launch(ASKED, operation_id=receipt.operation_id)
    check(isinstance(again, surehand.Receipt) and again.replayed, "and only once")


def answer(word: str, approval_id: str) -> None:
    """Be the person: look at what is asked, then answer."""
    shown = surehand_command("approvals", "show", approval_id)["presentation"]
    print("the person sees:", shown["action"], shown["parameters"], shown["reason"], sep="\n  ")
    at_a_terminal("approvals", word, approval_id, "--as", "ann", *(["--yes"] if word == "approve" else []))


def at_a_terminal(*words: str) -> Any:
    """Run a command where it asks for the passphrase, and type it."""
    said = with_passphrase([SUREHAND, *words, "--json"], PASSPHRASE)[1]
    return data_of(words, said)


def surehand_command(*words: str) -> Any:
    """Run a command of this very installation and return its data."""
    done = subprocess.run([SUREHAND, *words, "--json"], capture_output=True, text=True, check=False)
    return data_of(words, done.stdout)


def data_of(words: tuple[str, ...], stdout: str) -> Any:
    """Return what a command said."""
    said = json.loads(stdout)
    if not said["ok"]:
        raise SystemExit(f"FAILED: {' '.join(words)}: {said['error']}")
    return said["data"]


def check(holds: bool, what: str) -> None:
    """End with an error where something does not hold."""
    if not holds:
        raise SystemExit(f"FAILED: {what}")
    print(f"ok: {what}")


if __name__ == "__main__":
    main()
