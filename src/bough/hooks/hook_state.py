"""Saves the state of a hook as arrays and restores it: a dataclass of JSON values, arrays, trees and networks."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from bough.tree import (
    StageError,
    Task,
    Tree,
    cut_tree,
    describe,
    join_trees,
    json_column,
    read_json_column,
    tree_record,
)

FIELDS = "fields"
"""The name of the JSON column with all fields but the parts."""

POOL = "pool_"
"""Prefix of the columns that concatenate all arrays of one dtype: "pool_float64"."""


class StateMismatch(ValueError):
    """A stored state does not fit the hook; the message names the field that is missing, unknown or of another type."""


@runtime_checkable
class Part(Protocol):
    """A part of a state with arrays of its own, such as a network."""

    def state(self) -> Mapping[str, NDArray[Any]]:
        """All arrays, by name."""
        ...

    def load_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Restore the result of `state`, bit for bit."""
        ...


Made = TypeVar("Made", bound=Part)


class LazyPart(Generic[Made]):
    """A part that is built at its first use, such as a copy of the policy after its warm-up."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self.part: Made | None = None

    def __call__(self) -> Made:
        """The part."""
        if self.part is None:
            self.part = self._make()
        return self.part

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Returns the state of the part; empty before its first use."""
        return {} if self.part is None else self.part.state()

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""
        self.part = None
        if state:
            self().load_state(state)


def save(data: object) -> dict[str, NDArray[Any]]:
    """Returns a copy of a state as arrays.

    Args:
        data: A dataclass, or None for no state.

    Raises:
        StageError: when a field is no JSON value, array, tree, part, or dataclass or collection of them.
    """
    if data is None:
        return {}
    arrays, pools, record = dict[str, NDArray[Any]](), dict[str, list[NDArray[Any]]](), dict[str, object]()
    for name, value in _values(data):
        if isinstance(value, Part):
            arrays |= {f"{name}/{key}": np.array(each) for key, each in value.state().items()}
        else:
            record[name] = _encode(value, pools, f"{type(data).__name__}.{name}")
    arrays |= {f"{POOL}{dtype}": np.concatenate(pool) for dtype, pool in pools.items()}
    return arrays | {FIELDS: json_column(record)}


