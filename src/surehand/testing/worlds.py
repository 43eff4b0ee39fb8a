"""A whole host around an application in memory, with a clock that a test moves: the path without a desktop.

The journal is the memory one unless another is given; keys are fixed, so hashes can be compared between worlds.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, Final, Literal

from surehand.canonical import encode_record
from surehand.core.approval import Approver, answer_message
from surehand.core.approvers import Approvers
from surehand.core.authority import Keyring
from surehand.core.hashing import text_digest
from surehand.core.policy.toml_rules import parse_policy
from surehand.core.scene.fence import reference
from surehand.model.actions import Action, Invoke
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.outcome import Reply
from surehand.model.record import decode
from surehand.model.request import Request
from surehand.model.scene import Node, Scene
from surehand.model.targets import ElementTarget
from surehand.ports import Clock, Journal
from surehand.runtime.approvals import Approvals
from surehand.runtime.authority import Authority
from surehand.runtime.budgets import Budgets
from surehand.runtime.clock import SystemClock
from surehand.runtime.config import Config
from surehand.runtime.facts import FactFinder
from surehand.runtime.gateway import Gateway, Keys
from surehand.runtime.kept import Kept, KeptQuestion
from surehand.runtime.operations import Operations
from surehand.runtime.policy_source import load_vocabulary
from surehand.runtime.recovery import recover
from surehand.runtime.resolve import Resolver
from surehand.runtime.scenes import Scenes
from surehand.runtime.session import Session
from surehand.runtime.watch import Watcher
from surehand.signing import ed25519, es256
from surehand.signing.ed25519 import SigningKey
from surehand.testing.journals import MemoryJournal
from surehand.testing.memory import MemoryApp, button, field

_KEY: Final = b"a key for tests, nothing else...".ljust(32, b".")
APPROVER_KEY: Final = SigningKey(b"a seed for tests, nothing else..")
SECOND_KEY: Final = SigningKey(b"a second seed for tests, no more")
#: Behind no passphrase.
PLAIN_KEY: Final = SigningKey(b"a third seed for tests, no more!")


class MemoryKept:
    """Keeps questions as their bytes, in memory: what a restart of the host in a test finds again."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def put(self, pending: PendingApproval, answers: Sequence[ApprovalAnswer]) -> None:
        """Keep a question; see `runtime.kept.Kept.put`."""
        await asyncio.sleep(0)  # a disk never answers in the same turn of the loop
        self.files[pending.approval_id] = encode_record(KeptQuestion(pending=pending, answers=tuple(answers)))

    def forget(self, approval_id: str) -> None:
        """Let go of a question."""
        self.files.pop(approval_id, None)

    async def all(self) -> list[KeptQuestion]:
        """Return what is kept."""
        return [decode(KeptQuestion, data) for data in self.files.values()]


