"""A program at a terminal of its own, with somebody who reads what it shows and types.

For what asks a person: a passphrase is read from the controlling terminal, so a pipe does not do.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence

_READ_BYTES = 65_536


class Terminal:
    """A running program and its terminal. `shown` is everything that it wrote there so far."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, piped: bool = False) -> None:
        """Start it; with `piped` its standard output is a pipe, read by `result`."""
        self._terminal, inner = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(  # noqa: S603 - the test's own program
            argv,
            stdin=inner,
            stdout=subprocess.PIPE if piped else inner,
            stderr=inner,
            env={"TERM": "xterm", **(os.environ if env is None else env)},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call into the kernel
        )
        os.close(inner)

    def expect(self, text: str, seconds: float = 20) -> str:
        """Wait until it has shown a text that was not expected before; return what it showed up to that.

        Raises:
            AssertionError: it did not.
        """
        end = time.monotonic() + seconds
        while text not in self.shown:
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"never shown: {text!r} in {self.shown!r}")
        before, _, self.shown = self.shown.partition(text)
        return before

    def _read(self, seconds: float) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._terminal, _READ_BYTES)
        except OSError:  # every end of the terminal is closed
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)

    def type(self, keys: str) -> None:
        """Type; a line ends with a line feed."""
        os.write(self._terminal, keys.encode())

    def result(self, seconds: float = 20) -> tuple[int, str]:
        """Wait for its end; return the exit code and what it wrote to a piped standard output."""
        end = time.monotonic() + seconds
        while self.process.stdout is None and time.monotonic() < end and self._read(end - time.monotonic()):
            pass
        out, _ = self.process.communicate(timeout=max(0.1, end - time.monotonic()))
        return self.process.returncode, (out or b"").decode("utf-8", "replace")

    def close(self) -> None:
        """End it, whatever it does, and let go of the terminal."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._terminal)


@contextlib.contextmanager
def terminal(argv: Sequence[str], *, env: Mapping[str, str] | None = None, piped: bool = False) -> Iterator[Terminal]:
    """Run a program at a terminal for as long as the context lasts."""
    found = Terminal(argv, env=env, piped=piped)
    try:
        yield found
    finally:
        found.close()


def with_passphrase(argv: Sequence[str], passphrase: str, *, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a program that asks for a passphrase, once or twice, and type it; return exit code and standard output."""
    with terminal(argv, env=env, piped=True) as running:
        running.expect("assphrase")
        running.expect(": ")
        running.type(f"{passphrase}\n")
        if "create" in argv:
            running.expect("Again: ")
            running.type(f"{passphrase}\n")
        return running.result()
