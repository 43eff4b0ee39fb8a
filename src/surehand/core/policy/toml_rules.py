"""Reads an operator's rule file: TOML text in, a compiled policy out, or what is wrong with it (spec §6.1).

A file that is too large, misspelt or self-contradictory never opens anything: nothing of it is used. Everything is
strict: an unknown key is an error, because a misspelt condition would make a rule match more than its author meant.
What is wrong is said with line, column and what was expected.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from typing import Any, Final, Literal

import msgspec

from surehand import canonical, limits
from surehand.core.policy.defaults import DEFAULT_RULES, DEFAULTS_VERSION
from surehand.core.policy.evaluate import Policy, compile_policy
from surehand.core.policy.model import RISKS, STRICTNESS, Match, ObservedMatch, Rule, check_rule
from surehand.core.policy.positions import Path, Places, line_and_column
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model.record import Record, check_count

_REVISION_DOMAIN: Final = "surehand/policy/v1"
_RESERVED: Final = ("default.", "engine.", "kernel.")
_PROBLEMS_MAX: Final = 50

_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_RECORD_PATH: Final = re.compile(r" - at `\$([^`]*)`$")
_PATH_PART: Final = re.compile(r"\.([A-Za-z_]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_NOT_ONE: Final = re.compile(r"Invalid enum value '?(.*?)'?", re.DOTALL)

#: What may stand where.
_FIELDS: Final[dict[Path, tuple[str, ...]]] = {
    (): Rule.__struct_fields__,
    ("match",): Match.__struct_fields__,
    ("match", "observed"): ObservedMatch.__struct_fields__,
}
_VALUES: Final[dict[Path, tuple[str, ...]]] = {
    ("effect",): tuple(STRICTNESS),
    ("release",): ("always", "ask"),
    ("match", "risk"): RISKS,
    ("match", "isolation"): ("isolated", "display_only", "shared"),
    ("match", "interaction_mode"): ("interactive", "background_only"),
    ("match", "trust_level"): ("A", "B"),
}


class Problem(Record, frozen=True, kw_only=True):
    """One thing that is wrong in a rule file, and where. `expected` says what to write instead."""

    line: int
    column: int
    message: str
    expected: str = ""
    too_large: bool = False

    def error(self) -> SurehandError:
        """Return it as the error that refuses the file."""
        kind = TooLarge if self.too_large else InvalidRequest
        return kind(f"line {self.line}, column {self.column}: {self.message}", fix=self.expected or None)


class RuleFile(Record, frozen=True, kw_only=True):
    """The whole file: `version = 1`, then `[[rule]]` tables, in order."""

    version: Literal[1]
    rule: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        check_count("rules", len(self.rule), 0, limits.POLICY_RULES_MAX)


def revision_of(text: str) -> str:
    """Return the revision of a rule text together with the defaults behind it."""
    return canonical.hash_value(_REVISION_DOMAIN, [DEFAULTS_VERSION, text])


def parse_policy(text: str) -> Policy:
    """Read rule text; the empty text is the defaults alone.

    Raises:
        InvalidRequest, TooLarge: saying what is wrong, where.
    """
    return compile_policy(read_rules(text), DEFAULT_RULES, revision_of(text))


def read_rules(text: str) -> tuple[Rule, ...]:
    """Read the rules of a text.

    Raises:
        InvalidRequest, TooLarge: saying what is wrong, where.
    """
    rules, problems = examine(text)
    if problems:
        raise problems[0].error()
    return rules


# --- what is wrong --------------------------------------------------------------------------------------------------


def examine(text: str) -> tuple[tuple[Rule, ...], list[Problem]]:
    """Return the rules that can be read, and everything that is wrong, in the order of the file."""
    if len(text.encode("utf-8", "surrogatepass")) > limits.POLICY_BYTES_MAX:
        return (), [_too_large(f"a rule file has at most {limits.POLICY_BYTES_MAX} bytes")]
    try:
        value = tomllib.loads(text) if text else {"version": 1}
    except tomllib.TOMLDecodeError as error:
        return (), [_not_toml(text, str(error))]
    except RecursionError:
        return (), [Problem(line=1, column=1, message="the rule file is not TOML: nested too deeply")]
    places = Places(text)
    listed: Any = value.get("rule", [])
    problems = _of_file(value, places)
    if not isinstance(listed, list):
        return (), problems
    if len(listed) > limits.POLICY_RULES_MAX:
        return (), [_too_large(f"rules has {len(listed)} items; the limit is {limits.POLICY_RULES_MAX}")]
    rules: list[Rule] = []
    names: set[str] = set()
    for number, one in enumerate(listed):
        found = _read_rule(one, number, names, places)
        if isinstance(found, Rule):
            rules.append(found)
        else:
            problems.append(found)
    return tuple(rules), sorted(problems[:_PROBLEMS_MAX], key=lambda problem: (problem.line, problem.column))


def _of_file(value: dict[str, Any], places: Places) -> list[Problem]:
    problems = [
        _problem(
            places, (name,), f"{name[:64]} is nothing that a rule file has", _nearest(name, RuleFile.__struct_fields__)
        )
        for name in value
        if name not in RuleFile.__struct_fields__
    ]
    if value.get("version") != 1 or isinstance(value.get("version"), bool):
        problems.append(
            _problem(places, ("version",), "the file does not say its version", "version = 1, first of all")
        )
    if not isinstance(value.get("rule", []), list):
        problems.append(_problem(places, ("rule",), "rule is no list of rules", "[[rule]] before each rule"))
    return problems


def _read_rule(value: Any, number: int, names: set[str], places: Places) -> Rule | Problem:
    at: Path = ("rule", number)
    identity = value.get("id") if isinstance(value, dict) else None
    called = f"rule {identity}: " if isinstance(identity, str) else ""
    try:
        rule = msgspec.convert(value, Rule, strict=True)
    except msgspec.ValidationError as error:
        return _invalid(error, at, called, places)
    if rule.id in names:
        return _problem(places, (*at, "id"), f"two rules are called {rule.id}", "another name for this one")
    names.add(rule.id)
    if rule.id.startswith(_RESERVED):
        return _problem(places, (*at, "id"), f"rule {rule.id}: names like this are ours", f"no {' '.join(_RESERVED)}")
    try:
        check_rule(rule)
    except InvalidRequest as error:
        return _problem(places, (*at, *_blamed(rule)), error.message, error.fix or "")
    return rule


def _blamed(rule: Rule) -> Path:
    """Return what `check_rule` refuses a rule for, in its order."""
    if rule.effect == "deny" and rule.covers:
        return ("covers",)
    if rule.match.observed is not None:
        return ("match", "observed")
    return ("match", "category") if rule.match.category else ("covers",)


def _invalid(error: msgspec.ValidationError, at: Path, called: str, places: Places) -> Problem:
    text = str(error)
    where = _RECORD_PATH.search(text)
    said = text[: where.start()] if where else text
    inside = (
        tuple(name or (int(index) if index.isdigit() else index) for name, index in _PATH_PART.findall(where[1]))
        if where
        else ()
    )
    named = tuple(part for part in inside if isinstance(part, str) and part != "...")
    cause = error.__cause__
    if isinstance(cause, SurehandError):
        path = (*at, *named, *_named_in(cause.message, named))
        problem = _problem(places, path, f"{called}{cause.message}", cause.fix or "")
        return msgspec.structs.replace(problem, too_large=isinstance(cause, TooLarge))
    if unknown := _UNKNOWN.fullmatch(said):
        expected = _nearest(unknown[1], _FIELDS.get(named, ()))
        return _problem(places, (*at, *named, unknown[1]), f"{called}{unknown[1][:64]} is no part of a rule", expected)
    if missing := _MISSING.fullmatch(said):
        return _problem(places, (*at, *named), f"{called}{missing[1]} is missing", f"{missing[1]} = …")
    if wrong := _NOT_ONE.fullmatch(said):
        values = _VALUES.get(named, ())
        return _problem(
            places, (*at, *inside), f"{called}{wrong[1][:64]!r} is no {'.'.join(named)}", _nearest(wrong[1], values)
        )
    return _problem(places, (*at, *inside), f"{called}{'.'.join(named) or 'it'}: {said}", _shape(named))


def _named_in(message: str, named: Path) -> Path:
    """Return the field that a record's own check names, where it is one of where the record stands."""
    first = re.split(r"[:\s]", message.removeprefix("* in "), maxsplit=1)[0].split(".")
    rest = tuple(first[len(named) :]) if tuple(first[: len(named)]) == named else tuple(first)
    known = _FIELDS.get(named, ())
    if rest and rest[0] in known:
        return rest
    return ("id",) if message.startswith("rule id") else ()


