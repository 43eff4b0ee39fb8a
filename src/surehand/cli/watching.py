"""`surehand approvals watch`: a person answers from a terminal, one question after the other.

Guarantees:
- What is shown is what is signed, whole, and made visible first; a key that was pressed before it was shown answers
  nothing.
- Nothing is drawn over: lines follow each other, so that it works over a slow line and for a screen reader.
- Without a terminal it shows and answers nothing. Ctrl-C leaves, and gives the terminal back as it was.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import Final

import typer

from surehand.cli.approving import AsOption, answered, shown
from surehand.cli.keys import KeysOption, approver_key
from surehand.cli.output import out
from surehand.client.control import Control, leave_of
from surehand.errors import InvalidRequest, SurehandError, Unavailable
from surehand.model.approval import PendingApproval

_LOOK_EVERY_S: Final = 0.5
_TRY_EVERY_S: Final = 1.0
_USES: Final = 20
_MINUTES: Final = 30
_KEYS: Final = "a approve   w approve for a while   d deny   s skip   q quit"
_END_OF_INPUT: Final = "\x04"


def watch(approver: AsOption = None, keys: KeysOption = None) -> None:
    """Wait for questions and answer them with a key: a approve, w approve for a while, d deny with a reason, s skip.

    Example:
      surehand approvals watch --as ann

    Your key signs each answer; its passphrase is asked for each time. Without a terminal it shows and answers nothing.
    """
    if out().as_json:
        raise InvalidRequest("this is for people", fix="`surehand approvals list --json` is for programs")
    with contextlib.suppress(KeyboardInterrupt):
        _Watch(approver, keys).run()


class _Watch:
    """One person at one terminal."""

    def __init__(self, approver: str | None, keys: str | None) -> None:
        self._approver = approver
        self._keys = keys
        self._answers = sys.stdin.isatty() and sys.stdout.isatty()
        #: Questions that were skipped, or shown where nobody can answer.
        self._seen: set[str] = set()
        self._lines: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    def run(self) -> None:
        """Watch until the person leaves; a daemon that goes away is waited for."""
        with _keys_at_once(wanted=self._answers) as self._lines:
            self._run()

    def _run(self) -> None:
        told = ""
        while True:
            try:
                with Control() as control:
                    out().note("watching; nothing is waiting" if not control.pending() else "watching")
                    told = ""
                    if self._watch(control):
                        return
            except Unavailable as error:
                if told != error.message:
                    out().note(f"{error.message}; waiting for the daemon")
                    told = error.message
                time.sleep(_TRY_EVERY_S)

    def _watch(self, control: Control) -> bool:
        """Show and take answers; return true when the person leaves."""
        while True:
            pending = next((one for one in control.pending() if one.approval_id not in self._seen), None)
            if pending is None:
                if self._wait(_LOOK_EVERY_S) in {"q", _END_OF_INPUT}:
                    return True
            elif self._ask(control, pending):
                return True

    def _ask(self, control: Control, pending: PendingApproval) -> bool:
        """Show one question and wait for its answer; return true when the person leaves."""
        bell = "\a" if sys.stdout.isatty() else ""
        sys.stdout.write(f"{bell}\n")
        out().data(None, shown(pending))
        if not self._answers:
            self._seen.add(pending.approval_id)
            sys.stdout.flush()
            return False
        sys.stdout.flush()
        # Whatever was typed until now was about something else.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        out().data(None, [("bold", _KEYS)])
        sys.stdout.flush()
        while True:
            key = self._wait(_LOOK_EVERY_S)
            if key in {"q", _END_OF_INPUT}:
                return True
            if key in {"a", "w", "d", "s"}:
                return self._take(control, pending, key)
            if key is None and all(one.approval_id != pending.approval_id for one in control.pending()):
                out().data(None, [("dim", f"{pending.approval_id} is no longer open")])
                return False

    def _take(self, control: Control, pending: PendingApproval, key: str) -> bool:
        try:
            if key == "s":
                self._seen.add(pending.approval_id)
                out().data(None, [("dim", f"{pending.approval_id}: skipped; it stays open")])
            else:
                with self._lines():
                    said = self._answer(control, pending, key)
                # Once it is shown, keys count again.
                out().data(None, [("bad" if key == "d" else "good", said)])
        except Unavailable:
            raise
        except (SurehandError, typer.Abort) as error:
            # It stays open, and is shown again with its keys.
            out().note(f"not answered: {error}")
        return False

    def _answer(self, control: Control, pending: PendingApproval, key: str) -> str:
        leave, reason = None, ""
        if key == "w":
            leave_of(pending, "nobody", _USES, _MINUTES)  # says at once where none can be given
            leave = (_number("how many uses", _USES), _number("for how many minutes", _MINUTES))
        elif key == "d":
            reason = input("why? the agent is told your words: ")
        name, signer = approver_key(self._keys, self._approver)
        _, said = answered(
            control, pending, "deny" if key == "d" else "approve", name=name, key=signer, reason=reason, leave=leave
        )
        return said

    def _wait(self, seconds: float) -> str | None:
        """Return a key that is pressed within so many seconds; without a terminal only the time passes."""
        if not self._answers:
            time.sleep(seconds)
            return None
        if select.select([sys.stdin], [], [], seconds)[0]:
            # Byte by byte, so that nothing waits in a buffer of ours for the next question. An empty read is a
            # terminal that went away.
            return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace").lower() or _END_OF_INPUT
        return None


@contextlib.contextmanager
def _keys_at_once(*, wanted: bool) -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """Let keys come without Enter and unseen; Ctrl-C still interrupts. Yields how to ask for a line meanwhile."""
    if not wanted:
        yield contextlib.nullcontext
        return
    before = termios.tcgetattr(sys.stdin)

    @contextlib.contextmanager
    def lines() -> Iterator[None]:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)
        try:
            yield
        finally:
            tty.setcbreak(sys.stdin, termios.TCSAFLUSH)

    try:
        tty.setcbreak(sys.stdin, termios.TCSAFLUSH)
        yield lines
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def _number(what: str, usual: int) -> int:
    text = input(f"{what} [{usual}]: ").strip()
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise InvalidRequest(f"{what}: a whole number is needed")
    return int(text)
