"""The command line in this process, against a fake host behind real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from surehand.cli import main
from tests.unit.client.conftest import desk

__all__ = ["cli", "desk"]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        """The one JSON object on standard output; fails if there is anything else."""
        assert self.out.count("\n") == 1, self.out
        value = json.loads(self.out)
        assert set(value) in ({"ok", "data"}, {"ok", "error"})
        # One outcome, one channel: the envelope and the exit code agree.
        assert value["ok"] is (self.code == 0)
        return value

    @property
    def data(self) -> Any:
        assert self.code == 0, self.envelope
        return self.envelope["data"]

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.envelope["error"]
        assert {"code", "message", "retry_safe"} <= set(found)
        return found


Cli = Callable[..., Said]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*words: str) -> Said:
        code = main(list(words))
        found = capsys.readouterr()
        return Said(code, found.out, found.err)

    return run
