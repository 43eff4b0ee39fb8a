"""Open questions beside the journal, so that a restart of the daemon loses neither a question nor a yes (spec §6.4).

What a person is shown holds the texts of a request, which the journal must not keep. So each open question is a file of
its own, sealed with a key of the daemon and bound to its name, and gone once the question has ended. The journal stays
the witness: a file that does not fit what it recorded is dropped, so that nothing here can ask, answer or bring back
anything. A question is durable before `put` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import nacl.exceptions
from nacl.secret import Aead

from surehand import canonical, limits
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.record import Record, decode
from surehand.signing.private_files import private_directory, read_private, replace_private

_log: Final = logging.getLogger("surehand.approvals")
_SUFFIX: Final = ".question"
_NAME: Final = re.compile(r"[0-9a-f]{16}")
_DOMAIN: Final = b"surehand/kept-question/v1\x00"


class KeptQuestion(Record, frozen=True, kw_only=True):
    """An open question and the answers given to it so far."""

    pending: PendingApproval
    answers: tuple[ApprovalAnswer, ...] = ()


class Kept(Protocol):
    """Where open questions outlive the process."""

    async def put(self, pending: PendingApproval, answers: Sequence[ApprovalAnswer]) -> None:
        """Keep a question with the answers as they are when it is written."""

    def forget(self, approval_id: str) -> None:
        """Let go of a question that has ended; never fails."""

    async def all(self) -> list[KeptQuestion]:
        """Return what is kept, oldest question first."""


class NothingKept:
    """Keeps nothing: a restart loses what is open."""

    async def put(self, pending: PendingApproval, answers: Sequence[ApprovalAnswer]) -> None:
        """Keep nothing."""

    def forget(self, approval_id: str) -> None:
        """Have nothing to forget."""

    async def all(self) -> list[KeptQuestion]:
        """Return nothing."""
        return []


class KeptFiles:
    """Keeps each question in a sealed file of a folder of ours."""

    def __init__(self, folder: Path, key: bytes, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._folder = private_directory(folder)
        self._box = Aead(key)
        self._randomness = randomness
        #: Writes one after another, so that the newest state is the one that stays.
        self._writing = asyncio.Lock()
        self._open: set[str] = set()

    async def put(self, pending: PendingApproval, answers: Sequence[ApprovalAnswer]) -> None:
        """Keep a question; durable when this returns.

        Raises:
            Unavailable: the file system refuses.
        """
        approval_id = pending.approval_id
        self._open.add(approval_id)
        async with self._writing:
            value = KeptQuestion(pending=pending, answers=tuple(answers))
            nonce = self._randomness(Aead.NONCE_SIZE)
            sealed = bytes(self._box.encrypt(canonical.encode_record(value), _covered(approval_id), nonce))
            await asyncio.to_thread(replace_private, self._path(approval_id), sealed)
        if approval_id not in self._open:
            self._unlink(approval_id)  # it ended while it was being written

    def forget(self, approval_id: str) -> None:
        """Let go of a question. That it ended is in the journal, so the name need not be gone durably."""
        self._open.discard(approval_id)
        self._unlink(approval_id)

    def _unlink(self, approval_id: str) -> None:
        with contextlib.suppress(OSError):
            self._path(approval_id).unlink()

    async def all(self) -> list[KeptQuestion]:
        """Return what can be read, oldest first; what cannot is told in the log, by name, and removed."""
        found = await asyncio.to_thread(self._read_all)
        self._open.update(one.pending.approval_id for one in found)
        return sorted(found, key=lambda one: one.pending.requested_at_ms)

    def _read_all(self) -> list[KeptQuestion]:
        found = []
        for path in sorted(self._folder.iterdir())[: 2 * limits.APPROVALS_OPEN_MAX]:
            name = path.name.removesuffix(_SUFFIX)
            try:
                kept = self._read(path, name)
            except (SurehandError, nacl.exceptions.CryptoError, ValueError) as error:
                _log.warning("a kept question was dropped: %s: %s", path.name, type(error).__name__)
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            found.append(kept)
        return found

    def _read(self, path: Path, name: str) -> KeptQuestion:
        if _NAME.fullmatch(name) is None:
            raise InvalidRequest("not a question's name")
        opened = self._box.decrypt(read_private(path, limits.APPROVAL_FILE_BYTES_MAX), _covered(name))
        return decode(KeptQuestion, opened, bytes_max=limits.APPROVAL_FILE_BYTES_MAX)

    def _path(self, approval_id: str) -> Path:
        return self._folder / f"{approval_id}{_SUFFIX}"


def _covered(approval_id: str) -> bytes:
    """Return what the seal covers beside the question: one file cannot stand in the place of another."""
    return _DOMAIN + approval_id.encode("ascii")
