"""The files of the package `alfworld`: domain, grammar, floor plans, and the tables of objects and goals."""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What the package lists about objects, receptacles, scenes and goals.

    Attributes:
        contents: Receptacle type -> the object types that it can contain.
        movable: The receptacles that are objects, such as bowls.
        openable: Receptacle types that open and close.
        abilities: "Heatable", "Coolable", "Cleanable", "Sliceable" -> object types.
        scenes: Kind of room -> the numbers of its floor plans.
        held_out: Numbers of the floor plans of ALFRED's unseen split.
        goals: Task type -> the goal condition in PDDL, with gaps.
        phrases: Task type -> the phrases of a task, with gaps.
    """

    contents: Mapping[str, frozenset[str]]
    movable: frozenset[str]
    openable: frozenset[str]
    abilities: Mapping[str, frozenset[str]]
    scenes: Mapping[str, tuple[int, ...]]
    held_out: frozenset[int]
    goals: Mapping[str, str]
    phrases: Mapping[str, tuple[str, ...]]

    @property
    def things(self) -> frozenset[str]:
        """The types of all objects that some receptacle can contain."""
        return frozenset(each for inside in self.contents.values() for each in inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPlan:
    """A scene.

    Attributes:
        types: The types of objects and receptacles in it.
        receptacles: Receptacle id -> x, z, rotation and horizon of the agent in front of it.
    """

    types: frozenset[str]
    receptacles: Mapping[str, tuple[float, float, float, float]]


@lru_cache(maxsize=1)
def folder() -> Path:
    """The folder of the installed package. The package is not imported: its import creates a folder in the home.

    Raises:
        ImportError: when it is not installed.
    """
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            "ALFWorld is not installed: got no module 'alfworld'; need pip install --no-deps "
            "-r constraints/alfworld.txt",
            name="alfworld",
        )
    return Path(next(iter(spec.submodule_search_locations)))


@lru_cache(maxsize=1)
def domain_text() -> str:
    """The domain in PDDL."""
    return (folder() / "data" / "alfred.pddl").read_text()


@lru_cache(maxsize=1)
def grammar_text() -> str:
    """The grammar of commands and responses, in TextWorld's TWL2."""
    return (folder() / "data" / "alfred.twl2").read_text()


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The package's tables."""
    constants, goals = _load("gen/constants.py"), _load("gen/goal_library.py")
    return Tables(
        contents={kind: frozenset(each) for kind, each in sorted(constants["VAL_RECEPTACLE_OBJECTS"].items())},
        movable=frozenset(constants["MOVABLE_RECEPTACLES"]),
        openable=frozenset(constants["OPENABLE_CLASS_LIST"]),
        abilities={name: frozenset(each) for name, each in sorted(constants["VAL_ACTION_OBJECTS"].items())},
        scenes={kind: tuple(each) for kind, each in sorted(constants["SCENE_TYPE"].items())},
        held_out=frozenset(constants["TEST_SCENE_NUMBERS"]),
        goals={name: each["pddl"] for name, each in goals["gdict"].items()},
        phrases={name: tuple(each["templates"]) for name, each in goals["gdict"].items()},
    )


@lru_cache(maxsize=128)
def floor_plan(number: int) -> FloorPlan:
    """Returns a scene by its number.

    Raises:
        FileNotFoundError: when there is no such scene.
    """
    layouts = folder() / "gen" / "layouts"
    places = json.loads((layouts / f"FloorPlan{number}-openable.json").read_text())
    return FloorPlan(
        types=frozenset(json.loads((layouts / f"FloorPlan{number}-objects.json").read_text())),
        receptacles={name: (each[0], each[1], each[2], each[3]) for name, each in sorted(places.items())},
    )


def _load(name: str) -> dict[str, Any]:
    """Executes a file of the package that has only data, outside the package."""
    spec = importlib.util.spec_from_file_location("alfworld_table", folder() / name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder() / name}: cannot be loaded; need alfworld 0.4.2", name="alfworld")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)
