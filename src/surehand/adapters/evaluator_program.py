"""Asks an operator's program what it thinks of one request: the question as JSON on its input, an assessment back.

Guarantees: the program is run by its path, never by a shell; it gets nothing of this process but the question: an
environment of its own, no open file, the root as its folder; few run at once, and what it answers is read up to its
bound and no further; whatever ends the asking (its answer, its failure, whoever asks losing patience) ends the program
and what it started in its group. What it says is data: `core.review` decides whether it counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.errors import Unavailable

#: All that a program is told of where it runs.
_ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class EvaluatorProgram:
    """Implements `runtime.reviews.Evaluator`.

    Args:
        command: The program by its absolute path, and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self.name = Path(self._command[0]).name
        self._at_once = asyncio.Semaphore(limits.REVIEWS_AT_ONCE)

    async def assess(self, question: dict[str, Any]) -> Any:
        """Return what the program answers, as JSON values.

        Raises:
            Unavailable: it cannot be run, fails, says too much, or what is no JSON.
        """
        asked = msgspec.json.encode(question)
        if len(asked) > limits.POLICY_QUESTION_BYTES_MAX:
            raise Unavailable("the question is larger than an evaluator is asked")
        async with self._at_once:
            said = await self._run(asked)
        try:
            return msgspec.json.decode(said)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unavailable("the evaluator's answer is not JSON") from error

    async def _run(self, asked: bytes) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
                limit=limits.REVIEW_ANSWER_BYTES_MAX,
            )
        except OSError as error:
            raise Unavailable(f"the evaluator cannot be run: {error.strerror}") from error
        try:
            said = await _exchange(process, asked)
            code = await process.wait()
        finally:
            await _end(process)
        if code != 0:
            raise Unavailable(f"the evaluator ended with status {code}")
        return said


async def _exchange(process: Process, asked: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise Unavailable("the evaluator has no input or output")
    telling = asyncio.ensure_future(_tell(process.stdin, asked))
    said = b""
    try:
        while piece := await process.stdout.read(limits.REVIEW_ANSWER_BYTES_MAX + 1 - len(said)):
            said += piece
            if len(said) > limits.REVIEW_ANSWER_BYTES_MAX:
                raise Unavailable(f"the evaluator says more than {limits.REVIEW_ANSWER_BYTES_MAX} bytes")
        await telling
    finally:
        telling.cancel()
    return said


async def _tell(stdin: asyncio.StreamWriter, asked: bytes) -> None:
    # A program may answer without reading all of the question.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(asked)
        await stdin.drain()
    stdin.close()


async def _end(process: Process) -> None:
    """End the program and its group, and wait for it, so that its id is nobody else's meanwhile.

    What it still says is thrown away: a pipe that nobody reads is never seen to end. A child that left the group and
    keeps the pipe is not waited for.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.REVIEW_END_MS / 1000):
            while process.stdout is not None and await process.stdout.read(limits.REVIEW_ANSWER_BYTES_MAX):
                pass
            await process.wait()
