"""Where the pictures of open questions are: bounded, sealed like the question they belong to, and gone with it.

Their hash is part of what is signed, so an approver is shown what was taken, or nothing (spec §6.4).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

import nacl.exceptions
from nacl.secret import Aead

from surehand import limits
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.approval import crop_hash
from surehand.runtime.run import Run
from surehand.signing.private_files import private_directory, read_private, replace_private

_log: Final = logging.getLogger("surehand.approvals")
_SUFFIX: Final = ".picture"
_NAME: Final = re.compile(r"[0-9a-f]{16}")
_DOMAIN: Final = b"surehand/kept-picture/v1\x00"

TakeCrop = Callable[[Run], Awaitable[bytes | None]]


async def no_crop(_: Run) -> bytes | None:
    """Take no picture."""
    return None


class Crops(Protocol):
    """Where the pictures of open questions are."""

    async def put(self, approval_id: str, png: bytes) -> bool:
        """Keep a picture, durable when this returns; false where there is no room for it."""

    async def get(self, approval_id: str) -> bytes | None:
        """Return a picture as it was put."""

    def forget(self, approval_id: str) -> None:
        """Let go of the picture of a question that has ended; never fails."""

    def keep(self, approval_ids: Iterable[str]) -> None:
        """Let go of all pictures but those of these questions."""


class CropsInMemory:
    """Keeps pictures as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, approval_id: str, png: bytes) -> bool:
        """Keep a picture."""
        if sum(len(one) for one in self._kept.values()) + len(png) > limits.CROPS_BYTES_KEPT_MAX:
            return False
        self._kept[approval_id] = png
        return True

    async def get(self, approval_id: str) -> bytes | None:
        """Return a picture."""
        return self._kept.get(approval_id)

    def forget(self, approval_id: str) -> None:
        """Let go of a picture."""
        self._kept.pop(approval_id, None)

    def keep(self, approval_ids: Iterable[str]) -> None:
        """Let go of all but these."""
        wanted = set(approval_ids)
        self._kept = {name: png for name, png in self._kept.items() if name in wanted}


class CropFiles:
    """Keeps each picture in a sealed file of a folder of ours, so that a restart can show it again."""

    def __init__(self, folder: Path, key: bytes, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._folder = private_directory(folder)
        self._box = Aead(key)
        self._randomness = randomness
        self._sizes: dict[str, int] = {
            path.name.removesuffix(_SUFFIX): path.stat().st_size for path in self._folder.iterdir() if path.is_file()
        }

    async def put(self, approval_id: str, png: bytes) -> bool:
        """Keep a picture.

        Raises:
            Unavailable: the file system refuses.
        """
        path = self._path(approval_id)
        sealed = bytes(self._box.encrypt(png, _covered(approval_id), self._randomness(Aead.NONCE_SIZE)))
        if sum(self._sizes.values()) + len(sealed) > limits.CROPS_BYTES_KEPT_MAX:
            return False
        self._sizes[approval_id] = len(sealed)
        try:
            await asyncio.to_thread(replace_private, path, sealed)
        except BaseException:
            self.forget(approval_id)
            raise
        if approval_id not in self._sizes:
            self._unlink(path)  # its question ended while it was being written
        return True

    async def get(self, approval_id: str) -> bytes | None:
        """Return a picture; None where there is none or it is not the one that was sealed for this question."""
        if approval_id not in self._sizes:
            return None
        try:
            sealed = await asyncio.to_thread(read_private, self._path(approval_id), 2 * limits.CROP_BYTES_MAX)
            return bytes(self._box.decrypt(sealed, _covered(approval_id)))
        except (SurehandError, nacl.exceptions.CryptoError, ValueError) as error:
            _log.warning("a kept picture cannot be read: %s", type(error).__name__)
            return None

    def forget(self, approval_id: str) -> None:
        """Let go of a picture."""
        if self._sizes.pop(approval_id, None) is not None:
            self._unlink(self._folder / f"{approval_id}{_SUFFIX}")

    def keep(self, approval_ids: Iterable[str]) -> None:
        """Let go of all but these."""
        for gone in self._sizes.keys() - set(approval_ids):
            self.forget(gone)

    @staticmethod
    def _unlink(path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()

    def _path(self, approval_id: str) -> Path:
        if _NAME.fullmatch(approval_id) is None:
            raise InvalidRequest("not a question's name")
        return self._folder / f"{approval_id}{_SUFFIX}"


def _covered(approval_id: str) -> bytes:
    return _DOMAIN + approval_id.encode("ascii")


def is_shown(png: bytes | None, expected: str | None) -> bool:
    """Say whether a picture is the one whose hash was signed."""
    return png is not None and expected is not None and crop_hash(png) == expected
