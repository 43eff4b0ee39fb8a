"""Later calls of a sequence name parts of earlier results: `${name.path}` in their arguments.

A text that is one reference and nothing else becomes the value itself, of whatever type. Inside a longer text only a
text, a number or a truth value may stand. `$${` is a plain `${`. Pure: no call is made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from surehand.errors import InvalidRequest

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)

#: No list has more; digits without end are no number in Python.
_PLACE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_REFERENCE: Final = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")


def names_in(value: Any) -> Iterator[str]:
    """Return the names that a value's references begin with.

    Raises:
        InvalidRequest: a reference that cannot be read.
    """
    if isinstance(value, str):
        for found in _REFERENCE.finditer(value):
            if found[1] is None:
                yield _split(found[2])[0]
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from names_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from names_in(one)


def fill(value: Any, results: Mapping[str, Any]) -> Any:
    """Return a value with every reference replaced by what it names.

    Raises:
        InvalidRequest: a reference names nothing, or something that cannot stand inside a text.
    """
    if isinstance(value, str):
        return _fill_text(value, results)
    if isinstance(value, Mapping):
        return {name: fill(one, results) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, results) for one in value]
    return value


def _fill_text(text: str, results: Mapping[str, Any]) -> Any:
    whole = _REFERENCE.fullmatch(text)
    if whole is not None and whole[1] is None:
        return _look_up(whole[2], results)

    def inside(found: re.Match[str]) -> str:
        return "${" if found[1] is not None else _as_text(found[2], _look_up(found[2], results))

    return _REFERENCE.sub(inside, text)


def _as_text(path: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    kind = "nothing" if value is None else "a list" if isinstance(value, list) else "an object"
    raise InvalidRequest(f"${{{path}}} is {kind}, which cannot stand inside a text", fix="let it stand alone")


def _look_up(path: str, results: Mapping[str, Any]) -> Any:
    name, *parts = _split(path)
    if name not in results:
        raise InvalidRequest(f"${{{path}}}: no earlier call is named {name}")
    value = results[name]
    for part in parts:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and _PLACE.fullmatch(part) is not None and int(part) < len(value):
            value = value[int(part)]
        else:
            raise InvalidRequest(f"${{{path}}}: the result has no {part}", fix=_there_is(value))
    return value


def _there_is(value: Any) -> str | None:
    if isinstance(value, Mapping) and value:
        return f"it has {', '.join(list(value)[:16])}"
    return f"it has {len(value)} entries" if isinstance(value, list) else None


def _split(path: str) -> list[str]:
    parts = path.split(".")
    if NAME.fullmatch(parts[0]) is None or not all(parts):
        raise InvalidRequest(f"${{{path}}} is no reference", fix="${name.field.0}")
    return parts
