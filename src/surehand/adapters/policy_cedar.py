"""Cedar in this process: policies are parsed and checked against the schema once, then asked (spec §6.1).

Guarantees: what no policy permits is denied, as Cedar has it; a policy that errs denies, where Cedar would pass it by,
since a forbid that is passed over would open something; annotations that cannot be read stop the load.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from surehand import limits
from surehand.core.policy.engine import EngineFailure, encode_question
from surehand.core.policy.to_cedar import cedar_request
from surehand.errors import InvalidRequest, Unavailable

try:
    import cedarpy
except ImportError:  # the extra is not installed; `open_cedar` says how to get it
    cedarpy = None  # type: ignore[assignment, unused-ignore]

_NOTES: Final = frozenset({"id", "reason", "outcome", "covers", "approvals", "release", "redact"})
_OUTCOMES: Final = ("allow", "require_approval", "default")
_NUMBER: Final = re.compile(r"policy(\d+)")


class CedarEngine:
    """Implements `ports.PolicyEngine`."""

    name = "cedar"

    def __init__(self, policies: Any, notes: dict[str, dict[str, Any]], revision: str) -> None:
        self._policies = policies
        self._notes = notes
        self.revision = revision

    async def ask(self, questions: Sequence[dict[str, Any]]) -> list[Any]:
        """Return one answer for each question."""
        for question in questions:
            encode_question(question)  # bounds it
        asked = [cedar_request(question) for question in questions]
        try:
            # Questions of one operation are about the same entities.
            found = cedarpy.is_authorized_batch([request for request, _ in asked], self._policies, asked[0][1])
        except Exception as error:
            raise EngineFailure("error", type(error).__name__) from error
        return [self._answer(one) for one in found]

    def _answer(self, found: Any) -> dict[str, Any] | None:
        if found.diagnostics.errors:
            raise EngineFailure("error", f"{len(found.diagnostics.errors)} policies could not be evaluated")
        decided = sorted(found.diagnostics.reasons, key=lambda policy: self._notes[policy]["position"])
        if found.decision not in (cedarpy.Decision.Allow, cedarpy.Decision.Deny):
            raise EngineFailure("error", "Cedar came to no decision")
        if not decided:
            return None
        notes = [self._notes[policy] for policy in decided]
        if not found.allowed:
            return {"outcome": "deny", "rule": notes[0]["id"], "reason": notes[0]["reason"]}
        return _permitted(notes)

    async def check(self) -> str:
        """Return how many policies there are."""
        return f"Cedar in process, {len(self._notes)} policies"

    async def close(self) -> None:
        """Nothing to let go of: memory is freed with this object."""


def _permitted(notes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the policies that permit say together: one that asks makes it a question."""
    speaking = [one for one in notes if one["outcome"] != "default"]
    if not speaking:
        return {"outcome": "default"}
    asking = [one for one in speaking if one["outcome"] == "require_approval"]
    first = (asking or speaking)[0]
    return {
        "outcome": first["outcome"],
        "rule": first["id"],
        "reason": first["reason"],
        "covers": sorted({name for one in speaking for name in one["covers"]}),
        "obligations": {
            "redact": sorted({name for one in speaking for name in one["redact"]}),
            "release": "ask" if any(one["release"] == "ask" for one in speaking) else "always",
            "approvals_needed": max(one["approvals"] for one in speaking),
        },
    }


def open_cedar(text: str, *, schema: str | None = None, revision: str) -> CedarEngine:
    """Parse policies and check them.

    Args:
        text: Cedar policies.
        schema: Cedar's schema text; None leaves the check of names and types out.
        revision: For receipts.

    Raises:
        Unavailable: the extra `cedar` is not installed.
        InvalidRequest: what is wrong and where.
    """
    if cedarpy is None:
        raise Unavailable("Cedar needs the package cedarpy", fix="pip install 'surehand[cedar]'")
    try:
        policies = cedarpy.PolicySet.from_str(text)
        listed = json.loads(cedarpy.policies_to_json_str(text))
    except ValueError as error:
        raise _wrong(f"line {_line_of(text, _is_policy)}: {error}") from error
    if listed.get("templates"):
        raise _wrong("templates have no place in it; write policies")
    notes = {name: _read_notes(name, policy) for name, policy in listed["staticPolicies"].items()}
    if schema is not None:
        checked = cedarpy.validate_policies(text, schema)
        if not checked.validation_passed:
            first = checked.errors[0]
            raise _wrong(f"{notes.get(first.policy_id, {}).get('id', first.policy_id)}: {first.error}")
    return CedarEngine(policies, notes, revision)


def _read_notes(name: str, policy: dict[str, Any]) -> dict[str, Any]:
    given = {key: value or "" for key, value in (policy.get("annotations") or {}).items()}
    identity = given.get("id", name)
    unknown = sorted(given.keys() - _NOTES)
    if unknown:
        raise _wrong(f"{identity}: unknown annotation @{unknown[0]}; known are @{', @'.join(sorted(_NOTES))}")
    outcome = given.get("outcome", "allow")
    if outcome not in _OUTCOMES or (policy["effect"] == "forbid" and "outcome" in given):
        raise _wrong(f"{identity}: @outcome is one of {', '.join(_OUTCOMES)}, on a permit")
    number = _NUMBER.fullmatch(name)
    approvals, redact = given.get("approvals", "1"), _names(given.get("redact", "[]"))
    if not approvals.isdecimal() or not 1 <= int(approvals) <= limits.APPROVALS_NEEDED_MAX or redact is None:
        raise _wrong(f'{identity}: write @approvals("2") and @redact("[\\"png\\"]")')
    return {
        "id": identity,
        "position": int(number[1]) if number else 0,
        "reason": given.get("reason") or f"policy {identity}",
        "outcome": outcome,
        "covers": given.get("covers", "").split(),
        "approvals": int(approvals),
        "release": given.get("release", "always"),
        "redact": redact,
    }


def _names(text: str) -> list[str] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, list) and all(isinstance(name, str) for name in value) else None


def _is_policy(text: str) -> bool:
    try:
        cedarpy.PolicySet.from_str(text)
    except ValueError:
        return False
    return True


def _line_of(text: str, parses: Any) -> int:
    """Return the line of the first policy that does not parse; Cedar's own message names none."""
    line, at = 1, 0
    for end in (match.end() for match in re.finditer(r";[ \t]*(?:\n|$)", text)):
        if not parses(text[at:end]):
            break
        line, at = line + text.count("\n", at, end), end
    blank = re.match(r"\s*", text[at:])
    return line + (blank[0].count("\n") if blank else 0)


def _wrong(message: str) -> InvalidRequest:
    return InvalidRequest(f"the Cedar policy is not one: {message}", fix="correct the file; the policy in force stays")
