"""Checks of the settings of adapters: functions, environments of other libraries and addresses of servers."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from bough.piece import Bounds
from bough.usercode.address import address_of, find_function
from bough.usercode.origin import describe


def maker_address(setting: str, make: object) -> str:
    """The address of a function or a class that returns an environment.

    Raises:
        ValueError: when `make` is another object, such as an environment, or is not at the top of a module.
    """
    if not (inspect.isfunction(make) or inspect.isclass(make) or inspect.isbuiltin(make)):
        kind = type(make).__name__
        raise ValueError(
            f"{setting}: got an object of the class {kind}; need a function or a class, since each episode makes its "
            f"own environment: write `def make(): return {kind}(...)` at the top of a file, and give `make`"
        )
    try:
        return address_of(make)
    except ValueError as error:
        raise ValueError(f"{setting}: {error}") from error


def make_env_at(setting: str, address: str, arguments: Mapping[str, Any]) -> Any:
    """The environment that the function of an address returns.

    Raises:
        ValueError: when there is no such function, or it does not take the arguments.
    """
    try:
        make = find_function(address)
    except (ValueError, ImportError, OSError) as error:
        raise ValueError(f"{setting}: {describe(error)}") from error
    return make_env(setting, make, arguments)


def make_env(setting: str, make: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The environment that a function returns.

    Raises:
        ValueError: when the function does not take the arguments.
    """
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as error:
        owner = setting.rpartition(".")[0]
        raise ValueError(
            f"{owner}.arguments: got {dict(arguments)!r}; {make.__name__} does not take them ({error}): need its "
            "keyword arguments"
        ) from error
    except ValueError:
        pass  # a builtin without a signature; the call itself checks the arguments
    return make(**arguments)


def check_gymnasium(setting: str, env: Any) -> None:
    """Checks that an object has the interface of a Gymnasium environment.

    Raises:
        ValueError: when it is one of PettingZoo, an older one whose `reset` takes no seed, or something else.
    """
    kind = type(env).__name__
    if hasattr(env, "possible_agents"):
        raise ValueError(
            f"{setting}: got {kind}, an environment of PettingZoo for several agents; need one of Gymnasium: use "
            "`pettingzoo_env` in place of `gymnasium_env`"
        )
    if lacking := [name for name in ("reset", "step", "action_space") if not hasattr(env, name)]:
        raise ValueError(f"{setting}: got {kind} without {', '.join(lacking)}; need an environment on gymnasium.Env")
    parameters = inspect.signature(env.reset).parameters
    if "seed" not in parameters and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        raise ValueError(
            f"{setting}: got {kind}, whose reset takes no seed; need `reset(self, *, seed=None, options=None)`, as in "
            "gymnasium.Env"
        )


def reset_pair(setting: str, env: object, found: object) -> tuple[Any, Mapping[str, Any]]:
    """The observation and the info that a Gymnasium environment's `reset` returns.

    Raises:
        ValueError: when it returns something else.
    """
    observation, info = _values(f"{setting}: reset", env, found, "(observation, info): return `observation, {}`", 2)
    return observation, info


def step_values(setting: str, env: object, found: object) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
    """The five values that a Gymnasium environment's `step` returns.

    Raises:
        ValueError: when it returns something else.
    """
    need = (
        "(observation, reward, terminated, truncated, info): in place of `done`, return whether the task ended and "
        "whether a limit did"
    )
    observation, reward, terminated, truncated, info = _values(f"{setting}: step", env, found, need, 5)
    return observation, reward, terminated, truncated, info


def _values(call: str, env: object, found: object, need: str, count: int) -> tuple[Any, ...]:
    """The `count` values that a call returned, a dict at the end.

    Raises:
        ValueError: when it returned something else.
    """
    kind = type(found).__name__
    values = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else None
    if values is not None and len(values) == count and isinstance(values[-1], Mapping):
        return values
    got = f"one {kind}" if values is None else f"{len(values)} values"
    raise ValueError(f"{call} of {type(env).__name__} returned {got}; need {need}; info is a dict")


def check_aec(setting: str, env: object) -> None:
    """Checks that an object has the interface of an AEC environment of PettingZoo.

    Raises:
        ValueError: when it is one of Gymnasium, a parallel one, or something else.
    """
    kind = type(env).__name__
    if not hasattr(env, "possible_agents"):
        wanted = "an AEC environment of PettingZoo, with `possible_agents`"
        if hasattr(env, "action_space") and hasattr(env, "reset"):
            wanted += ": for one of Gymnasium use `gymnasium_env` in place of `pettingzoo_env`"
        raise ValueError(f"{setting}: got {kind}; need {wanted}")
    if lacking := [name for name in ("observe", "agent_iter") if not hasattr(env, name)]:
        raise ValueError(
            f"{setting}: got {kind} without {', '.join(lacking)}, an environment whose agents act at once; need one "
            "whose agents act in turn (AEC): return `pettingzoo.utils.conversions.parallel_to_aec(env)`"
        )


def Url(*schemes: str) -> Bounds:  # noqa: N802
    """Addresses of servers, with one of the schemes, a host, and a port that is a number or none."""
    need = f"an address such as {schemes[0]}://host:8000"

    def wrong(value: object) -> str:
        url = cast("str", value)
        if _is_url(url, schemes):
            return ""
        fix = f": did you mean {schemes[0]}://{url}" if url and "://" not in url else ""
        return f"got {url!r}; need {need}{fix}"

    return Bounds(need, wrong)


def _is_url(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # a ValueError for a port that is no number
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.hostname)
