"""The runs of a comparison: which method, world and seed each belongs to."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bough.config import ConfigError
from bough.store import RunDirectory, StoreError

SEED = re.compile(r"[-_. ]?(seed|s)?[-_]?\d+$")
"""The end of a run's name with its seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A run of a comparison.

    Attributes:
        method: The name of what is compared.
        world: The name of the world.
        seed: The run's seed.
        directory: Its folder.
        failure: Why it has no result; "" for one that has.
    """

    method: str
    world: str
    seed: int
    directory: Path
    failure: str = ""


def contestants(directories: Sequence[Path]) -> list[Contestant]:
    """The contestants among run directories: those whose settings differ in name and seed alone are one method.

    A method is called as its first run, without the world and the seed at the end.

    Raises:
        StoreError: when a folder is no run directory, or its settings are damaged.
        ConfigError: when two runs of a method have the same seed.
    """
    methods: dict[str, str] = {}
    found: list[Contestant] = []
    for directory in directories:
        config = RunDirectory.open(directory).read_config()
        seed, world = config.pop("seed", 0), _name_of_world(config, directory)
        config.pop("name", None)
        key = json.dumps(config, sort_keys=True)
        if key not in methods:
            methods[key] = _label(directory, world, [each.method for each in found if each.world == world])
        method = methods[key]
        same = next((each for each in found if (each.method, each.world, each.seed) == (method, world, seed)), None)
        if same is not None:
            raise ConfigError(
                f"{directory}: got the settings and the seed of {same.directory}; need runs that differ in settings or "
                "seed: leave out one of them"
            )
        found.append(Contestant(method=method, world=world, seed=int(str(seed)), directory=directory))
    return found


def _name_of_world(config: Mapping[str, object], directory: Path) -> str:
    world = config.get("world")
    if not isinstance(world, Mapping) or "name" not in world:
        raise StoreError(f"{directory / 'config.json'}: got no world.name; need the file as the run wrote it")
    return str(cast("Mapping[str, object]", world)["name"])


def _label(directory: Path, world: str, taken: Sequence[str]) -> str:
    """A name that no other method of the world has."""
    name = directory.resolve().name
    short = SEED.sub("", name).removesuffix(world).rstrip("-_. ") or name
    return next(each for each in (short, name, *(f"{name}~{n}" for n in range(2, len(taken) + 3))) if each not in taken)
