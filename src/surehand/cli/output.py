"""How the command line speaks: one JSON envelope or plain text on standard output, everything else on standard error.

Guarantees:
- With `--json` standard output holds exactly one envelope, `{"ok":true,"data":…}` or `{"ok":false,"error":{…}}`, and
  `ok` is true exactly when the exit code is 0. One command is an exception: `desktop run` ends with the exit status of
  its program, and its `ok` says that the desktop ran.
- Nothing that came from a screen can steer a terminal: control and formatting characters are written out.
- Colours and progress appear on terminals only, and never with NO_COLOR or in JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

from surehand.client.display import is_unseen, visible
from surehand.errors import InvalidRequest, OutcomeUnknown, SurehandError

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNAVAILABLE: Final = 3
EXIT_UNKNOWN: Final = 4
EXIT_INTERRUPTED: Final = 5
EXIT_APPROVAL: Final = 6
EXIT_SIGINT: Final = 130

_PROGRESS_AFTER_S: Final = 1.0
_COLOURS: Final = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1"}
#: What JSON leaves as it is and a terminal may not get; Delete is the one of ASCII.
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7e]")


#: A line of text, or a colour and a line.
Line = str | tuple[str, str]


class Finished(Exception):
    """Ends the command with this exit code; everything has been said."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Output:
    """Where one run of the command line writes."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    # --- results ----------------------------------------------------------------------------------------------------

    def data(self, value: Any, text: str | Sequence[Line] = ()) -> None:
        """Give the result: `value` as the envelope's data, or `text` for people, made safe for a terminal."""
        if self.as_json:
            self._json({"ok": True, "data": value})
            return
        for line in [text] if isinstance(text, str) else text:
            colour, words = line if isinstance(line, tuple) else ("", line)
            shown = visible(words)
            sys.stdout.write(f"{self.coloured(shown, colour) if colour else shown}\n")

    def failed(self, error: SurehandError, *, exit_code: int | None = None) -> int:
        """Say what went wrong, and return the exit code."""
        code = exit_code_of(error) if exit_code is None else exit_code
        if self.as_json:
            self._json({"ok": False, "error": error.to_value()})
            return code
        head, _, rest = visible(str(error)).partition("\n")
        self.note(f"{self.coloured(head, 'bad', sys.stderr)}" + (f"\n{rest}" if rest else ""))
        return code

    @staticmethod
    def _json(value: dict[str, Any]) -> None:
        sys.stdout.write(_escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + "\n")

    # --- beside the result ------------------------------------------------------------------------------------------

    @staticmethod
    def note(text: str) -> None:
        """Tell something beside the result."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    @staticmethod
    def coloured(text: str, colour: str, stream: Any = None) -> str:
        """Return text in a colour where the stream is a terminal that may show colours."""
        stream = sys.stdout if stream is None else stream
        if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that something is under way, once it takes longer than a second."""
        if self.as_json or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield
            return
        shown = _Spinner(what)
        try:
            yield
        finally:
            shown.stop()


class _Spinner:
    """A spinner on standard error that starts by itself after a second."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._status: Any = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = threading.Timer(_PROGRESS_AFTER_S, self._start)
        self._timer.daemon = True
        self._timer.start()

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only who waits pays for it

        with self._lock:
            if self._timer is not None:
                self._status = Console(stderr=True).status(visible(self._what), spinner="dots")
                self._status.start()

    def stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if self._status is not None:
                self._status.stop()


def exit_code_of(error: SurehandError) -> int:
    """Return the exit code of spec §12. A malformed request is a usage error whoever noticed it."""
    if isinstance(error, OutcomeUnknown) or error.code == OutcomeUnknown.default_code:
        return EXIT_UNKNOWN
    return EXIT_USAGE if isinstance(error, InvalidRequest) else error.exit_code


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return rows as aligned columns; every cell is made visible and stands on one line."""
    cells = [[_cell(value) for value in row] for row in (head, *rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(head))]
    return ["  ".join(_padded(*pair) for pair in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value) or "-"
    return visible(str(value)).replace("\n", "⏎") or "-"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _escaped(text: str) -> str:
    """Write characters that could steer a terminal as JSON escapes; the value stays the same."""
    return _NOT_ASCII.sub(_escape_if_unsafe, text)


def _escape_if_unsafe(match: re.Match[str]) -> str:
    character = match[0]
    if not is_unseen(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


#: The output of this run; `app.run` makes a new one.
class _Current:
    out = Output()


def out() -> Output:
    """Return the output of this run."""
    return _Current.out


def start_run(*, as_json: bool) -> Output:
    """Begin a run's output."""
    _Current.out = Output(as_json=as_json)
    return _Current.out
