"""The running API classes of an episode: loaded, copied, called, and hashed."""

import copy
import decimal
import json
import random
import threading
from array import array
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, TypeAlias, cast

from bough.tree import ToolCall
from bough.worlds.bfcl.functions import api_class, functions
from bough.worlds.bfcl.package import BACKEND, module
from bough.worlds.bfcl.safety import refuse

Apis: TypeAlias = Mapping[str, Any]
"""Instances by the names of their classes. They are values: a call changes a copy."""

LOCK = threading.RLock()
"""Held during calls: some functions change data of their module, and the precision of mpmath."""

UNHASHED = ("_api_description", "_last_modified")
"""Attributes that no function returns: a text, and the wall-clock time."""


def load_apis(classes: tuple[str, ...], config: Mapping[str, Any], *, long_context: bool) -> dict[str, Any]:
    """Returns instances of classes in the first state of an episode.

    Raises:
        ImportError: when bfcl-eval or mpmath is not installed.
    """
    apis: dict[str, Any] = {}
    for name in classes:
        apis[name] = api_class(name)()
        if name not in module(BACKEND).STATELESS_CLASSES:
            apis[name]._load_scenario(copy.deepcopy(config.get(name, {})), long_context=long_context)
    # The copy shares no object with the modules, whose long lists become parts of the instances.
    return copy_apis(apis)


def copy_apis(apis: Apis) -> dict[str, Any]:
    """A deep copy."""
    # `deepcopy` would copy the 625 numbers of a generator's state one by one.
    parts = [each for api in apis.values() for each in cast("dict[str, object]", vars(api)).values()]
    generators = [each for each in parts if isinstance(each, random.Random)]
    copies = {id(generator): copy.copy(generator) for generator in generators}
    return copy.deepcopy(dict(apis), copies)


def execute(apis: Apis, call: ToolCall) -> str:
    """Executes a call, which changes `apis`, and returns the result as the package writes it.

    A text is returned as it is, a mapping as JSON where it is serialisable, any other value by `str`. The text of an
    exception is a result too.
    """
    function = functions().get(call.name)
    if function is None or function.owner not in apis:
        return f"Error during execution: name '{call.name}' is not defined"
    try:
        refuse(apis[function.owner], call)
        defaults = {name: value for name, value in function.defaults.items() if name not in call.arguments}
        arguments = copy.deepcopy(defaults | dict(call.arguments))
        with _isolated():
            return _written(getattr(apis[function.owner], call.name)(**arguments))
    except Exception as error:  # as the package does: the agent reads it
        return f"Error during execution: {error}"


def hash_apis(apis: Apis) -> str:
    """Hashes all that functions can return: attributes, the current folder, and the state of random generators.

    The same state gives the same 32 hexadecimal digits on every machine. Time of the wall clock is left out.
    """
    digest = blake2b(digest_size=16)
    for part in _parts(apis, {}):
        digest.update(part)
    return digest.hexdigest()


@contextmanager
def _isolated() -> Generator[None]:
    """Runs one call at a time, and restores the precision that it sets."""
    mpmath = module("mpmath")
    with LOCK, mpmath.workdps(mpmath.mp.dps), decimal.localcontext():
        yield


def _written(result: object) -> str:
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(cast("object", result))
    return str(result)


def _parts(value: object, numbers: dict[int, int]) -> Iterator[bytes]:
    """The bytes of a value. An object that occurs again, such as a parent folder, is written as its number."""
    if value is None or isinstance(value, str | int | float):
        yield f"{type(value).__name__} {value!r}\n".encode()
        return
    if isinstance(value, random.Random):
        yield b"random " + array("Q", value.getstate()[1]).tobytes()
        return
    if id(value) in numbers:
        yield f"again {numbers[id(value)]}\n".encode()
        return
    if not isinstance(value, list | tuple | set | dict):
        numbers[id(value)] = len(numbers)
        value = {name: each for name, each in vars(value).items() if name not in UNHASHED}
    if isinstance(value, dict):
        yield f"mapping {len(cast('dict[Any, Any]', value))}\n".encode()
        for name, each in cast("dict[Any, Any]", value).items():
            yield f"{name!r}\n".encode()
            yield from _parts(each, numbers)
        return
    items = cast("list[Any]", sorted(cast("set[Any]", value), key=repr) if isinstance(value, set) else value)
    yield f"list {len(items)}\n".encode()
    for each in items:
        yield from _parts(each, numbers)
