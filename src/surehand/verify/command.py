"""`surehand-verify`: the auditor as a program of its own, which imports nothing of what it audits.

Exit codes: 0 the evidence is whole, 1 it is not, 2 the question was wrong (no such file, in use, not a journal).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from surehand.verify.audit import LIMITS, Verdict, audit
from surehand.verify.sources import NotReadable

EXIT_WHOLE: Final = 0
EXIT_TAMPERED: Final = 1
EXIT_USAGE: Final = 2

_HELD: Final = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(arguments)
    quiet = options.json or not sys.stderr.isatty()
    try:
        verdict = audit(options.path, held=dict(options.holds), progress=None if quiet else _show_progress)
    except NotReadable as error:
        if options.json:
            print(json.dumps({"ok": None, "reason": str(error)}, ensure_ascii=False))
        print(f"surehand-verify: {error}", file=sys.stderr)
        return EXIT_USAGE
    if not quiet:
        print("\r\x1b[K", end="", file=sys.stderr)
    print(json.dumps(verdict.to_value(), ensure_ascii=False) if options.json else _text(verdict))
    return EXIT_WHOLE if verdict.ok else EXIT_TAMPERED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surehand-verify",
        description="Verify a Surehand journal: every hash, link, version, terminal and permit, from the stored bytes.",
        epilog="Exit codes: 0 whole, 1 tampered or damaged, 2 not something to verify.",
    )
    parser.add_argument("path", type=Path, help="a closed journal (SQLite) or an export (JSON lines)")
    parser.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    parser.add_argument(
        "--holds",
        metavar="SEQ:HASH",
        type=_held,
        action="append",
        default=[],
        help="a record that you hold, from a receipt or a head noted elsewhere; may be repeated",
    )
    return parser


def _held(text: str) -> tuple[int, str]:
    match = _HELD.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError("write SEQ:HASH, a number and 64 hex digits")
    return int(match[1]), match[2]


def _show_progress(done: int, total: int | None) -> None:
    of = "" if total is None else f" of {total:,}"
    print(f"\rverifying: {done:,}{of} events", end="", file=sys.stderr, flush=True)


def _text(verdict: Verdict) -> str:
    counts = verdict.counts
    if not verdict.ok:
        place = "as a whole" if verdict.seq is None else f"event {verdict.seq}"
        place += f" of stream {verdict.stream}" if verdict.stream else ""
        return (
            f"TAMPERED: {place}: {verdict.reason}\n  {verdict.events:,} events before it are whole\n  {verdict.source}"
        )
    lines = [
        f"OK: {verdict.reason}",
        f"  {verdict.events:,} events, {counts.streams:,} streams",
        f"  {counts.claims:,} claims, {counts.terminals:,} terminals, {counts.unended:,} claims without an end",
        f"  head {verdict.events}:{verdict.head}",
        f"  {verdict.held} held records found" if verdict.held else f"  {LIMITS}",
        f"  {verdict.source}, {verdict.ms} ms",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
