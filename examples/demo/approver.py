"""The demo's operator: a process of its own that answers what agents ask, with a key that the agent does not have.

    python approver.py enroll --keys DIR               makes the key, before the daemon starts
    python approver.py answer --keys DIR --context dave   waits for one question and answers it

It reads what it is shown, says yes to exactly the one thing that was agreed on, and no to anything else. A person would
use `surehand approvals`; what is signed is the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path

from surehand.client.control import Control
from surehand.errors import Unavailable
from surehand.model.approval import PendingApproval
from surehand.model.record import to_value
from surehand.signing.keystore import KeyStore

NAME = "demo-operator"
# A person would be asked for it; what has consequences takes a key behind one.
PASSPHRASE = "only for the demo"  # noqa: S105 - for the example alone
LOOK_EVERY_S = 0.05


def first_question(control: Control, wait_s: float) -> PendingApproval:
    """Return the first question that is open, waiting for one.

    Raises:
        Unavailable: nobody asked anything in time.
    """
    end, again = time.monotonic() + wait_s, threading.Event()
    while time.monotonic() < end:
        if pending := control.pending():
            return pending[0]
        again.wait(LOOK_EVERY_S)
    raise Unavailable(f"nobody asked anything within {wait_s:g} s")


def answer(keys: Path, context: str, wait_s: float) -> int:
    """Answer one question and say what was asked and answered; returns the exit code."""
    key = KeyStore.open(keys).approver(NAME, passphrase=PASSPHRASE)
    with Control(client=NAME) as control:
        pending = first_question(control, wait_s)
        shown = pending.presentation
        agreed = (shown.action, shown.element, shown.context) == ("desktop.invoke", "button Delete", context)
        found = control.answer(
            pending,
            "approve" if agreed else "deny",
            approver=NAME,
            key=key,
            reason=f"{context} cancelled" if agreed else "not agreed",
        )
    print(json.dumps({"asked": to_value(shown), "answer": found, "agreed": agreed}, ensure_ascii=False), flush=True)
    return 0 if agreed else 1


def main() -> int:
    """Enroll, or answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("enroll", "answer"))
    parser.add_argument("--keys", required=True, type=Path)
    parser.add_argument("--context", default="")
    parser.add_argument("--wait", type=float, default=60)
    options = parser.parse_args()
    if options.what == "enroll":
        KeyStore.open(options.keys).create_approver(NAME, passphrase=PASSPHRASE)
        return 0
    return answer(options.keys, options.context, options.wait)


if __name__ == "__main__":
    sys.exit(main())
