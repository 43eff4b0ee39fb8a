"""The policy in force: asked for every decision, read again when its files change (spec §6.1).

Guarantees:
- A reload that fails keeps the policy in force, and says so in the log, the journal, `surehand policy show` and doctor.
- Every reload that changes anything raises the generation, which answers about reads are kept under.
- Where the configuration names no policy, one that appears beside it holds from then on.
- An engine that fails, is late or answers nonsense denies, with the kind of failure as the rule.
- A policy that is only tried changes no decision.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.policy.engine import EngineFailure, decide_from, failed, questions
from surehand.core.policy.evaluate import decide
from surehand.errors import SurehandError
from surehand.model.decision import Decision, PolicyInput
from surehand.model.events import NewEvent
from surehand.ports import Clock, Journal
from surehand.runtime.config import PolicyChoice
from surehand.runtime.policy_source import OpenEngine, Ruling, open_ruling, signature_of
from surehand.runtime.shadow import Shadow

_log: Final = logging.getLogger("surehand.policy")


class Policies:
    """Decides by one ruling at a time."""

    def __init__(
        self,
        ruling: Ruling,
        open_engine: OpenEngine,
        clock: Clock,
        journal: Journal | None,
        *,
        tried: Ruling | None = None,
    ) -> None:
        self.ruling = ruling
        self.generation = 1
        #: Why the last reload failed; None where it did not.
        self.failure: str | None = None
        #: Where a policy is looked for as long as none is named; set by `compose`.
        self.beside: Path | None = None
        self._open_engine = open_engine
        self._clock = clock
        self._journal = journal
        self._looked_ms = clock.monotonic_ms()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._told: dict[str, int] = {}
        self.shadow = None if tried is None else Shadow(tried, self.ask, clock, self.note)

    @property
    def read_generation(self) -> str:
        """Under what an answer about reads is kept: a server's may change without our knowing."""
        if self.ruling.choice.engine != "opa":
            return str(self.generation)
        return f"{self.generation}.{self._clock.monotonic_ms() // limits.POLICY_LIVE_READ_MS}"

    async def decide(self, document: PolicyInput, decision_id: str) -> Decision:
        """Return the decision of the policy in force."""
        self.look()
        decision = await self.ask(self.ruling, document, decision_id)
        if self.shadow is not None:
            self.shadow.offer(document, decision)
        return decision

    async def ask(self, ruling: Ruling, document: PolicyInput, decision_id: str) -> Decision:
        """Ask a ruling; never raises but for cancellation."""
        if ruling.asked is None:
            return decide(ruling.policy, document, decision_id)
        try:
            answers = await self._answers(ruling, document)
        except EngineFailure as failure:
            self._tell(ruling, failure)
            return failed(failure, ruling.revision, decision_id)
        decision = decide_from(ruling.policy, document, answers, decision_id)
        if decision.rule.startswith("engine."):
            self._tell(ruling, EngineFailure("malformed", f"{decision.rule}: {decision.reason}"))
        return decision

    async def _answers(self, ruling: Ruling, document: PolicyInput) -> list[Any]:
        if ruling.asked is None:
            raise EngineFailure("error", "no engine")
        started_ms = self._clock.monotonic_ms()
        try:
            async with asyncio.timeout(ruling.choice.timeout_ms / 1000):
                answers = await ruling.asked.ask(questions(document))
        except TimeoutError as error:
            raise EngineFailure("timeout") from error
        except EngineFailure:
            raise
        except Exception as error:
            raise EngineFailure("error", type(error).__name__) from error
        if self._clock.monotonic_ms() - started_ms > ruling.choice.timeout_ms:
            # An engine in this process cannot be stopped; what it says too late does not count.
            raise EngineFailure("timeout", "it answered too late")
        return answers

    def _tell(self, ruling: Ruling, failure: EngineFailure) -> None:
        """Tell the operator's log, of each kind of failure at most once in `limits.POLICY_LIVE_READ_MS`."""
        now, key = self._clock.monotonic_ms(), f"{ruling.choice.engine} {failure.kind}"
        if now - self._told.get(key, -limits.POLICY_LIVE_READ_MS) >= limits.POLICY_LIVE_READ_MS:
            self._told[key] = now
            _log.warning("policy engine %s, so it is denied: %s", ruling.choice.engine, failure)

    # --- reloading --------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the policy again where its files changed; looks at most once in `limits.POLICY_LOOK_MS`."""
        now = self._clock.monotonic_ms()
        if now - self._looked_ms < limits.POLICY_LOOK_MS:
            return
        self._looked_ms = now
        if _changed(self.ruling) or self._chosen(self.ruling.choice) != self.ruling.choice:
            self.reload()
        if self.shadow is not None and _changed(self.shadow.ruling):
            self._reload_shadow(self.shadow)

    def reload(self) -> bool:
        """Read the policy again; return whether that went well. The one in force stays where it did not."""
        before = self.ruling
        self.ruling, self.failure = self._read_again(before, self._chosen(before.choice))
        if self.failure is not None:
            _log.error("the policy was not reloaded, the one in force stays: %s", self.failure)
            self.note("policy.reload_failed.v1", {"revision": before.revision, "reason": self.failure})
            return False
        ruling = self.ruling
        if ruling.revision != before.revision:
            self.generation += 1
            _log.info("policy reloaded, generation %d", self.generation)
            self.note(
                "policy.loaded.v1",
                {"revision": ruling.revision, "closed": ruling.policy.closed or "", "generation": self.generation},
            )
        return True

    def _chosen(self, choice: PolicyChoice) -> PolicyChoice:
        """Return which policy is meant: the file beside the configuration once it is there, where none is named."""
        if choice.file is None and self.beside is not None and os.path.lexists(self.beside):
            return PolicyChoice(file=str(self.beside))
        return choice

    def _reload_shadow(self, shadow: Shadow) -> None:
        shadow.ruling, failure = self._read_again(shadow.ruling, shadow.ruling.choice)
        if failure is not None:
            _log.error("the policy that is tried was not reloaded: %s", failure)

    def _read_again(self, before: Ruling, choice: PolicyChoice) -> tuple[Ruling, str | None]:
        """Return the policy as it is now, or the one before and why."""
        signature = signature_of(choice)
        try:
            ruling = open_ruling(choice, self._open_engine)
        except (SurehandError, OSError) as error:
            # The same broken file is not read again until it changes.
            why = error.message if isinstance(error, SurehandError) else str(error)
            return msgspec.structs.replace(before, choice=choice, signature=signature), why
        if before.asked is None or ruling.asked is None or ruling.revision != before.revision:
            self._let_go(before)
            return ruling, None
        # The same again: what is under way there must not be cut off.
        self._let_go(ruling)
        return msgspec.structs.replace(before, signature=signature), None

    def _let_go(self, ruling: Ruling) -> None:
        if ruling.asked is not None:
            self._run(ruling.asked.close())

    def note(self, kind: str, payload: dict[str, Any]) -> None:
        """Record something about the policy without anybody waiting for the disk."""
        if self._journal is not None:
            event = NewEvent(stream="daemon", type=kind, actor="daemon", payload=payload)
            self._run(self._append(self._journal, event))

    @staticmethod
    async def _append(journal: Journal, event: NewEvent) -> None:
        try:
            await journal.append([event])
        except SurehandError as error:
            _log.warning("%s was not recorded: %s", event.type, error.code)

    def _run(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- for people -------------------------------------------------------------------------------------------------

    async def describe(self) -> dict[str, Any]:
        """Return what is in force, whether its engine answers, why the last reload failed, and what was tried."""
        self.look()
        ruling = self.ruling
        value: dict[str, Any] = {
            "engine": ruling.choice.engine,
            "revision": ruling.revision,
            "generation": self.generation,
            "closed": ruling.policy.closed,
            "rules": len(ruling.policy.rules),
            "file": ruling.choice.file,
            "reload_failed": self.failure,
        }
        if ruling.asked is not None:
            try:
                value["answers"] = await ruling.asked.check()
            except EngineFailure as failure:
                value["fails"] = str(failure)
        if self.shadow is not None:
            value["shadow"] = self.shadow.report()
        return value

    async def close(self) -> None:
        """Write what waits and let go of the engines."""
        if self.shadow is not None:
            await self.shadow.close()
        if self.ruling.asked is not None:
            await self.ruling.asked.close()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _changed(ruling: Ruling) -> bool:
    return bool(ruling.signature) and signature_of(ruling.choice) != ruling.signature
