"""Worlds and pieces of other installed packages, by their entry points `bough.worlds` and `bough.pieces`."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias

from bough.config.config import ConfigError
from bough.usercode.origin import describe

Group: TypeAlias = Literal["bough.worlds", "bough.pieces"]
"""Functions that return a `World`; dataclasses, and functions that return one."""


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
        ConfigError: when the name is not one package's alone, or the object cannot be imported.
    """
    offer, *others = installed(group)[name]
    if is_own or others:
        owners = [*(["Bough"] if is_own else []), *map(_shown, (offer, *others))]
        raise ConfigError(
            f"{where}: got {name}, a name of {' and of '.join(owners)} (entry points {group}); "
            f"need a name of one package: uninstall a package, or rename its entry point"
        )
    try:
        return offer.load()
    except Exception as error:  # code of the package runs
        raise ConfigError(
            f"{where}: {name} of {_shown(offer)} (entry point {group}) cannot be imported: {describe(error)}; "
            "repair or uninstall the package"
        ) from error


def loadable(group: Group) -> Iterator[tuple[str, Any]]:
    """The objects of a group by name, without names of several packages and objects that cannot be imported."""
    for name in installed(group):
        try:
            yield name, load_installed(group, name, group, is_own=False)
        except ConfigError:
            continue


def _owner(offer: EntryPoint) -> str:
    return offer.module.partition(".")[0] if offer.dist is None else offer.dist.name


def _shown(offer: EntryPoint) -> str:
    return f"the package {_owner(offer)}"
