"""Rooms with a task, drawn from ALFWorld's floor plans and tables, and written as PDDL problems."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bough.worlds.alfworld.game import names_of
from bough.worlds.alfworld.package import Tables, floor_plan, tables

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
ROOMS: Mapping[str, tuple[str, ...]] = {
    "pick_and_place_simple": ("Kitchen", "LivingRoom", "Bedroom", "Bathroom"),
    "look_at_obj_in_light": ("LivingRoom", "Bedroom"),
    "pick_clean_then_place_in_recep": ("Kitchen", "Bathroom"),
    "pick_heat_then_place_in_recep": ("Kitchen",),
    "pick_cool_then_place_in_recep": ("Kitchen",),
    "pick_two_obj_and_place": ("Kitchen", "LivingRoom", "Bedroom", "Bathroom"),
}
TREATMENTS: Mapping[str, tuple[str, str]] = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}
"""Task type -> what the object must allow, and the receptacle that does it."""
LAMPS = ("DeskLamp", "FloorLamp")
STANDS = ("Desk", "SideTable", "Dresser", "CoffeeTable", "DiningTable", "Shelf")
"""Receptacles on which a lamp stands; the tables list none."""
BASINS: Mapping[str, str] = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
UNPLACED: Mapping[str, int] = {"CoffeeMachine": 1, "StoveBurner": 4, "Toaster": 1, "Toilet": 1, "GarbageCan": 1}
"""Receptacles of which some floor plans have the type and not the place, and how many there are."""
MANGLING = (("-", "_minus_"), ("#", "-"), ("|", "_bar_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room and a task in it.

    Attributes:
        scene: Number of the floor plan.
        task_type: One of `TASK_TYPES`.
        target: Type of the object of the task.
        place: Type of the receptacle of the task; of "look" tasks the type of the lamp.
        phrase: Number of the task's phrase.
        receptacles: Receptacle id -> type.
        contents: Object id -> the id of the receptacle it is in.
    """

    scene: int
    task_type: str
    target: str
    place: str
    phrase: int
    receptacles: Mapping[str, str]
    contents: Mapping[str, str] = field(repr=False)

    @property
    def sentence(self) -> str:
        """The task in words."""
        names = {"obj": self.target.lower(), "recep": self.place.lower(), "toggle": self.place.lower(), "mrecep": ""}
        return tables().phrases[self.task_type][self.phrase].format(**names)

    @property
    def content(self) -> str:
        """Task and room as an agent can observe them, without scene and phrase: equal contents are one instance."""
        ids = {mangled(each).lower(): "receptacle" for each in (*self.receptacles, *self.contents)}
        names = names_of(ids)
        lines: list[str] = []
        for place in self.receptacles:
            inside = sorted(_type(each).lower() for each, at in self.contents.items() if at == place)
            lines.append(f"{names[mangled(place).lower()]}: {' '.join(inside)}")
        return "\n".join([f"{self.task_type} {self.target} {self.place}", *sorted(lines)])

    @property
    def data(self) -> dict[str, Any]:
        """The room as values that JSON can write."""
        return {
            "scene": self.scene,
            "task_type": self.task_type,
            "target": self.target,
            "place": self.place,
            "phrase": self.phrase,
            "receptacles": dict(self.receptacles),
            "contents": dict(self.contents),
        }

    def problem(self) -> str:
        """The room as a PDDL problem."""
        known, places = tables(), {each: f"loc|{at}" for at, each in enumerate(self.receptacles)}
        kinds = sorted(known.things | {*LAMPS})
        start = f"loc|{len(places)}"
        objects = [
            "agent1 # agent",
            *(f"{kind}Type # otype" for kind in kinds),
            *(f"{kind}Type # rtype" for kind in sorted(set(known.contents) - set(kinds))),
            *(f"{each} # object" for each in self.contents),
            *(f"{each} # receptacle" for each in self.receptacles),
            *(f"{each} # location" for each in (*places.values(), start)),
        ]
        facts = [f"(atLocation agent1 {start})", *self._facts(places)]
        gaps = {"obj": self.target, "recep": self.place, "toggle": self.place, "mrecep": ""}
        goal = known.goals[self.task_type].format(**gaps).rstrip().removesuffix(")")
        line = "\n        "
        return mangled(
            f"(define (problem room)\n    (:domain alfred)\n    (:objects{line}{line.join(objects)})\n"
            f"    (:init{line}(= (total#cost) 0){line}{line.join(facts)})\n{goal}\n"
            "    (:metric minimize (total#cost)))\n"
        )

    def _facts(self, places: Mapping[str, str]) -> list[str]:
        known, facts = tables(), list[str]()
        for each, kind in self.receptacles.items():
            facts += [f"(receptacleType {each} {kind}Type)", f"(receptacleAtLocation {each} {places[each]})"]
            facts += [f"(openable {each})"] if kind in known.openable else []
        for kind in sorted(set(self.receptacles.values())):
            facts += [f"(canContain {kind}Type {inner}Type)" for inner in sorted(known.contents[kind])]
        for each, at in self.contents.items():
            kind = _type(each)
            facts += [f"(objectType {each} {kind}Type)", f"(inReceptacle {each} {at})"]
            facts += [f"(objectAtLocation {each} {places[at]})"]
            facts += [f"(toggleable {each})" if kind in LAMPS else f"(pickupable {each})"]
            facts += [f"(isReceptacleObject {each})"] if kind in known.movable else []
            facts += [f"({able.lower()} {each})" for able, kinds in known.abilities.items() if kind in kinds - {*LAMPS}]
        return facts


