"""JSON schemas of tools: what they refuse, and what is wrong with themselves."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from typing import Any, cast

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keys whose schemas hold for the same value as the schema around them."""

SLOW = ("pattern", "patternProperties", "uniqueItems")
"""Keys whose check can take much longer than their text."""

MOST_PARTS = 10_000
"""Parts of a schema, counted once for each way to them, up to which a check needs no deadline."""

LONGEST_MESSAGE = 500
"""Maximum characters of a message about arguments: it holds the wrong value, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """A schema that was read.

    Attributes:
        validator: Its validator of the package jsonschema.
        needs_deadline: Whether a check may take long.
    """

    validator: Any
    needs_deadline: bool


@lru_cache(maxsize=1024)
def read_schema(text: str) -> JsonSchema:
    """Reads the schema of a tool's arguments.

    Raises:
        ValueError: when it is no JSON schema of an object, or cannot be followed.
    """
    # The import takes a tenth of a second, which no run without tools pays.
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    kinds: Any = import_module("jsonschema.validators")
    read: Any = json.loads(text)
    if not isinstance(read, dict):
        raise ValueError(f"got a schema of type {type(read).__name__}; need a mapping, the schema of an object")
    read = cast("dict[str, Any]", read)
    known = isinstance(read.get("$schema", ""), str)
    kind = kinds.validator_for(read if known else {}, default=kinds.Draft202012Validator)
    try:
        kind.check_schema(read)
    except SchemaError as error:
        need = ", as Python's module re knows them" if error.validator == "format" else ""
        raise ValueError(f"got a schema that is no JSON schema: {_cut(error.message)}{need}") from error
    types = read.get("type", "object")
    if "object" not in ([types] if isinstance(types, str) else types):
        raise ValueError(f"got a schema of the type {types!r}; need an object, the arguments by name")
    # With a registry of its own it follows no reference to another document.
    validator = _exact(kind)(read, registry=cast("Any", Registry)())
    graph, nodes = _graph(read, kind.META_SCHEMA["$schema"])
    slow = any(key in node for node in nodes for key in SLOW) or _parts(graph, id(read)) > MOST_PARTS
    return JsonSchema(validator=validator, needs_deadline=slow)


@lru_cache
def _exact(kind: Any) -> Any:
    """The validator of a dialect, with multiples as decimals."""
    exact = {name: _multiple_of for name in ("multipleOf", "divisibleBy") if name in kind.VALIDATORS}
    return cast("Any", import_module("jsonschema.validators")).extend(kind, exact)


def problem_of(text: str, arguments: Mapping[str, object]) -> str:
    """What a schema refuses in arguments, as "PLACE: MESSAGE"; "" when they fit."""
    from jsonschema.exceptions import relevance

    try:
        error = max(read_schema(text).validator.iter_errors(dict(arguments)), key=relevance, default=None)
    except RecursionError:
        return "they are nested too deeply"
    if error is None:
        return ""
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    return _cut(f"{'arguments' + place + ': ' if place else ''}{error.message}")


def _cut(text: str) -> str:
    """A text without its middle where it is too long."""
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


def _multiple_of(validator: Any, step: Any, value: Any, schema: object) -> Iterator[Any]:
    """As decimals: 19.99 is a multiple of 0.01, though no float that is 19.99 is one of the float that is 0.01."""
    del schema
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(value, "number"):
        return
    finite = value - value == 0
    if not finite or Fraction(str(value)) % Fraction(str(step)):
        yield ValidationError(f"{value!r} is not a multiple of {step!r}")


def _graph(root: Any, dialect: str) -> tuple[dict[int, list[int]], list[dict[str, Any]]]:
    """The parts of a schema: by id those below each, through references too; and the parts.

    Raises:
        ValueError: when a reference leads nowhere, or back to itself for the same value.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(dialect)
    first = specification.create_resource(root)
    resolver = cast("Any", Registry)().with_resource("", first).resolver("")
    graph: dict[int, list[int]] = {}
    same: dict[int, list[int]] = {}
    nodes: list[dict[str, Any]] = []
    left: list[tuple[Any, Any]] = [(first, resolver.in_subresource(first))]
    while left:
        resource, resolver = left.pop()
        node = resource.contents
        if id(node) in graph or not isinstance(node, dict):
            continue
        node = cast("dict[str, Any]", node)
        nodes.append(node)
        targets: list[tuple[Any, Any]] = []
        for reference in (node[key] for key in REFERENCES if isinstance(node.get(key), str)):
            try:
                found = resolver.lookup(reference)
            # The library expects each part of a pointer to lead into a list or a mapping.
            except (Unresolvable, TypeError, ValueError, LookupError) as error:
                raise ValueError(f"got a schema with the reference {reference!r} to nothing; need one in it") from error
            targets.append((specification.create_resource(found.contents), found.resolver))
        inner = [(each, resolver.in_subresource(each)) for each in resource.subresources()]
        left += targets + inner
        own = {id(each) for key in SAME for each in _values(node.get(key))}
        referred = [id(each.contents) for each, _ in targets]
        graph[id(node)] = [*referred, *(id(each.contents) for each, _ in inner)]
        same[id(node)] = [*referred, *(each for each in graph[id(node)] if each in own)]
    try:
        TopologicalSorter(same).prepare()
    except CycleError as error:
        raise ValueError("got a schema with a $ref that leads back to itself; need an end") from error
    return graph, nodes


def _values(value: object) -> Sequence[object]:
    """A schema, or the schemas in a list or a mapping."""
    if isinstance(value, dict):
        found = cast("dict[str, object]", value)
        return [found, *found.values()]
    return cast("list[object]", value) if isinstance(value, list) else ()


def _parts(graph: Mapping[int, Sequence[int]], root: int) -> float:
    """The number of ways from the root to parts of a schema; infinite with a cycle."""
    counts: dict[int, int] = {}
    try:
        for node in TopologicalSorter(graph).static_order():
            counts[node] = 1 + sum(counts[each] for each in graph.get(node, ()))
    except CycleError:
        return float("inf")
    return counts.get(root, 1)
