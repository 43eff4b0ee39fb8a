"""Rego in this process: modules and data are compiled to a bundle once, and the bundle is asked (spec §6.1).

Guarantees: what is undefined, errs or is too large is an `EngineFailure`, never an answer. The engine cannot be stopped
once it runs and runs on the daemon's own thread, so a policy of your own has to end by itself; an answer that came late
is discarded by whoever asked.

The engine keeps a quote, a backslash and a control character in data and literals as the two or six characters that
JSON spells them with, and in input as what they are, so that a rule about one would never match. Here none of them gets
in: they change places with private characters on the way in, in data and input alike, and back on the way out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import re2  # noqa: F401 - before regopy, which brings symbols of another RE2 that crash this one when they come first

from surehand import limits
from surehand.core.policy.engine import EngineFailure, encode_question
from surehand.errors import InvalidRequest, Unavailable

try:
    import regopy
except ImportError:  # the extra is not installed; `open_rego` says how to get it
    regopy = None  # type: ignore[assignment, unused-ignore]

_UNDEFINED: Final = "undefined"
_PRIVATE: Final = 0xF000
_ESCAPED: Final = (*range(0x20), ord('"'), ord("\\"))
#: Its own inverse.
_SWAPPED: Final = {
    **{code: _PRIVATE + code for code in _ESCAPED},
    **{_PRIVATE + code: code for code in _ESCAPED},
}
_SWAPPED_IN: Final = re.compile("[" + "".join(chr(_PRIVATE + code) for code in _ESCAPED) + "]")
_LITERAL: Final = re.compile(r'`[^`]*`|#[^\n]*|"(?:[^"\\\n]|\\.)*"')


class RegoEngine:
    """Implements `ports.PolicyEngine`."""

    name = "rego"

    def __init__(self, interpreter: Any, bundle: Any, entrypoint: str, revision: str) -> None:
        self._interpreter = interpreter
        self._bundle = bundle
        self._entrypoint = entrypoint
        self.revision = revision

    async def ask(self, questions: Sequence[dict[str, Any]]) -> list[Any]:
        """Return one answer for each question."""
        return [self._ask(question) for question in questions]

    def _ask(self, question: dict[str, Any]) -> Any:
        encode_question(question)  # bounds it
        try:
            self._interpreter.set_input(_swapped(question))
            found = self._interpreter.query_bundle_entrypoint(self._bundle, self._entrypoint)
            text = str(found) if found.ok() else None
        except Exception as error:  # the binding raises errors of its own and of ctypes alike
            raise EngineFailure("error", type(error).__name__) from error
        if text is None:
            # Such as two rules that give one name different values.
            raise EngineFailure("error", "the rules contradict each other or a function failed")
        if text == _UNDEFINED:
            return None
        if len(text) > limits.POLICY_ANSWER_BYTES_MAX:
            raise EngineFailure("too_large", f"the answer has {len(text)} characters")
        try:
            return _swapped(msgspec.json.decode(text)["expressions"][0])
        except (msgspec.DecodeError, KeyError, IndexError, TypeError) as error:
            raise EngineFailure("malformed", "the engine's output cannot be read") from error

    async def check(self) -> str:
        """Return the engine's version."""
        return f"Rego in process ({regopy.rego_version()}), {self._entrypoint}"

    async def close(self) -> None:
        """Nothing to let go of: memory is freed with this object."""


def open_rego(
    modules: Mapping[str, str], data: Mapping[str, Any], *, entrypoint: str = "surehand/decision", revision: str
) -> RegoEngine:
    """Compile modules and data.

    Args:
        modules: Rego text by file name.
        data: The data document.
        entrypoint: Where the decision is, with slashes.
        revision: For receipts.

    Raises:
        Unavailable: the extra `rego` is not installed.
        InvalidRequest: what the compiler said, with line and column.
    """
    if regopy is None:
        raise Unavailable("Rego needs the package regopy", fix="pip install 'surehand[rego]'")
    for name, text in modules.items():
        _check_literals(name, text)
    _check_data(data)
    interpreter = regopy.Interpreter()
    interpreter.log_level = regopy.LogLevel.NONE  # it writes to standard output otherwise
    try:
        for name, text in modules.items():
            interpreter.add_module(name, text)
        interpreter.add_data_json(json.dumps(_swapped(dict(data)), ensure_ascii=False))
        bundle = interpreter.build(None, [entrypoint])
    except Exception as error:
        raise InvalidRequest(
            f"the Rego policy does not compile: {_first_error(str(error), modules)}",
            fix="correct the file; the policy in force stays",
        ) from error
    return RegoEngine(interpreter, bundle, entrypoint, revision)


def _swapped(value: Any) -> Any:
    if isinstance(value, str):
        return value.translate(_SWAPPED)
    if isinstance(value, dict):
        return {_swapped(name): _swapped(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_swapped(item) for item in value]
    return value


def _check_data(value: Any) -> None:
    """Refuse data with the private characters: what was swapped for them could not be told from them."""
    if _SWAPPED_IN.search(json.dumps(value, ensure_ascii=False)):
        raise InvalidRequest("the policy's data has private characters U+F000 to U+F05C", fix="write it without them")


def _check_literals(name: str, text: str) -> None:
    """Refuse a literal with an escape: the engine would compare its spelling, and the rule would never match."""
    for match in _LITERAL.finditer(text):
        if match[0].startswith('"') and ("\\" in match[0] or _SWAPPED_IN.search(match[0])):
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            raise InvalidRequest(
                f"{name}:{line}:{column}: this engine compares escapes in texts wrongly",
                fix="write the text without \\, or use the engine opa",
            )


def _first_error(text: str, modules: Mapping[str, str]) -> str:
    """Return the first error with file, line and column; the binding gives a tree with byte offsets."""
    message = re.search(r"\(errormsg \d+:([^)]*)\)", text)
    place = re.search(r"\(error \d+:([^|()]+)\|(\d+)\|", text)
    said = message[1] if message else text[:200]
    if place is None or place[1] not in modules:
        return said
    before = modules[place[1]].encode()[: int(place[2])].decode("utf-8", "replace")
    return f"{place[1]}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}: {said}"
