"""One ALFWorld game: the facts of its world, the commands that apply, and the responses."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bough.env.splits import content_hash
from bough.worlds.alfworld.grammar import Grammar, read_grammar
from bough.worlds.alfworld.pddl import (
    And,
    Atom,
    Binding,
    Condition,
    Effect,
    Fact,
    Facts,
    Problem,
    Schema,
    atoms,
    holds,
    read_domain,
    read_problem,
    solutions,
)

SPELLING = {"_bar_": "|", "_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}
NEGATED = "not_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An action with its arguments."""

    schema: Schema
    binding: Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The world under a set of facts.

    Attributes:
        facts: All facts, also the constant ones.
        acts: Command -> action, for every command that applies.
        changing: The commands that change a fact, in order.
        visible: The receptacles whose content can be seen from here.
        won: Whether the goal holds.
        key: Hash of the facts that can change.
    """

    facts: Facts
    acts: Mapping[str, Act]
    changing: tuple[str, ...]
    visible: frozenset[str]
    won: bool
    key: str


class Game:
    """A game in the words of PDDL and TWL2. It has no state: each command comes with the facts it acts on.

    Attributes:
        goal: The goal condition.
        objects: Object -> type.
        names: Object -> its name in texts.
        start: The facts at the start that can change.
        opening: The first room and the task.
        task: The sentence of the task.

    Raises:
        ValueError: when domain, problem or grammar cannot be parsed.
    """

    def __init__(self, domain: str, problem: str, grammar: str, sentence: str = "") -> None:
        read = read_problem(problem)
        self._schemas, self._grammar = _domain(domain), read_grammar(grammar)
        if sentence:
            self._grammar = self._grammar.with_task(sentence)
        self.goal, self.objects, self.names = read.goal, read.objects, names_of(read.objects)
        if missing := next(_missing(self._schemas, self._grammar, read), ""):
            raise ValueError(f"got no {missing}; need every action in the grammar and every name in :objects")
        changing = {atom.predicate for schema in self._schemas for each in schema.effects for atom in _changes(each)}
        self._recorded = changing & _read_predicates(self._schemas, self.goal, grammar)
        self.start = frozenset(fact for fact in read.facts if fact[0] in self._recorded)
        self._fixed = Facts(fact for fact in read.facts if fact[0] not in changing)
        places = Counter(fact[2] for fact in self._fixed.rows("receptacleatlocation"))
        self._shared = frozenset(fact[1] for fact in self._fixed.rows("receptacleatlocation") if places[fact[2]] > 1)
        room, _, task = self._grammar.write("#intro#", {}, self._facts(self.start), self.names).rpartition("\n\n")
        self.opening, self.task = compact(room), compact(task)

    @lru_cache(maxsize=512)  # noqa: B019  # of all games together; as many scenes as paths that grow at once
    def scene(self, facts: frozenset[Fact]) -> Scene:
        """The world under given facts; cached, because branches reach the same scenes."""
        return self._scene(facts)

    def command(self, facts: frozenset[Fact], command: str) -> tuple[frozenset[Fact], str]:
        """Executes one of the scene's commands; returns the facts after it and the response."""
        scene = self.scene(facts)
        act = scene.acts[command]
        adds, deletes = set[Fact](), set[Fact]()
        for effect in act.schema.effects:
            if holds(effect.condition, act.binding, scene.facts):
                adds.update(atom.ground(act.binding) for atom in effect.adds)
                deletes.update(atom.ground(act.binding) for atom in effect.deletes)
        after = (facts - deletes) | {fact for fact in adds if fact[0] in self._recorded}
        after = frozenset(after - {(NEGATED + fact[0], *fact[1:]) for fact in adds} | self._negated(deletes - adds))
        response = self._grammar.responses[act.schema.name]
        text = self._grammar.write(response, _arguments(act), self._facts(after), self.names)
        return after, compact(text)

    def put_command(self, thing: str, place: str) -> str:
        """The command that puts an object in a receptacle; its words differ between versions of the games."""
        template = self._grammar.commands["putobject"]
        return compact(self._grammar.write(template, {"o": thing, "r": place}, self._fixed, self.names))

    def _negated(self, deleted: Iterable[Fact]) -> set[Fact]:
        """The negations that "look" queries: of an object that left one of two receptacles at one place."""
        return {
            (NEGATED + fact[0], *fact[1:]) for fact in deleted if fact[0] == "inreceptacle" and fact[2] in self._shared
        }

    def _facts(self, facts: frozenset[Fact]) -> Facts:
        return Facts(facts, self._fixed)

    def _scene(self, facts: frozenset[Fact]) -> Scene:
        world = self._facts(facts)
        found: dict[str, Act] = {}
        for schema in self._schemas:
            for binding in solutions(schema.condition, {}, world):
                if _is_void(schema, binding):
                    continue
                act = Act(schema=schema, binding=binding)
                template = self._grammar.commands[schema.name]
                command = self._grammar.write(template, _arguments(act), world, self.names)
                found.setdefault(compact(command), act)
        acts = dict(sorted(found.items()))
        here = {fact[2] for fact in world.rows("atlocation")}
        near = {fact[1] for fact in world.rows("receptacleatlocation") if fact[2] in here}
        return Scene(
            facts=world,
            acts=acts,
            changing=tuple(name for name, act in acts.items() if self._matters(act)),
            visible=frozenset(
                each for each in near if world.has(("opened", each)) or not world.has(("openable", each))
            ),
            won=holds(self.goal, {}, world),
            key=content_hash(repr(sorted(facts))),
        )

    def _matters(self, act: Act) -> bool:
        return any(atom.predicate in self._recorded for effect in act.schema.effects for atom in _changes(effect))


