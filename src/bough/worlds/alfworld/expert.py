"""Experts for ALFWorld's goals: one with full knowledge of the room, one that searches as an agent has to."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from bough.worlds.alfworld.game import Game
from bough.worlds.alfworld.pddl import And, Atom, Condition, Exists, Fact, Not, atoms

TREATED: Mapping[str, tuple[str, str]] = {
    "isclean": ("clean", "sinkbasintype"),
    "ishot": ("heat", "microwavetype"),
    "iscool": ("cool", "fridgetype"),
}
"""Predicate -> the verb that makes it true, and the type of receptacle it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What one of ALFWorld's six kinds of goals requires.

    Attributes:
        target: Type of the object, as in `objectType`.
        count: Number of these objects.
        place: Type of the receptacle that they go to; "" when the object is held.
        treatment: "isclean", "ishot", "iscool" or "".
        lamp: Type of the lamp to turn on, or "".
    """

    target: str
    count: int
    place: str
    treatment: str
    lamp: str


def goal_of(condition: Condition) -> Goal | None:
    """Reads a goal condition; None when it is of another kind (slices, objects in objects)."""
    found = list(_positive(condition))
    types = {atom.terms[0]: atom.terms[1] for atom in found if atom.predicate in ("objecttype", "receptacletype")}
    names = {atom.predicate for atom in found}
    if names & {"issliced", "inreceptacleobject"}:
        return None
    toggled = [atom.terms[0] for atom in found if atom.predicate == "istoggled"]
    placed = [atom.terms for atom in found if atom.predicate == "inreceptacle" and atom.terms[0] not in toggled]
    held = [atom.terms[1] for atom in found if atom.predicate == "holds"]
    things = [thing for thing, _ in placed] or held
    if not things or not all(thing in types for thing in (*things, *toggled)) or len({types[t] for t in things}) > 1:
        return None
    return Goal(
        target=types[things[0]],
        count=len(things),
        place=types.get(placed[0][1], "") if placed else "",
        treatment=next((each for each in TREATED if each in names), ""),
        lamp=types[toggled[0]] if toggled else "",
    )


class World:
    """The facts an expert needs, which its own actions change.

    Attributes:
        commands: The commands so far.
        seen: The receptacles whose content was seen.
        put_command: Writes the command that puts an object in a receptacle, in the words of the game.
    """

    def __init__(self, game: Game, now: frozenset[Fact], seen: Collection[str] = ()) -> None:
        facts = game.scene(now).facts
        self.facts, self.names, self.commands, self.seen = facts, game.names, list[str](), set(seen)
        self.put_command = game.put_command
        self.inside = {fact[1]: fact[2] for fact in facts.rows("inreceptacle")}
        self.kind = {fact[1]: fact[2] for table in ("objecttype", "receptacletype") for fact in facts.rows(table)}
        self.spot = {fact[1]: fact[2] for fact in facts.rows("receptacleatlocation")}
        self.shut = {each for each in self.spot if facts.has(("openable", each)) and not facts.has(("opened", each))}
        self.held = next((fact[2] for fact in facts.rows("holds")), "")
        self.here = next((fact[2] for fact in facts.rows("atlocation")), "")
        self.done = {(each[0], each[1]) for name in (*TREATED, "istoggled") for each in facts.rows(name)}

    def copy(self) -> "World":
        """A copy that changes on its own."""
        other = object.__new__(World)
        other.__dict__ = {
            name: each.copy() if isinstance(each, list | set | dict) and name not in ("kind", "spot") else each
            for name, each in vars(self).items()
        }
        return other

    def of(self, kind: str) -> list[str]:
        """Objects or receptacles of a type, by name."""
        return sorted(
            (each for each, its in self.kind.items() if its == kind), key=lambda each: natural(self.names[each])
        )

    def can_hold(self, place: str, thing: str) -> bool:
        """Whether an object may be put in a receptacle."""
        return self.facts.has(("cancontain", self.kind[place], self.kind[thing]))

    def reach(self, place: str, *, opened: bool = True) -> None:
        """Goes to a receptacle, and opens it."""
        if self.here != self.spot[place]:
            self.commands.append(f"go to {self.names[place]}")
            self.here = self.spot[place]
        if opened and place in self.shut:
            self.commands.append(f"open {self.names[place]}")
            self.shut.discard(place)
        self.seen |= {each for each, spot in self.spot.items() if spot == self.here and each not in self.shut}

    def fetch(self, thing: str) -> bool:
        """Takes an object, after putting down another; False when it is in no receptacle, or no place is free."""
        if self.held == thing:
            return True
        if thing not in self.inside or (self.held and not self._put_down()):
            return False
        self.reach(self.inside[thing])
        self.commands.append(f"take {self.names[thing]} from {self.names[self.inside.pop(thing)]}")
        self.held = thing
        return True

    def put(self, place: str) -> None:
        """Puts the held object in a receptacle."""
        self.reach(place)
        self.commands.append(self.put_command(self.held, place))
        self.inside[self.held], self.held = place, ""

    def treat(self, predicate: str) -> bool:
        """Cleans, heats or cools the held object; False without the receptacle for it."""
        verb, kind = TREATED[predicate]
        tools = self.of(kind)
        if (predicate, self.held) not in self.done:
            if not tools:
                return False
            tool = next((each for each in tools if self.spot[each] == self.here), tools[0])
            self.reach(tool, opened=False)
            self.commands.append(f"{verb} {self.names[self.held]} with {self.names[tool]}")
            self.done.add((predicate, self.held))
        return True

    def _put_down(self) -> bool:
        fitting = [each for each in sorted(self.spot) if self.can_hold(each, self.held)]
        if not fitting:
            return False
        self.put(min(fitting, key=lambda each: (self.spot[each] != self.here, each in self.shut, each)))
        return True


def planner(game: Game, facts: frozenset[Fact]) -> tuple[str, ...] | None:
    """Plans with full knowledge of the room: the best choice of objects and receptacles; None when there is none."""
    goal = goal_of(game.goal)
    if goal is None:
        return None
    if game.scene(facts).won:
        return ()
    start = World(game, facts)
    plans = [plan for plan in _plans(start, goal, start.of(goal.target)) if plan is not None]
    return tuple(min(plans, key=len)) if plans else None


def searcher(game: Game, facts: frozenset[Fact], seen: Collection[str]) -> tuple[str, ...] | None:
    """Plans as an agent that has seen the content of the receptacles in `seen` alone, and searches the others in turn.

    An object is dealt with as soon as it is found. Receptacles that can contain the object are searched first.
    """
    goal = goal_of(game.goal)
    if goal is None:
        return None
    if game.scene(facts).won:
        return ()
    world = World(game, facts, seen)
    for _ in range(4 * len(world.spot) + 8):
        known = [
            each for each in world.of(goal.target) if world.inside.get(each, "") in world.seen or each == world.held
        ]
        lamps = [each for each in world.of(goal.lamp) if world.inside.get(each, "") in world.seen] if goal.lamp else []
        plans = [plan for plan in _plans(world, goal, known, lamps) if plan is not None]
        if plans:
            return tuple(min(plans, key=len))
        if known and not _deliver_one(world, goal, known):
            return None
        unseen = [
            each for each in sorted(world.spot, key=lambda each: natural(world.names[each])) if each not in world.seen
        ]
        if not unseen:
            return None
        sought = world.of(goal.target) if len(known) < goal.count else world.of(goal.lamp)
        likely = [each for each in unseen if any(world.can_hold(each, thing) for thing in sought)]
        world.reach((likely or unseen)[0])
    return None


def natural(name: str) -> tuple[str, int]:
    """Orders "cabinet 2" before "cabinet 10"."""
    kind, _, number = name.rpartition(" ")
    return kind, int(number) if number.isdigit() else 0


def _plans(
    start: World, goal: Goal, things: Collection[str], lamps: Collection[str] | None = None
) -> Iterator[list[str] | None]:
    if goal.lamp:
        for thing in things:
            for lamp in start.of(goal.lamp) if lamps is None else lamps:
                yield _under_lamp(start.copy(), thing, lamp)
        return
    for place in start.of(goal.place):
        inside = [each for each in things if start.inside.get(each) == place and _ready(start, goal, each)]
        for chosen in permutations([each for each in things if each not in inside], max(0, goal.count - len(inside))):
            yield _delivered(start.copy(), goal, chosen, place)


def _delivered(world: World, goal: Goal, things: Collection[str], place: str) -> list[str] | None:
    for thing in things:
        if not world.can_hold(place, thing) or not world.fetch(thing):
            return None
        if goal.treatment and not world.treat(goal.treatment):
            return None
        world.put(place)
    return world.commands


def _under_lamp(world: World, thing: str, lamp: str) -> list[str] | None:
    if lamp not in world.inside or not world.fetch(thing):
        return None
    world.reach(world.inside[lamp], opened=False)
    if ("istoggled", lamp) not in world.done:
        world.commands.append(f"use {world.names[lamp]}")
    return world.commands


def _deliver_one(world: World, goal: Goal, known: Collection[str]) -> bool:
    """Deals with the objects found before the rest is: takes the one for the lamp, or places one of two."""
    if goal.lamp:
        return world.fetch(next((each for each in known if each == world.held), next(iter(known))))
    places = world.of(goal.place)
    waiting = [each for each in known if world.inside.get(each, "") not in places[:1]]
    return not waiting or not places or _delivered(world, goal, waiting[:1], places[0]) is not None


def _ready(world: World, goal: Goal, thing: str) -> bool:
    return not goal.treatment or (goal.treatment, thing) in world.done


def _positive(condition: Condition) -> Iterator[Atom]:
    if isinstance(condition, Atom):
        yield condition
    elif isinstance(condition, Exists):
        yield from _positive(condition.inner)
    elif isinstance(condition, And):
        for part in condition.parts:
            yield from _positive(part)
    elif not isinstance(condition, Not):
        yield from atoms(condition)
