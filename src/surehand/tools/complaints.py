"""What is wrong with a call's arguments, in words that lead to a call that works (JSON-RPC −32602).

Says which argument, what is expected there with an example, what a misspelt name was probably meant to be, and which
names there are. Bounded whatever the arguments hold; of these only a name's beginning and single numbers are repeated.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import NODEFAULT, inspect

from surehand.model.record import Record

_NAME_CHARS_MAX: Final = 64
_CHARS_MAX: Final = 1_000
_PLACE: Final = re.compile(r" - at `(\$.*)`\Z", re.DOTALL)
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[([^\]]*)\]")
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
#: Values that say more than their type does, by the name of the argument or of the record.
_EXAMPLES: Final[dict[str, Any]] = {
    "target": "e17",
    "scope": "e17",
    "to": "e17",
    "keys": ["ctrl+s"],
    "modifiers": ["ctrl"],
    "region": [0, 0, 400, 300],
    "state": {"checked": True},
    "app": "mousepad",
    "arguments": ["notes.txt"],
    "Find": {"role": "button", "name": "Save"},
    "Expect": {"text": "Saved"},
    "Until": {"exists": {"role": "button", "name": "Save"}},
    "Step": {"do": "invoke", "target": "e17"},
    "Filter": {"role": "button"},
}
_KINDS: Final = {str: "text", bool: "true or false", dict: "an object", type(None): "null"}


def explain(args: type[Record], arguments: Mapping[str, Any], message: str) -> str:
    """Return what to change.

    Args:
        args: The record that the arguments should have become.
        arguments: What was given.
        message: What the decoder said.
    """
    found = _PLACE.search(message)
    steps = _steps(found[1] if found else "$")
    kind, value = _at(inspect.type_info(args), arguments, steps)
    where = _where(steps)
    if message.startswith("Object contains unknown field") and (record := _record(kind, value)) is not None:
        said = _unknown(record, value, where)
    elif (missing := _MISSING.match(message)) is not None and (record := _record(kind, value)) is not None:
        field = next(one for one in record.fields if one.encode_name == missing[1])
        example = json.dumps({missing[1]: _example(missing[1], field.type)}, ensure_ascii=False)
        said = f"{_of(where)}{missing[1]} is missing; for example {example}"
    elif steps:
        name = next((step for step in reversed(steps) if isinstance(step, str)), "")
        example = json.dumps(_example(name if steps[-1] == name else "", kind), ensure_ascii=False)
        said = f"{where}: expected {_expected(kind)}, not {_given(value, kind)}; for example {example}"
    else:
        said = message
    return said if len(said) <= _CHARS_MAX else said[: _CHARS_MAX - 1] + "…"


def _steps(path: str) -> list[str | int]:
    """Return a path's steps; what stands for any key of an object is an empty name."""
    steps: list[str | int] = []
    for name, place in _STEP.findall(path):
        steps.append(int(place) if place.isdecimal() else name)
    return steps


def _where(steps: list[str | int]) -> str:
    words = [f"[{step}]" if isinstance(step, int) else f".{step}" if step else "[…]" for step in steps]
    return "".join(words).removeprefix(".")


def _of(where: str) -> str:
    return f"{where}: " if where else ""


def _at(kind: inspect.Type, value: Any, steps: list[str | int]) -> tuple[inspect.Type, Any]:
    """Return what is expected at a place, and what was given there."""
    for step in steps:
        inner = next((one for one in (_inside(option, step) for option in _options(kind)) if one is not None), None)
        if inner is None:
            return inspect.AnyType(), value
        kind, value = inner, _part(value, step)
    return kind, value


def _bare(kind: inspect.Type) -> inspect.Type:
    return _bare(kind.type) if isinstance(kind, inspect.Metadata) else kind


def _options(kind: inspect.Type) -> list[inspect.Type]:
    """Return what may be given, without what only leaves it out."""
    kind = _bare(kind)
    if not isinstance(kind, inspect.UnionType):
        return [kind]
    return [_bare(one) for one in kind.types if not isinstance(one, inspect.NoneType)]


def _inside(kind: inspect.Type, step: str | int) -> inspect.Type | None:
    if isinstance(kind, inspect.StructType):
        return next((field.type for field in kind.fields if field.encode_name == step), None)
    if isinstance(kind, inspect.DictType) and step == "":
        return kind.value_type
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
        return kind.item_type
    if isinstance(kind, inspect.TupleType) and isinstance(step, int) and step < len(kind.item_types):
        return kind.item_types[step]
    return None