def _shape(named: Path) -> str:
    if not named:
        return "[[rule]] with id, effect and reason"
    if (
        named[-1] in Match.__struct_fields__
        or named[-1] in ObservedMatch.__struct_fields__
        or named[-1] in ("covers", "redact")
    ):
        return f'{named[-1]} = ["…"]: a list of texts in quotes'
    return f"{named[-1]} = 2: a whole number" if named[-1] == "approvals" else f'{named[-1]} = "…": a text in quotes'


def _nearest(name: str, known: tuple[str, ...]) -> str:
    close = [one for one in known if name.startswith(one)] or difflib.get_close_matches(name, known, n=1)
    listed = f"one of {', '.join(known)}"
    return f"{close[0]}? ({listed})" if close else listed


def _problem(places: Places, path: Path, message: str, expected: str) -> Problem:
    line, column = places.of(path)
    return Problem(line=line, column=column, message=message, expected=expected)


def _too_large(message: str) -> Problem:
    return Problem(line=1, column=1, message=message, too_large=True)


def _not_toml(text: str, said: str) -> Problem:
    place = _TOML_PLACE.search(said)
    line, column = line_and_column(text, len(text))
    if place is not None and place[1] is not None:
        line, column = int(place[1]), int(place[2])
    message = said[: place.start()] if place else said
    return Problem(line=line, column=column, message=f"the rule file is not TOML: {message}")