def room_of(data: Mapping[str, Any]) -> Room:
    """Rebuilds a room from `Room.data`.

    Raises:
        ValueError: when a field is missing or has a value that no room has.
    """
    try:
        room = Room(**{name: data[name] for name in Room.__dataclass_fields__})
        known = tables()
        kinds = known.things | {*LAMPS}
        right = (
            room.task_type in TASK_TYPES
            and room.target in known.things
            and room.place in (LAMPS if room.task_type == "look_at_obj_in_light" else known.contents)
            and set(room.receptacles.values()) <= set(known.contents)
            and set(room.contents.values()) <= set(room.receptacles)
            and {_type(each) for each in room.contents} <= kinds
            and all(re.fullmatch(r"[A-Za-z0-9|+.-]+", each) for each in (*room.receptacles, *room.contents))
        )
        room.sentence  # noqa: B018  # an IndexError for an unknown phrase
    except (KeyError, IndexError, TypeError, AttributeError) as wrong:
        raise ValueError(
            f"AlfWorld: got a task whose data are no room ({wrong!r}); need one of AlfWorld.tasks"
        ) from wrong
    if not right:
        raise ValueError("AlfWorld: got a task whose data are no room; need one of AlfWorld.tasks")
    return room


def scenes_with(task_types: Sequence[str]) -> tuple[int, ...]:
    """The floor plans in which at least one of the task types is possible."""
    known = tables()
    kinds = sorted({kind for each in task_types for kind in ROOMS[each]})
    return tuple(number for kind in kinds for number in known.scenes[kind])


def draw_room(
    rng: random.Random, scenes: Sequence[int], task_types: Sequence[str], *, receptacles: int, objects: int
) -> Room:
    """Draws a room in which the task is unsolved and can be solved.

    Args:
        rng: The random numbers.
        scenes: Floor plans to draw from.
        task_types: Task types to draw from.
        receptacles: Receptacles kept, without those the task needs; 0 for all.
        objects: Objects kept, without those the task needs; 0 for as many as the scene has, up to three of a type.

    Raises:
        ValueError: when a thousand draws give no room.
    """
    for _ in range(1000):
        room = _try_room(rng, rng.choice(scenes), task_types, receptacles, objects)
        if room is not None:
            return room
    raise ValueError(f"AlfWorld: got task types {list(task_types)} of which a thousand draws made no room; need others")


