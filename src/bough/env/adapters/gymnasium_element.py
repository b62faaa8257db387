"""Elements of Gymnasium's spaces, from JSON."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np


def discrete_elements(space: Any) -> range | None:
    """The elements of a discrete space, from its start; None for another space."""
    count = getattr(space, "n", None)
    if count is None or getattr(space, "shape", ()) != ():
        return None
    start = int(getattr(space, "start", 0))
    return range(start, start + int(count))


def element_of(space: Any, data: object) -> Any:
    """The element of a space that JSON data describes.

    A `Dict` is an object with the same keys. A `Tuple` and a `Sequence` are lists. A `OneOf` is a list of the number of
    a space and its element. A `Graph` is an object with "nodes", and with "edges" and "edge_links" where it has edges.
    Arrays are nested lists of numbers, which are integers in a space of integers.

    Args:
        space: A space of Gymnasium.
        data: What `json.loads` returned.

    Raises:
        ValueError: when the data is no element of the space.
    """
    try:
        found = _decoded(space, data)
        inside = bool(space.contains(found))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, AssertionError) as error:
        raise _outside(space, data) from error
    if not inside:
        raise _outside(space, data)
    return found


def _decoded(space: Any, data: object) -> Any:
    decode = _DECODERS.get(type(space).__name__)
    return space.from_jsonable([data])[0] if decode is None else decode(space, data)


def _integer(space: Any, data: object) -> int:
    if type(data) is not int:
        raise _outside(space, data)
    return data


def _integers(space: Any, data: object) -> Any:
    return _cast(space, data, "iu")


def _bits(space: Any, data: object) -> Any:
    return _cast(space, data, "iub")


def _numbers(space: Any, data: object) -> Any:
    return _cast(space, data, "iuf" if np.issubdtype(space.dtype, np.floating) else "iub")


def _cast(space: Any, data: object, kinds: str) -> Any:
    """An array of the space's type; the kinds are those of `numpy.dtype.kind` that the data may have."""
    found = np.asarray(data)
    if found.size and found.dtype.kind not in kinds:
        raise _outside(space, data)
    cast_found = found.astype(space.dtype)
    if space.dtype.kind != "f" and not np.array_equal(cast_found, found):
        raise _outside(space, data)
    return cast_found


def _dictionary(space: Any, data: object) -> dict[Any, Any]:
    fields = _object(space, data)
    if {*fields} != {*map(str, space.spaces)}:
        raise _outside(space, data)
    return {key: element_of(part, fields[str(key)]) for key, part in space.spaces.items()}


def _tuple(space: Any, data: object) -> tuple[Any, ...]:
    return tuple(element_of(part, each) for part, each in zip(space.spaces, _list(space, data), strict=True))


def _sequence(space: Any, data: object) -> Any:
    parts = _list(space, data)
    if space.stack:
        return _stacked(space.feature_space, parts)
    return tuple(element_of(space.feature_space, each) for each in parts)


def _one_of(space: Any, data: object) -> tuple[int, Any]:
    number, value = _list(space, data)
    if type(number) is not int or not 0 <= number < len(space.spaces):
        raise _outside(space, data)
    return number, element_of(space.spaces[number], value)


def _graph(space: Any, data: object) -> Any:
    from gymnasium.spaces import GraphInstance

    fields = _object(space, data)
    nodes = _stacked(space.node_space, _list(space, fields["nodes"]))
    if {*fields} == {"nodes"}:
        return GraphInstance(nodes, None, None)
    if {*fields} != {"nodes", "edges", "edge_links"} or space.edge_space is None:
        raise _outside(space, data)
    links = np.asarray(fields["edge_links"])
    return GraphInstance(nodes, _stacked(space.edge_space, _list(space, fields["edges"])), links)


def _stacked(space: Any, parts: list[object]) -> Any:
    """The elements of a space as one element of the space of batches."""
    from gymnasium.vector.utils import concatenate, create_empty_array

    utilities = cast("Any", (concatenate, create_empty_array))
    join, empty = utilities
    return join(space, [element_of(space, each) for each in parts], empty(space, len(parts)))


def _object(space: Any, data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise _outside(space, data)
    return cast("Mapping[str, object]", data)


def _list(space: Any, data: object) -> list[object]:
    if not isinstance(data, list):
        raise _outside(space, data)
    return cast("list[object]", data)


def _outside(space: Any, data: object) -> ValueError:
    return ValueError(f"got {type(data).__name__} data; need the JSON of an element of {space}")


_DECODERS: Mapping[str, Callable[[Any, object], Any]] = {
    "Box": _numbers,
    "Dict": _dictionary,
    "Discrete": _integer,
    "Graph": _graph,
    "MultiBinary": _bits,
    "MultiDiscrete": _integers,
    "OneOf": _one_of,
    "Sequence": _sequence,
    "Tuple": _tuple,
}
