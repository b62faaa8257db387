"""Random arguments of tools, from their JSON schemas."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, cast

Schema = Mapping[str, Any]

DEEPEST = 4
"""Arguments nest no deeper; below it, optional parts are left out."""


def arguments_for(schema: Schema, rng: Random, words: Sequence[str]) -> dict[str, object]:
    """Arguments that fit the schema of a tool, as far as it uses types, enum, ranges, lengths and references.

    Args:
        schema: The schema of an object.
        rng: Source of random choices.
        words: Texts for arguments of type string, such as words of the observations.
    """
    value = _value(schema, schema, rng, words, 0)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _value(schema: Schema, root: Schema, rng: Random, words: Sequence[str], depth: int) -> object:
    """A value that fits a schema."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "examples"):
        if schema.get(key):
            return rng.choice(list(schema[key]))
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _value(rng.choice(list(schema[key])), root, rng, words, depth)
    if schema.get("allOf"):
        merged = {name: each for part in schema["allOf"] for name, each in _resolved(part, root).items()}
        return _value(
            {**{name: each for name, each in schema.items() if name != "allOf"}, **merged}, root, rng, words, depth
        )
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = rng.choice(cast("list[str]", kind)) if isinstance(kind, list) else kind
    if kind == "object":
        return _object(schema, root, rng, words, depth)
    if kind == "array":
        return _array(schema, root, rng, words, depth)
    return _scalar(str(kind), schema, rng, words)


def _scalar(kind: str, schema: Schema, rng: Random, words: Sequence[str]) -> object:
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10))
        low += kind == "integer" and "exclusiveMinimum" in schema
        high -= kind == "integer" and "exclusiveMaximum" in schema
        return rng.randint(int(low), max(int(low), int(high))) if kind == "integer" else rng.uniform(low, high)
    text = rng.choice(words) if words else "a"
    text = text.ljust(int(schema.get("minLength", 0)), "a")
    return text[: int(schema.get("maxLength", len(text)))]


def _object(schema: Schema, root: Schema, rng: Random, words: Sequence[str], depth: int) -> dict[str, object]:
    required = set(cast("Sequence[str]", schema.get("required", ())))
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    return {
        name: _value(each, root, rng, words, depth + 1)
        for name, each in properties.items()
        if name in required or (depth < DEEPEST and rng.random() < 0.5)
    }


def _array(schema: Schema, root: Schema, rng: Random, words: Sequence[str], depth: int) -> list[object]:
    least = int(schema.get("minItems", 0))
    most = int(schema.get("maxItems", max(least, 2)))
    count = least if depth >= DEEPEST else rng.randint(least, max(least, min(most, least + 2)))
    items = schema.get("items")
    item: Schema = cast("Schema", items) if isinstance(items, Mapping) else {}
    return [_value(item, root, rng, words, depth + 1) for _ in range(count)]


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that a reference inside the same document names."""
    for _ in range(DEEPEST):
        name = schema.get("$ref")
        if not isinstance(name, str) or not name.startswith("#/"):
            return schema
        found: Any = root
        for part in name[2:].split("/"):
            found = cast("Mapping[str, Any]", found).get(part, {})
        schema = found
    return {}
