"""The `surehand` command. Nothing is imported until it runs; each group of commands is a module of its own."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (spec §12)."""
    from surehand.cli.app import run  # noqa: PLC0415 - completion and `--help` of other tools must not pay for it

    return run(arguments)