def restore(data: object, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restores the result of `save` into a new state of the same class, bit for bit.

    An array with elements in the new state keeps its shape; an empty one may be stored with any length.

    Raises:
        StateMismatch: when fields are missing or unknown, or a value is of another type or shape.
    """
    if data is None or FIELDS not in arrays:
        if data is not None or arrays:
            raise StateMismatch(f"got {sorted(arrays)}; need the state that this version saves")
        return
    kind, left = type(data).__name__, dict(arrays)
    record: object = read_json_column(left.pop(FIELDS))
    pools = {name: left.pop(name) for name in arrays if name.startswith(POOL)}
    reader = _Reader({name.removeprefix(POOL): pool for name, pool in pools.items()})
    parts = {name: value for name, value in _values(data) if isinstance(value, Part)}
    plain = {name: value for name, value in _values(data) if name not in parts}
    found = reader.fields(type(data), record, kind, plain)
    reader.end(kind)
    for name, part in parts.items():
        own = {key: left.pop(key) for key in arrays if key.startswith(f"{name}/")}
        try:
            part.load_state({key.removeprefix(f"{name}/"): each for key, each in own.items()})
        except (KeyError, ValueError) as error:
            raise StateMismatch(f"{kind}.{name}: {error}") from error
    if left:
        raise StateMismatch(
            f"{kind}: got the unknown {next(iter(left))!r}; need the fields {[name for name, _ in _values(data)]}"
        )
    for name, value in found.items():
        setattr(data, name, value)


def _values(data: object) -> list[tuple[str, object]]:
    return [(each.name, getattr(data, each.name)) for each in fields(cast("Any", data)) if each.init]


def _encode(value: object, pools: dict[str, list[NDArray[Any]]], where: str) -> object:
    """A value as JSON; the elements of its arrays go to the pools of their dtypes."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        pools.setdefault(array.dtype.name, []).append(array.ravel())
        return [array.dtype.name, *array.shape]
    if isinstance(value, Task):
        return value.record()
    if isinstance(value, Tree):
        return [tree_record(value), _encode(join_trees([value]), pools, where)]
    if is_dataclass(value):
        return {name: _encode(each, pools, f"{where}.{name}") for name, each in _values(value)}
    if type(value) is dict:
        # Of a defaultdict or a Counter a plain dict would be restored.
        pairs = cast("Mapping[object, object]", value).items()
        return [[_encode(key, pools, where), _encode(each, pools, where)] for key, each in pairs]
    if isinstance(value, deque):
        queue = cast("deque[object]", value)
        return [queue.maxlen, *(_encode(each, pools, where) for each in queue)]
    if isinstance(value, list | tuple):
        return [_encode(each, pools, where) for each in cast("Sequence[object]", value)]
    raise StageError(f"{where}: got {describe(value)}; need JSON values, arrays, trees, and dataclasses of them")


class _Reader:
    """Reads values in the order in which they were encoded."""

    def __init__(self, pools: Mapping[str, NDArray[Any]]) -> None:
        self._pools = pools
        self._taken = dict.fromkeys(pools, 0)

    def fields(self, kind: type, record: object, where: str, now: Mapping[str, object]) -> dict[str, object]:
        """The fields of a dataclass; `now` has their values in a new state."""
        if not isinstance(record, dict) or set(cast("Mapping[str, object]", record)) != set(now):
            got = sorted(cast("Mapping[str, object]", record)) if isinstance(record, dict) else record
            raise StateMismatch(f"{where}: got the fields {got}; need {sorted(now)}")
        hints, values = get_type_hints(kind), cast("Mapping[str, object]", record)
        return {name: self.value(hints[name], values[name], f"{where}.{name}", now[name]) for name in values}

    def value(self, kind: Any, coded: object, where: str, now: object = None) -> Any:
        """A value of a type."""
        origin, args = get_origin(kind) or kind, get_args(kind)
        if origin in (Union, UnionType):
            if coded is None and NoneType in args:
                return None
            some = [each for each in args if each is not NoneType]
            return self._first(some, coded, where, now)
        if origin is Literal and any(type(coded) is type(each) and coded == each for each in args):
            return coded
        if origin is np.ndarray:
            return self._array(coded, where, now)
        if origin is Task and isinstance(coded, dict):
            return Task.read(cast("Mapping[str, object]", coded))
        if origin is Tree and isinstance(coded, list):
            record, columns = cast("list[Any]", coded)
            return cut_tree(self.value(dict[str, NDArray[Any]], columns, where), 0, record)
        if is_dataclass(origin):
            names = [each.name for each in fields(origin) if each.init]
            plain = {name: getattr(now, name, None) for name in names}
            return cast("Any", origin)(**self.fields(cast("type", origin), coded, where, plain))
        if origin in (list, tuple, deque, dict, Mapping, Sequence) and isinstance(coded, list):
            return self._several(origin, args, cast("list[Any]", coded), where)
        if kind in (Any, object) or type(coded) is kind or (kind is float and type(coded) is int):
            return coded
        raise StateMismatch(f"{where}: got {coded!r:.40}; need {getattr(kind, '__name__', kind)}")

    def _first(self, kinds: Sequence[Any], coded: object, where: str, now: object) -> Any:
        """A value of the first of some types that it fits."""
        for kind in kinds[:-1]:
            taken = dict(self._taken)
            try:
                return self.value(kind, coded, where, now)
            except StateMismatch:
                self._taken = taken
        return self.value(kinds[-1], coded, where, now)

    def _several(self, origin: Any, args: Sequence[Any], coded: list[Any], where: str) -> Any:
        args = args or ((Any, ...) if origin is tuple else (Any, Any))
        if origin is deque:
            length, *items = coded or [None]
            return deque((self.value(args[0], each, where) for each in items), maxlen=length)
        if origin in (dict, Mapping):
            return {self.value(args[0], key, where): self.value(args[1], each, where) for key, each in coded}
        if origin is tuple and Ellipsis not in args:
            if len(args) != len(coded):
                raise StateMismatch(f"{where}: got {len(coded)} values; need {len(args)}")
            return tuple(self.value(own, each, where) for own, each in zip(args, coded, strict=True))
        made: Iterator[Any] = (self.value(args[0], each, where) for each in coded)
        return tuple(made) if origin is tuple else list(made)

    def _array(self, coded: object, where: str, now: object) -> NDArray[Any]:
        dtype, *shape = cast("list[Any]", coded if isinstance(coded, list) and coded else [""])
        first = self._taken.get(dtype, 0)
        size = int(np.prod(shape, dtype=np.int64))
        if dtype not in self._pools or first + size > len(self._pools[dtype]):
            raise StateMismatch(f"{where}: got {coded!r:.40}; need an array whose elements are in the checkpoint")
        self._taken[dtype] = first + size
        found = self._pools[dtype][first : first + size].reshape(shape).copy()
        if isinstance(now, np.ndarray):
            fixed = cast("NDArray[Any]", now)
            same = found.shape == fixed.shape if fixed.size else found.shape[1:] == fixed.shape[1:]
            if found.dtype != fixed.dtype or not same:
                raise StateMismatch(f"{where}: got {describe(found)}; need {describe(fixed)}")
        return found

    def end(self, where: str) -> None:
        """Check that all elements of the pools were read."""
        for dtype, taken in self._taken.items():
            if taken != len(self._pools[dtype]):
                raise StateMismatch(f"{where}: got {len(self._pools[dtype])} elements of {dtype}; need {taken}")
