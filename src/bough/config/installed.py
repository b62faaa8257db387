"""Worlds and pieces of other installed packages, by their entry points `bough.worlds` and `bough.pieces`."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias

from bough.config.config import ConfigError
from bough.usercode.origin import describe

Group: TypeAlias = Literal["bough.worlds", "bough.pieces"]
"""Functions that return a `World`; dataclasses, and functions that return one."""

NEEDS: Mapping[Group, tuple[str, Callable[[object], bool]]] = {
    "bough.worlds": ("a function that returns a World", inspect.isfunction),
    "bough.pieces": (
        "a dataclass, or a function that returns one",
        lambda found: inspect.isfunction(found) or (inspect.isclass(found) and is_dataclass(found)),
    ),
}
"""The objects of a group: what they are, and the test."""


@cache
def installed(group: Group) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of a group by name; several where packages have one name in common."""
    found: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for each in entry_points(group=group):
        # A package that is installed twice, as by an editable installation, is one.
        found.setdefault(each.name, {})[_owner(each), each.value] = each
    return {name: tuple(each for _, each in sorted(found[name].items())) for name in sorted(found)}


def load_installed(group: Group, name: str, where: str, *, is_own: bool) -> Any:
    """The object of an entry point.

    Args:
        group: The group.
        name: A name of `installed(group)`.
        where: The field or option, for messages.
        is_own: Whether Bough has something of this name.

    Raises:
        ConfigError: when the name is not one package's alone, or the object cannot be imported or is none of the group.
    """
    offer, *others = installed(group)[name]
    if is_own or others:
        owners = [*(["Bough"] if is_own else []), *map(_shown, (offer, *others))]
        raise ConfigError(
            f"{where}: got {name}, a name of {' and of '.join(owners)} (entry points {group}); "
            f"need a name of one package: uninstall a package, or rename its entry point"
        )
    what = f"{where}: {name} of {_shown(offer)} (entry point {group})"
    try:
        found = offer.load()
    except (Exception, SystemExit) as error:  # code of the package runs
        raise ConfigError(f"{what} cannot be imported: {describe(error)}; repair or uninstall the package") from error
    need, fits = NEEDS[group]
    if not fits(found):
        raise ConfigError(f"{what} is {found!r:.100}; need {need}: repair or uninstall the package")
    return found


def loadable(group: Group) -> Iterator[tuple[str, Any]]:
    """The objects of a group by name, without names of several packages and objects that `load_installed` refuses."""
    for name in installed(group):
        try:
            yield name, load_installed(group, name, group, is_own=False)
        except ConfigError:
            continue


def _owner(offer: EntryPoint) -> str:
    return offer.module.partition(".")[0] if offer.dist is None else offer.dist.name


def _shown(offer: EntryPoint) -> str:
    return f"the package {_owner(offer)}"