def _part(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(step) if step != "" else next(iter(value.values()), None)
    return value[step] if isinstance(value, list | tuple) and isinstance(step, int) and step < len(value) else None


def _record(kind: inspect.Type, value: Any) -> inspect.StructType | None:
    """Return the record that an object was to become: of several the one whose tag it has, else the first."""
    records = [one for one in _options(kind) if isinstance(one, inspect.StructType)]
    tagged = [one for one in records if isinstance(value, Mapping) and one.tag == value.get(one.tag_field)]
    return next(iter([*tagged, *records]), None)


def _unknown(record: inspect.StructType, value: Any, where: str) -> str:
    names = [field.encode_name for field in sorted(record.fields, key=lambda field: not _needed(field))]
    tags = {record.tag_field} - {None}
    given = [name for name in value if name not in {*names, *tags}] if isinstance(value, Mapping) else []
    wrong = str(given[0]) if given else ""
    near = difflib.get_close_matches(wrong[:_NAME_CHARS_MAX], names, 1)
    meant = f", perhaps {near[0]}" if near else ""
    return f"{_of(where)}there is no {_short(wrong)!r}{meant}; there are {', '.join(names) or 'no arguments'}"


def _short(text: str) -> str:
    return text if len(text) <= _NAME_CHARS_MAX else text[: _NAME_CHARS_MAX - 1] + "…"


def _expected(kind: inspect.Type) -> str:
    options = _options(kind)
    if len(options) > 1:
        return " or ".join(dict.fromkeys(_expected(one) for one in options))
    said = "text"
    match kind := options[0]:
        case inspect.BoolType():
            said = "true or false"
        case inspect.IntType() | inspect.FloatType():
            said = ("a whole number" if isinstance(kind, inspect.IntType) else "a number") + _bounds(kind)
        case inspect.LiteralType():
            said = ("one of " if len(kind.values) > 1 else "") + ", ".join(json.dumps(one) for one in kind.values)
        case inspect.ListType() | inspect.VarTupleType():
            said = f"a list{_count(kind)}: {_each(kind.item_type)}"
        case inspect.TupleType():
            said = f"a list of {len(kind.item_types)}: {_each(kind.item_types[0])}"
        case inspect.StructType():
            said = "an object with " + ", ".join(field.encode_name for field in kind.fields)
        case inspect.DictType():
            said = f"an object of {_expected(kind.value_type)}"
    return said


def _each(kind: inspect.Type) -> str:
    return (
        "objects" if any(isinstance(one, inspect.StructType) for one in _options(kind)) else f"each {_expected(kind)}"
    )


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    low = kind.ge if kind.ge is not None else kind.gt
    low_word = "from" if kind.ge is not None else "above"
    words = [f" {low_word} {low}"] if low is not None else []
    return "".join([*words, *([f" to {kind.le}"] if kind.le is not None else [])])


def _count(kind: inspect.ListType | inspect.VarTupleType) -> str:
    if kind.min_length is None and kind.max_length is None:
        return ""
    return f" of {kind.min_length or 0} to {kind.max_length}" if kind.max_length else f" of at least {kind.min_length}"


def _given(value: Any, kind: inspect.Type) -> str:
    words = [one for option in _options(kind) if isinstance(option, inspect.LiteralType) for one in option.values]
    if isinstance(value, str) and words:
        near = difflib.get_close_matches(value[:_NAME_CHARS_MAX], [str(one) for one in words], 1)
        return json.dumps(_short(value)) + (f", perhaps {json.dumps(near[0])}" if near else "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _short(repr(value))
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return _KINDS.get(type(value), "that")


def _example(name: str, kind: inspect.Type) -> Any:
    options = _options(kind)
    if name in _EXAMPLES and not isinstance(options[0], inspect.BoolType):
        return _EXAMPLES[name]
    found: Any = name or "text"
    match kind := next((one for one in options if isinstance(one, inspect.StructType)), options[0]):
        case inspect.BoolType():
            found = True
        case inspect.IntType() | inspect.FloatType():
            found = kind.ge if kind.ge is not None else 1
        case inspect.LiteralType():
            found = kind.values[0]
        case inspect.ListType() | inspect.VarTupleType():
            found = [_example("", kind.item_type)]
        case inspect.TupleType():
            found = [_example("", one) for one in kind.item_types]
        case inspect.StructType():
            needed = {one.encode_name: _example(one.encode_name, one.type) for one in kind.fields if _needed(one)}
            found = _EXAMPLES.get(kind.cls.__name__, needed)
        case inspect.DictType():
            found = {"name": _example("", kind.value_type)}
    return found


def _needed(field: inspect.Field) -> bool:
    return field.default is NODEFAULT and field.default_factory is NODEFAULT
