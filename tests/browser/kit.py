"""A real host behind the daemon's real sockets, in a thread, with questions that a test asks; and a real console page.

The host is the daemon's own, journal and keys included; what is not there is a desktop: questions are put as the
gateway puts them. Tests with an agent that really acts are in `test_guard.py` and `test_whole_way.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from surehand import limits
from surehand.client.control import signed_answer
from surehand.model.approval import PendingApproval, Presentation
from surehand.model.record import convert
from surehand.runtime.approvals import Approvals
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.signing.keystore import KeyStore
from surehand.testing.terminal import Terminal, terminal
from tests.unit.daemon.fakes import running

SUREHAND = str(Path(sys.executable).with_name("surehand"))
PASSPHRASE = "only for these tests"  # noqa: S105 - for these tests alone


def presentation(**facts: Any) -> Presentation:
    shown = {
        "principal": "uid:1000",
        "app": "exe:/usr/bin/mail",
        "place": "main",
        "element": "button Send",
        "context": "row carol",
        "action": "desktop.invoke",
        "parameters": {},
        "risk": "reversible",
        "categories": [],
        "reason": "the operator wants to be asked",
        "action_hash": "a" * 64,
    }
    return convert(Presentation, {**shown, **facts})


class LiveHost:
    """The daemon's host in a loop of its own."""

    def __init__(self, folder: Path, config: Config | None = None) -> None:
        self.folder = folder
        self.keys = folder / "state" / "keys"
        self._config = config or Config()
        self._ids = itertools.count(1)
        self.loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.host: Any = None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._main())
        self.loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self.host = await build_host(self._config, state_dir=self.folder / "state", denied_apps="")
        try:
            async with running(self.folder, self.host):
                self._up.set()
                await self._stop.wait()
        finally:
            await self.host.close()

    def start(self) -> None:
        store = KeyStore.open(self._private())
        if not store.approvers():
            # What a passphrase costs stands in the key's file; here it need not keep anybody out.
            with pytest.MonkeyPatch.context() as cheap:
                cheap.setattr(limits, "PASSPHRASE_OPS", 1)
                cheap.setattr(limits, "PASSPHRASE_MEMORY_BYTES", 8 * 1024 * 1024)
                store.create_approver("ann", passphrase=PASSPHRASE)
            store.create_approver("bob")
        self._thread.start()
        assert self._up.wait(20)

    def _private(self) -> Path:
        (self.folder / "state").mkdir(mode=0o700, exist_ok=True)
        return self.keys

    def stop(self) -> None:
        if self._stop is not None and self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(20)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    @property
    def approvals(self) -> Approvals:
        found: Approvals = self.host.parts.approvals
        return found

    def ask(self, *, needed: int = 1, operation_id: str = "", **facts: Any) -> PendingApproval:
        """Ask a person, as the gateway does for an agent."""
        shown = presentation(**facts)
        operation_id = operation_id or f"op-{next(self._ids)}"
        question = self.do(
            self.approvals.put(shown, principal=shown.principal, operation_id=operation_id, needed=needed)
        )
        pending: PendingApproval = question.pending
        return pending

    def open(self) -> list[PendingApproval]:
        async def look() -> list[PendingApproval]:
            return self.approvals.pending()

        found: list[PendingApproval] = self.do(look())
        return found

    def told(self, pending: PendingApproval) -> dict[str, Any]:
        """Return what the agent that asked is told."""

        async def look() -> Any:
            return self.approvals.status(pending.principal, pending.approval_id, None)

        found: dict[str, Any] = self.do(look())
        return found

    def stands(self, pending: PendingApproval) -> str:
        """Say how a question stands."""
        return str(self.told(pending)["status"])

    def answer(self, pending: PendingApproval, answer: Literal["approve", "deny"], reason: str = "") -> None:
        """Answer from elsewhere, as ann."""
        key = KeyStore.open(self.keys).approver("ann", passphrase=PASSPHRASE)
        self.do(self.approvals.answer(signed_answer(pending, answer, approver="ann", key=key, reason=reason)))

    def forget_all(self) -> None:
        """End every question, so that the next test begins with none."""

        async def end() -> None:
            for question in list(self.approvals._questions.values()):
                self.approvals._close(question, "withdrawn")

        self.do(end())


class Console:
    """The console page as a process of its own, at a terminal, which shows its links."""

    def __init__(self, seen: Terminal) -> None:
        self.terminal = seen
        self.port = 0

    def link(self) -> str:
        """Return the next link that the terminal shows."""
        where = self.terminal.expect("/enter?token=").split()[-1]
        self.port = int(where.rpartition(":")[2])
        return f"{where}/enter?token={self.terminal.expect(chr(10)).strip()}"

    def another_link(self) -> str:
        """Ask for a new link, as a person does."""
        self.terminal.type("\n")
        return self.link()


@contextlib.contextmanager
def console_of(folder: Path, keys: Path | str, *words: str) -> Iterator[Console]:
    environment = {**os.environ, "SUREHAND_RUNTIME_DIR": str(folder / "run")}
    with terminal([SUREHAND, "console", "--no-open", "--keys", str(keys), *words], env=environment) as seen:
        yield Console(seen)
        seen.process.send_signal(signal.SIGTERM)
        seen.process.wait(20)
