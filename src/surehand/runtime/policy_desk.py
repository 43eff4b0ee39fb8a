"""What an operator does with a policy outside the daemon: read it as the daemon would, check it, ask it.

Changes nothing, and needs no daemon. What it decides is what the daemon would decide, by the same code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from surehand.core.policy import cases, explain, warnings
from surehand.core.policy.engine import EngineFailure, input_value
from surehand.core.policy.positions import Places
from surehand.core.policy.to_cedar import cedar_schema, cedar_text
from surehand.core.policy.to_rego import MODULE_FILE, rules_data
from surehand.core.policy.toml_rules import Problem, examine, read_rules
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.decision import Decision, PolicyInput
from surehand.model.record import convert, to_value
from surehand.runtime import policy_asking
from surehand.runtime.clock import SystemClock
from surehand.runtime.compose import open_engine
from surehand.runtime.config import PolicyChoice, load
from surehand.runtime.policies import Policies
from surehand.runtime.policy_source import Ruling, data_text, load_vocabulary, open_ruling

#: Reads a request to explain.
request_of: Final = policy_asking.request_of

_SUFFIXES: Final = {".toml": "builtin", ".rego": "rego", ".cedar": "cedar"}
_WRITE_ONE: Final = "name a file that can be read; `surehand policy init` writes one"
#: A plain read, which every policy should have an answer to.
_PROBE: Final[dict[str, Any]] = {
    "principal": "uid:0",
    "action": "desktop.observe",
    "risk": "read",
    "interaction_mode": "background_only",
    "parameters": {},
    "facts": {
        "app": "exe:/usr/bin/probe",
        "place": "main",
        "isolation": "isolated",
        "trust_level": "A",
        "backend": "atspi",
    },
}


def choice_of(config: Path, file: str | None, engine: str | None) -> PolicyChoice:
    """Return which policy is meant: a file, or what the configuration names.

    Raises:
        InvalidRequest: an engine that the file is not for.
    """
    if file is None:
        found = load(config)
        choice = found.tried if found.enforced.file is None and found.tried is not None else found.enforced
        return choice if engine is None else convert(PolicyChoice, {**to_value(choice), "engine": engine})
    path = Path(file).absolute()
    guessed = "rego" if path.is_dir() else _SUFFIXES.get(path.suffix)
    if not path.exists():
        raise InvalidRequest(f"{path} is not there", fix=_WRITE_ONE)
    if engine is None and guessed is None:
        raise InvalidRequest(f"{path}: a policy ends in .toml, .rego or .cedar", fix="name the engine with --engine")
    return convert(PolicyChoice, {"engine": engine or guessed, "file": str(path)})


def configured(path: Path) -> dict[str, Any]:
    """Return what the configuration says of who decides.

    Raises:
        SurehandError: naming the file and what is wrong in it.
    """
    config = load(path)
    return {
        "config": str(path),
        "exists": path.exists(),
        "authority": config.authority,
        "trust_level": config.trust_level,
        "approvers": [one.approver for one in config.approvers],
        **({} if config.shadow_policy is None else {"shadow": check(config.shadow_policy)}),
    }


def check(choice: PolicyChoice) -> dict[str, Any]:
    """Return everything that is wrong, and what can never match."""
    value: dict[str, Any] = {"engine": choice.engine, "file": choice.file, "mode": choice.mode}
    problems: list[dict[str, Any]] = []
    warned: list[dict[str, Any]] = []
    rules = 0
    if choice.file is not None and choice.file.endswith(".toml"):
        problems, warned, rules = _check_rules(Path(choice.file))
    if not problems:
        try:
            ruling = open_ruling(choice, open_engine)
            value["revision"] = ruling.revision
            warned += asyncio.run(_probe(ruling))
        except SurehandError as error:
            problems.append({"message": error.message, **({"expected": error.fix} if error.fix else {})})
    return {**value, "ok": not problems, "rules": rules, "problems": problems, "warnings": warned}


def _check_rules(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidRequest(f"{path}: the policy cannot be read: {why}", fix=_WRITE_ONE) from error
    rules, problems = examine(text)
    if problems:
        return [_told(one) for one in problems], [], len(rules)
    places = Places(text)
    warned = []
    for one in warnings.warnings_of(rules):
        line, column = places.of(("rule", one.position, *one.field))
        warned.append({"line": line, "column": column, "rule": one.rule, "message": one.message})
    return [], warned, len(rules)


def _told(problem: Problem) -> dict[str, Any]:
    value = {"line": problem.line, "column": problem.column, "message": problem.message}
    return {**value, "expected": problem.expected} if problem.expected else value


async def _probe(ruling: Ruling) -> list[dict[str, Any]]:
    """Ask an engine about a plain read: a policy that says nothing about it says nothing about anything."""
    if ruling.asked is None:
        return []
    try:
        (answer,) = await ruling.asked.ask([input_value(convert(PolicyInput, _PROBE), {})])
    except EngineFailure as failure:
        return [{"message": f"it does not answer: {failure}"}]
    finally:
        await ruling.asked.close()
    says_nothing = f"{ruling.choice.decision} says nothing about a plain read, so nothing would be allowed"
    return [{"message": says_nothing}] if answer is None else []


def decide(choice: PolicyChoice, documents: Sequence[PolicyInput]) -> list[Decision]:
    """Return what the policy decides about each.

    Raises:
        SurehandError: the policy cannot be used.
    """
    return asyncio.run(_decide(open_ruling(choice, open_engine), documents))


async def _decide(ruling: Ruling, documents: Sequence[PolicyInput]) -> list[Decision]:
    policies = Policies(ruling, open_engine, SystemClock(), None)
    try:
        return [await policies.ask(ruling, one, "explained") for one in documents]
    finally:
        await policies.close()


def explained(choice: PolicyChoice, document: PolicyInput) -> dict[str, Any]:
    """Return the decision about a request, and which rules came to it. An engine tells its own rule alone."""
    ruling = open_ruling(choice, open_engine)
    (decision,) = asyncio.run(_decide(ruling, [document]))
    looks = [] if ruling.asked is not None else explain.explain(ruling.policy, document)
    return {
        "engine": choice.engine,
        "outcome": decision.outcome,
        "rule": decision.rule,
        "reason": decision.reason,
        "obligations": to_value(decision.obligations),
        "revision": decision.policy_revision,
        "looks": [to_value(look) for look in looks],
    }


def tried(choice: PolicyChoice, table_text: str) -> list[cases.Result]:
    """Return what came of every case of a table.

    Raises:
        InvalidRequest: what is wrong with the table.
    """
    table = cases.read_table(table_text)
    vocabulary = load_vocabulary()
    decisions = decide(choice, [cases.document_of(case, vocabulary) for case in table.case])
    return [cases.judged(case, decision) for case, decision in zip(table.case, decisions, strict=True)]


def translated(text: str, engine: str) -> dict[str, str]:
    """Return a rule file's rules as the files of another engine, by name.

    Raises:
        InvalidRequest: the rule file is broken.
    """
    rules = read_rules(text)
    if engine == "cedar":
        return {"policy.cedar": cedar_text(rules), "surehand.cedarschema": cedar_schema()}
    data = json.dumps(rules_data(rules), ensure_ascii=False, indent=1)
    return {MODULE_FILE: data_text(MODULE_FILE), "data.json": f"{data}\n"}
