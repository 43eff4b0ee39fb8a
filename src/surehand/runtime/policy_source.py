"""Reads what policy needs from files: the lists that come with Surehand, and the operator's policy.

A policy that cannot be read or is broken gives the one that denies everything at the start; at a reload the one in
force stays (spec §6.1). The lists that come with Surehand must be there: without them nothing would be consequential.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from surehand import canonical, limits
from surehand.core.policy import vocabulary
from surehand.core.policy.engine import defaults_policy
from surehand.core.policy.evaluate import Policy, deny_all
from surehand.core.policy.to_cedar import cedar_text
from surehand.core.policy.to_rego import MODULE_FILE, rules_data
from surehand.core.policy.toml_rules import parse_policy, read_rules
from surehand.core.policy.vocabulary import Vocabulary
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.ports import PolicyEngine
from surehand.runtime.config import PolicyChoice, check_operator_owned

_REVISION_DOMAIN: Final = "surehand/policy-files/v1"
_DATA_FILE: Final = "data.json"


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine in this process is made of."""

    modules: Mapping[str, str]
    data: Mapping[str, Any]
    revision: str


#: Makes an engine; `compose` has the one that knows the adapters.
OpenEngine = Callable[[PolicyChoice, Material], PolicyEngine]


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """A policy ready to decide: the built-in rules, or an engine with the defaults behind it."""

    choice: PolicyChoice
    policy: Policy
    asked: PolicyEngine | None = None
    #: Of the files it was read from; another one means that they changed.
    signature: tuple[tuple[str, int, int, int], ...] = ()

    @property
    def revision(self) -> str:
        """As receipts carry it."""
        return self.policy.revision


@functools.cache
def load_vocabulary() -> Vocabulary:
    """Return the word and application lists, read once.

    Raises:
        InvalidRequest: a list is broken.
        OSError: a list is missing, so this installation is not whole.
    """
    return vocabulary.parse_vocabulary(data_text(vocabulary.WORDS_FILE), data_text(vocabulary.APPS_FILE))


def data_text(name: str) -> str:
    """Return the text of a data file beside the policy rules."""
    return resources.files("surehand.core.policy").joinpath("data", name).read_text("utf-8")


def open_ruling(choice: PolicyChoice, open_engine: OpenEngine) -> Ruling:
    """Read a policy as it is now.

    Raises:
        InvalidRequest, TooLarge: what is wrong, in which file.
        PermissionMissing: a file that others may write.
        Unavailable: an engine that is not installed.
    """
    if choice.engine == "opa":
        engine = open_engine(choice, Material(modules={}, data={}, revision=""))
        return Ruling(choice=choice, policy=defaults_policy(f"opa:{engine.revision}"), asked=engine)
    if choice.file is None:
        return Ruling(choice=choice, policy=parse_policy(""))
    path = Path(choice.file)
    signature = signature_of(choice)
    texts = _texts(path)
    is_rules = path.suffix == ".toml"
    if choice.engine == "builtin":
        if not is_rules:
            raise InvalidRequest(f"{path}: the built-in engine reads .toml", fix="name the engine: rego or cedar")
        return Ruling(choice=choice, policy=parse_policy(texts[path.name]), signature=signature)
    revision = canonical.hash_value(_REVISION_DOMAIN, [choice.engine, sorted(texts.items())])
    material = _material(choice, texts, revision, is_rules=is_rules)
    engine = open_engine(choice, material)
    policy = defaults_policy(f"{choice.engine}:{revision}")
    return Ruling(choice=choice, policy=policy, asked=engine, signature=signature)


def first_ruling(choice: PolicyChoice, open_engine: OpenEngine) -> Ruling:
    """Read a policy at the start: one that cannot be used is replaced by the one that denies everything.

    Raises:
        PermissionMissing: others may write it; that stops the start.
    """
    for path in _files(choice):
        if path.exists():
            check_operator_owned(path)
    try:
        return open_ruling(choice, open_engine)
    except (SurehandError, OSError) as error:
        why = error.message if isinstance(error, SurehandError) else f"it cannot be read: {error.strerror}"
        closed = deny_all(f"the policy cannot be used, so everything is denied: {why}")
        return Ruling(choice=choice, policy=closed, signature=signature_of(choice))


def signature_of(choice: PolicyChoice) -> tuple[tuple[str, int, int, int], ...]:
    """Return what tells that the files changed, without reading them; absent files count as such."""
    found = []
    for path in _files(choice):
        try:
            facts = path.stat()
            found.append((path.name, facts.st_mtime_ns, facts.st_size, facts.st_ino))
        except OSError:
            found.append((path.name, 0, 0, 0))
    return tuple(found)


def _files(choice: PolicyChoice) -> list[Path]:
    if choice.file is None:
        return []
    path = Path(choice.file)
    if not path.is_dir():
        return [path]
    inside = sorted(one for one in path.iterdir() if one.suffix == ".rego" or one.name == _DATA_FILE)
    return [path, *inside[: limits.POLICY_FILES_MAX + 1]]


def _texts(path: Path) -> dict[str, str]:
    files = [one for one in _files(PolicyChoice(file=str(path))) if one.is_file() or not one.is_dir()]
    if len(files) > limits.POLICY_FILES_MAX:
        raise TooLarge(f"{path}: a policy has at most {limits.POLICY_FILES_MAX} files")
    texts = {}
    for one in files:
        try:
            check_operator_owned(one)
            with one.open("rb") as file:
                data = file.read(limits.POLICY_BYTES_MAX + 1)
            texts[one.name] = data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"{one}: the policy cannot be read: {error}") from error
        if len(data) > limits.POLICY_BYTES_MAX:
            raise TooLarge(f"{one}: a policy file has at most {limits.POLICY_BYTES_MAX} bytes")
    if not texts:
        raise InvalidRequest(f"{path}: there is no policy in it")
    return texts


def _material(choice: PolicyChoice, texts: dict[str, str], revision: str, *, is_rules: bool) -> Material:
    if is_rules:
        rules = read_rules(next(iter(texts.values())))
        if choice.engine == "cedar":
            return Material(modules={"rules.cedar": cedar_text(rules)}, data={}, revision=revision)
        return Material(modules={MODULE_FILE: data_text(MODULE_FILE)}, data=rules_data(rules), revision=revision)
    wanted = f".{choice.engine}"
    modules = {name: text for name, text in texts.items() if name.endswith(wanted)}
    if not modules:
        raise InvalidRequest(f"{choice.file}: engine {choice.engine} reads .toml or {wanted}")
    try:
        data = json.loads(texts.get(_DATA_FILE, "{}"))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{_DATA_FILE}: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequest(f"{_DATA_FILE} holds one object")
    return Material(modules=modules, data=data, revision=revision)