class World:
    """One application in memory, one session on it, and everything in between.

    Args:
        nodes: The application's elements; two buttons and a field by default.
        policy: Operator rules as TOML text.
        journal: Another store.
        clock: Another clock.
        config: The operator's configuration.
        keyring: Pinned host keys.
        isolation: Of the desktop.
        kept: Where open questions are kept; memory by default.
    """

    def __init__(
        self,
        nodes: Sequence[Node] = (),
        *,
        policy: str = "",
        journal: Journal | None = None,
        clock: Clock | None = None,
        config: Config | None = None,
        keyring: Keyring | None = None,
        isolation: Literal["isolated", "shared"] = "isolated",
        kept: Kept | None = None,
    ) -> None:
        self.policy = policy
        self.clock = clock or SystemClock()
        self.config = config or Config()
        self.journal = journal or MemoryJournal(clock=self.clock)
        self.app = MemoryApp(nodes or (button("save", "Save"), button("open", "Open"), field("name", "Name", "old")))
        digest = text_digest(_KEY)
        self.facts = facts = FactFinder(load_vocabulary(), digest, frozenset())
        self.authority = Authority(
            self.config, parse_policy(policy), keyring or Keyring(()), ed25519.verify, self.clock
        )
        self.authority.read_document, self.authority.claims_noted = facts.reading, facts.noted
        self.authority.budgets = Budgets(self.clock, self.journal)
        self.operations = Operations(self.journal, self.clock)
        self.scenes = Scenes(self.clock, self.authority.check_read)
        self.kept = kept or MemoryKept()
        #: Approvers whose key was taken away.
        self.revoked: set[str] = set()
        self.approvals = Approvals(self.journal, self.clock, self._approvers(), ed25519.verify, kept=self.kept)
        self.gateway = Gateway(
            clock=self.clock,
            keys=Keys(permit=_KEY, salt=_KEY, digest=_KEY),
            operations=self.operations,
            authority=self.authority,
            facts=facts,
            approvals=self.approvals,
            resolver=Resolver(self.scenes, self.clock),
            watcher=Watcher(self.scenes, self.clock, digest),
        )
        self.desk = self.app.desk()
        self.desk.isolation = isolation
        self._ids = itertools.count(1)
        self.session = self.new_session()

    def _approvers(self) -> Approvers:
        keys = (("operator", APPROVER_KEY), ("second", SECOND_KEY), ("plain", PLAIN_KEY))
        return Approvers(
            [
                Approver(approver=name, key_id=key.key_id, public_key=key.public_key, passphrase=key is not PLAIN_KEY)
                for name, key in keys
            ],
            trust_level=self.config.trust_level,
            revoked=lambda one: one.approver in self.revoked,
            es256=es256.verify,
        )

    def new_session(self, principal: str = "uid:1000") -> Session:
        """Return another session on the same desk."""
        return Session(
            session_id=f"{next(self._ids):032x}",
            principal=principal,
            role="agent",
            trust_level=self.config.trust_level,
            authority_mode=self.config.authority,
            desk=self.desk,
        )

    async def observe(self, session: Session | None = None) -> Scene:
        """Return a scene of the application."""
        return await self.scenes.observe(session or self.session, self.app.surface.surface_id)

    async def ref(self, handle: str, session: Session | None = None) -> ElementTarget:
        """Return the fenced reference to a node, freshly observed."""
        scene = await self.observe(session)
        place = next(index for index, node in enumerate(scene.tree.nodes) if node.handle == handle)
        return reference(scene, place)

    async def request(self, operation_id: str, handle: str = "save", **facts: Any) -> Request:
        """Return a request to invoke a node."""
        action: Action = facts.pop("action", None) or Invoke()
        target = facts.pop("target", None) or await self.ref(handle)
        return Request(operation_id=operation_id, action=action, target=target, **facts)

    async def act(self, operation_id: str, handle: str = "save", **facts: Any) -> Reply:
        """Run a request to invoke a node."""
        return await self.gateway.act(self.session, await self.request(operation_id, handle, **facts))

    async def answer(
        self, pending: PendingApproval, answer: Literal["approve", "deny"] = "approve", **facts: Any
    ) -> Any:
        """Answer an open question as the operator."""
        return await self.approvals.answer(signed_answer(pending, answer, now_ms=self.clock.wall_ms(), **facts))

    async def types(self) -> list[str]:
        """Return the types of all events in order."""
        return [event.type for event in await self.journal.read()]

    async def restart(self) -> World:
        """Return a world over the same journal and application, as after a crash of the host."""
        other = World(policy=self.policy, journal=self.journal, clock=self.clock, config=self.config, kept=self.kept)
        other.revoked = self.revoked
        other.app = self.app
        other.desk = self.app.desk()
        other.session = other.new_session()
        await recover(other.journal, other.operations)
        await other.approvals.restore()
        await other.authority.budgets.restore()
        return other


def signed_answer(
    pending: PendingApproval,
    answer: Literal["approve", "deny"] = "approve",
    *,
    now_ms: int,
    key: SigningKey = APPROVER_KEY,
    approver: str = "operator",
    presentation_hash: str | None = None,
    standing: StandingGrant | None = None,
    reason: str = "",
) -> ApprovalAnswer:
    """Return an answer signed with the tests' approver key."""
    unsigned = ApprovalAnswer(
        approval_id=pending.approval_id,
        presentation_hash=presentation_hash or pending.presentation_hash,
        answer=answer,
        approver=approver,
        key_id=key.key_id,
        answered_at_ms=now_ms,
        expires_at_ms=now_ms + 60_000,
        reason=reason,
        standing=standing,
        signature="",
    )
    signature = key.sign(answer_message(unsigned))
    return ApprovalAnswer(**{**{f: getattr(unsigned, f) for f in unsigned.__struct_fields__}, "signature": signature})