def compact(text: str) -> str:
    r"""Puts a text on one line, without the engine's banner.

    Examples:
        >>> compact("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
        'You are in the middle of a room.'
    """
    return " ".join(re.sub(r"-= [^=]* =-", "", text).split())


def names_of(objects: Mapping[str, str]) -> dict[str, str]:
    """Names the objects of a problem as ALFWorld does: the type and a number, counted down in the order of the ids.

    Examples:
        >>> names_of({"mug_bar_1": "object", "mug_bar_2": "object", "sink_bar_1_bar_sinkbasin": "receptacle"})
        {'mug_bar_1': 'mug 2', 'mug_bar_2': 'mug 1', 'sink_bar_1_bar_sinkbasin': 'sinkbasin 1'}
    """
    kinds = {each: _kind(each) for each in sorted(objects) if "_bar_" in each}
    left = Counter(kinds.values())
    names: dict[str, str] = {}
    for each in sorted(objects):
        kind = kinds.get(each)
        names[each] = sys.intern(f"{kind} {left[kind]}") if kind else _spelled(each)
        left[kind or ""] -= 1
    return {each: names[each] for each in objects}


def _kind(identifier: str) -> str:
    return identifier.partition("_bar_")[0] + ("basin" if "basin" in identifier else "")


def _spelled(identifier: str) -> str:
    for code, sign in SPELLING.items():
        identifier = identifier.replace(code, sign)
    return identifier


@lru_cache(maxsize=8)
def _domain(text: str) -> tuple[Schema, ...]:
    return read_domain(text)


def _changes(effect: Effect) -> Iterator[Atom]:
    yield from (*effect.adds, *effect.deletes)


def _read_predicates(schemas: tuple[Schema, ...], goal: Condition, grammar: str) -> frozenset[str]:
    """The predicates that a condition or the grammar reads. All others, such as `checked`, are left out of states."""
    conditions = [goal, *(schema.condition for schema in schemas)]
    conditions += [effect.condition for schema in schemas for effect in schema.effects]
    named = {atom.predicate for condition in conditions for atom in atoms(condition)}
    words = set(grammar.replace("(", " ").split())
    return frozenset(named | {word.removeprefix(NEGATED) for word in words})


def _missing(schemas: Iterable[Schema], grammar: Grammar, problem: Problem) -> Iterator[str]:
    """The actions without a command or a response, and the names of facts that are no objects."""
    for name in ("putobject", *(schema.name for schema in schemas)):
        if name not in grammar.commands or name not in grammar.responses:
            yield f"action {name}"
    for fact in sorted(problem.facts):
        yield from (f"object {term}" for term in fact[1:] if term not in problem.objects)


def _is_void(schema: Schema, binding: Binding) -> bool:
    """Whether an action only adds what its condition requires, as a walk to the present place: the planner drops it."""
    if any(effect.condition != And(()) for effect in schema.effects):
        return False
    parts = schema.condition.parts if isinstance(schema.condition, And) else (schema.condition,)
    required = {part.ground(binding) for part in parts if isinstance(part, Atom)}
    adds = {atom.ground(binding) for effect in schema.effects for atom in effect.adds}
    deletes = {atom.ground(binding) for effect in schema.effects for atom in effect.deletes}
    return adds <= required and deletes <= adds


def _arguments(act: Act) -> dict[str, str]:
    return {name[1:]: act.binding[name] for name in act.schema.parameters if name in act.binding}
