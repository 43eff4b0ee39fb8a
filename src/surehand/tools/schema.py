"""From a record to the JSON Schema of a tool's arguments: strict, flat, and as short as it can be.

Every byte is read by a model, so titles and references are left out, and what several tools share is not repeated where
a word says it: an argument marked with `brief` is listed by its types and its description alone, and checked whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from surehand.model.record import Record

_PREFIX: Final = "#/$defs/"
_DROPPED: Final = ("title", "default")
_BRIEF: Final = "brief"


def brief(description: str, *types: str) -> msgspec.Meta:
    """Return the mark of an argument whose schema is its JSON types and a description that says the rest."""
    kinds: Any = types[0] if len(types) == 1 else list(types)
    return msgspec.Meta(description=description, extra_json_schema={_BRIEF: {"type": kinds}})


@cache
def input_schema(args: type[Record]) -> dict[str, Any]:
    """Return the schema of a tool's arguments; an object that takes nothing unknown."""
    (schema,), definitions = msgspec.json.schema_components([args], ref_template=_PREFIX + "{name}")
    flat: dict[str, Any] = _flat(schema, definitions, ())
    flat.pop("description", None)
    return flat


def _flat(part: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_flat(one, definitions, inside) for one in part]
    if not isinstance(part, dict):
        return part
    if isinstance(shown := part.get(_BRIEF), dict):
        return {**shown, "description": part["description"]}
    if (reference := part.get("$ref")) is not None:
        name = str(reference).removeprefix(_PREFIX)
        if name in inside:
            return {"type": "object"}  # a query inside a query: the text says how deep
        found = {key: value for key, value in definitions[name].items() if key != "description"}
        return _flat(
            {**found, **{key: value for key, value in part.items() if key != "$ref"}}, definitions, (*inside, name)
        )
    flat = {}
    for key, value in part.items():
        if key == "properties":
            flat[key] = {name: _flat(one, definitions, inside) for name, one in value.items()}
        elif key not in _DROPPED and not (key == "required" and not value):
            flat[key] = _flat(value, definitions, inside)
    return _without_null(flat)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """An argument that may be left out need not also take null."""
    options = schema.get("anyOf")
    if not isinstance(options, list):
        return schema
    kept = [option for option in options if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else {"anyOf": kept, **rest}