def _try_room(rng: random.Random, scene: int, task_types: Sequence[str], receptacles: int, objects: int) -> Room | None:
    known, plan = tables(), floor_plan(scene)
    kind = next(kind for kind, numbers in known.scenes.items() if scene in numbers)
    task_type = rng.choice(sorted(each for each in task_types if kind in ROOMS[each]) or [""])
    all_places, present = _receptacles(scene), sorted(plan.types)
    by_type: dict[str, list[str]] = {}
    for each, its in all_places.items():
        by_type.setdefault(its, []).append(each)
    things = [each for each in present if any(each in known.contents[its] for its in by_type)]
    choice = _choose(rng, task_type, things, present, by_type)
    if choice is None:
        return None
    target, place, needed, sources = choice
    count = 2 if task_type == "pick_two_obj_and_place" else 1
    homes = [rng.choice(sources) for _ in range(count)]
    kept = dict.fromkeys((*needed, *homes))
    extra = [each for each in all_places if each not in kept]
    wanted = len(all_places) if receptacles == 0 else receptacles
    kept |= dict.fromkeys(rng.sample(extra, max(0, min(len(extra), wanted - len(kept)))))
    contents = {_named(target, at): home for at, home in enumerate(homes)}
    if task_type == "look_at_obj_in_light":
        contents[_named(place, 0)] = needed[0]
    final = place if task_type != "look_at_obj_in_light" else ""
    for each, home in _distractors(rng, things, target, kept, all_places, final, len(contents), objects):
        contents[_named(each, sum(_type(other) == each for other in contents))] = home
    return Room(
        scene=scene,
        task_type=task_type,
        target=target,
        place=place,
        phrase=rng.randrange(len(known.phrases[task_type])),
        receptacles={each: all_places[each] for each in sorted(kept)},
        contents=dict(sorted(contents.items())),
    )


def _choose(
    rng: random.Random, task_type: str, things: Sequence[str], present: Sequence[str], by_type: Mapping[str, list[str]]
) -> tuple[str, str, list[str], list[str]] | None:
    """Draws target, place (or lamp), the receptacles the task needs, and those the target may start in."""
    known = tables()
    if task_type == "look_at_obj_in_light":
        lamps = [each for each in LAMPS if each in present]
        stands = [each for kind in STANDS for each in by_type.get(kind, ())]
        if not lamps or not stands:
            return None
        target = rng.choice(things)
        return target, rng.choice(lamps), [rng.choice(stands)], _sources(target, by_type, "", known)
    ability, tool = TREATMENTS.get(task_type, ("", ""))
    targets = [each for each in things if not tool or each in known.abilities[ability]]
    if not targets or (tool and tool not in by_type):
        return None
    target = rng.choice(targets)
    places = sorted(kind for kind in by_type if target in known.contents[kind] and kind != tool)
    if not places:
        return None
    place = rng.choice(places)
    sources = _sources(target, by_type, place, known)
    needed = [rng.choice(by_type[place]), *([rng.choice(by_type[tool])] if tool else [])]
    return (target, place, needed, sources) if sources else None


def _sources(target: str, by_type: Mapping[str, list[str]], place: str, known: Tables) -> list[str]:
    return [
        each
        for kind, ids in sorted(by_type.items())
        if kind != place and target in known.contents[kind]
        for each in ids
    ]


def _distractors(
    rng: random.Random,
    things: Sequence[str],
    target: str,
    kept: Mapping[str, None],
    types: Mapping[str, str],
    final: str,
    placed: int,
    objects: int,
) -> list[tuple[str, str]]:
    """Draws further objects, each in one of the kept receptacles that can contain it; no target where it must go."""
    contents, found = tables().contents, list[tuple[str, str]]()
    copies = [each for each in things for _ in range(rng.randint(1, 3))]
    rng.shuffle(copies)
    for each in copies:
        if objects and placed + len(found) >= objects:
            break
        homes = [home for home in sorted(kept) if each in contents[types[home]]]
        homes = [home for home in homes if each != target or types[home] != final]
        if homes:
            found.append((each, rng.choice(homes)))
    return found


def _receptacles(scene: int) -> dict[str, str]:
    """The receptacles of a scene, id -> type; a sink is its basin."""
    plan, contents, found = floor_plan(scene), tables().contents, dict[str, str]()
    for each in plan.receptacles:
        kind = _type(each)
        basin = BASINS.get(kind, kind)
        if contents.get(basin):
            found[f"{each}|{basin}" if kind != basin and not each.endswith(basin) else each] = basin
    present = set(found.values())
    for kind, count in UNPLACED.items():
        if kind in plan.types and kind not in present:
            found |= {f"{kind}|{at}": kind for at in range(count)}
    return found


def _named(kind: str, at: int) -> str:
    return f"{kind}|{at}"


def _type(identifier: str) -> str:
    return identifier.partition("|")[0]


def mangled(text: str) -> str:
    """Replaces the signs that PDDL does not allow, as ALFRED does; "#" stands for "-"."""
    for sign, code in MANGLING:
        text = text.replace(sign, code)
    return text
