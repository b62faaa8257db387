"""PDDL as ALFWorld uses it: conditions over facts, actions with conditional effects."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

Fact: TypeAlias = tuple[str, ...]
"""A predicate and its arguments, in lower case."""
Binding: TypeAlias = Mapping[str, str]
"""Variable -> object."""
Expression: TypeAlias = "str | list[Expression]"


TYPE = "-"
"""Begins the predicate that holds for the objects of a type."""


class Facts:
    """A set of facts, indexed by predicate; `extra` facts lie over those of `base`."""

    def __init__(self, facts: Iterable[Fact], base: "Facts | None" = None) -> None:
        self._rows: dict[str, dict[Fact, None]] = {}
        self._base = base
        for fact in sorted(facts):
            self._rows.setdefault(fact[0], {})[fact] = None

    def rows(self, predicate: str) -> Iterable[Fact]:
        """The facts of a predicate, sorted."""
        own = self._rows.get(predicate)
        return own if own is not None else self._base.rows(predicate) if self._base else ()

    def has(self, fact: Fact) -> bool:
        """Whether the fact holds."""
        return fact in self._rows.get(fact[0], ()) or (self._base is not None and self._base.has(fact))


@dataclass(frozen=True, slots=True)
class Atom:
    """A positive literal; a term that begins with "?" is a variable."""

    predicate: str
    terms: tuple[str, ...]

    def ground(self, binding: Binding) -> Fact:
        """The fact under a binding."""
        return (self.predicate, *(binding[term] if term[0] == "?" else term for term in self.terms))


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that must not hold; its variables are bound elsewhere."""

    inner: "Condition"


@dataclass(frozen=True, slots=True)
class And:
    """All of several conditions."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """One of several conditions."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Exists:
    """Some value of the variables fulfils the condition."""

    variables: tuple[str, ...]
    inner: "Condition"


Condition: TypeAlias = Atom | Not | And | Or | Exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Facts that an action adds and deletes, where its condition holds."""

    condition: Condition
    adds: tuple[Atom, ...]
    deletes: tuple[Atom, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """An action with parameters.

    Attributes:
        name: In lower case.
        parameters: Variable -> type, in order.
        condition: When it can be executed.
        effects: What it changes.
    """

    name: str
    parameters: Mapping[str, str]
    condition: Condition
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem: objects with their types, the facts at the start, and the goal."""

    objects: Mapping[str, str]
    facts: frozenset[Fact]
    goal: Condition


def read(text: str) -> list[Expression]:
    """Parses an expression in parentheses, in lower case and without comments.

    Raises:
        ValueError: when the parentheses do not match.
    """
    stack: list[list[Expression]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text).lower()):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) < 2:
                raise ValueError("PDDL: got a ')' without its '('; need matching parentheses")
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(sys.intern(token))
    if len(stack) != 1 or len(stack[0]) != 1 or isinstance(stack[0][0], str):
        raise ValueError("PDDL: got no single expression; need matching parentheses around one definition")
    return stack[0][0]


def read_domain(text: str) -> tuple[Schema, ...]:
    """Parses the actions of a domain."""
    found: list[Schema] = []
    for part in read(text):
        if not isinstance(part, str) and part[0] == ":action":
            fields = {str(part[at]): part[at + 1] for at in range(2, len(part) - 1, 2)}
            parameters, condition = _typed(fields[":parameters"]), condition_of(fields[":precondition"])
            known = {term for atom in atoms(condition) for term in atom.terms}
            free = [Atom(TYPE + kind, (name,)) for name, kind in parameters.items() if name not in known]
            found.append(
                Schema(
                    name=str(part[1]),
                    parameters=parameters,
                    condition=And((*_parts(condition), *free)),
                    effects=tuple(_effects(fields[":effect"], And(()))),
                )
            )
    return tuple(found)


def read_problem(text: str) -> Problem:
    """Parses a problem. Costs and distances are left out.

    Raises:
        ValueError: when a section is missing.
    """
    sections = {str(part[0]): part[1:] for part in read(text) if not isinstance(part, str) and part}
    if missing := {":objects", ":init", ":goal"} - set(sections):
        raise ValueError(f"PDDL problem: got no section {', '.join(sorted(missing))}; need objects, init and goal")
    objects = _typed(sections[":objects"])
    facts = [_shared(_strings(part)) for part in sections[":init"] if not isinstance(part, str) and part[0] != "="]
    facts += [_shared((sys.intern(TYPE + kind), name)) for name, kind in objects.items()]
    return Problem(objects=objects, facts=frozenset(facts), goal=condition_of(sections[":goal"][0]))


def condition_of(part: Expression) -> Condition:
    """Builds a condition; nested conjunctions are flattened.

    Raises:
        ValueError: when it uses a construct that ALFWorld's domain does not.
    """
    if isinstance(part, str):
        raise ValueError(f"PDDL: got {part!r}; need a condition in parentheses")
    if not part:
        return And(())
    head, rest = part[0], part[1:]
    if head == "and":
        return And(tuple(part for each in rest for part in _parts(condition_of(each))))
    if head == "or":
        return Or(tuple(condition_of(each) for each in rest))
    if head == "not":
        return Not(condition_of(rest[0]))
    if head == "exists":
        variables = _typed(rest[0])
        kinds = tuple(Atom(TYPE + kind, (name,)) for name, kind in variables.items())
        return Exists(tuple(variables), And((*kinds, *_parts(condition_of(rest[1])))))
    if not isinstance(head, str) or head in ("forall", "imply", "when"):
        raise ValueError(f"PDDL: got a condition with {head}; need and, or, not, exists and predicates")
    return Atom(head, _strings(rest))


def atoms(condition: Condition) -> Iterator[Atom]:
    """The atoms of a condition, also the negated."""
    if isinstance(condition, Atom):
        yield condition
    elif isinstance(condition, And | Or):
        for part in condition.parts:
            yield from atoms(part)
    else:
        yield from atoms(condition.inner)


def solutions(condition: Condition, binding: Binding, facts: Facts) -> Iterator[Binding]:
    """Yields the bindings, extended by the condition's free variables, under which it holds."""
    if isinstance(condition, Atom):
        yield from _match(condition, binding, facts)
    elif isinstance(condition, And):
        yield from _conjunction(condition.parts, binding, facts)
    elif isinstance(condition, Or):
        seen: set[tuple[tuple[str, str], ...]] = set()
        for part in condition.parts:
            for found in solutions(part, binding, facts):
                if (mark := tuple(sorted(found.items()))) not in seen:
                    seen.add(mark)
                    yield found
    elif isinstance(condition, Exists):
        outer = {name: value for name, value in binding.items() if name not in condition.variables}
        seen = set()
        for found in solutions(condition.inner, outer, facts):
            kept = {**{name: value for name, value in found.items() if name not in condition.variables}, **binding}
            if (mark := tuple(sorted(kept.items()))) not in seen:
                seen.add(mark)
                yield kept
    elif not holds(condition.inner, binding, facts):
        yield binding


def holds(condition: Condition, binding: Binding, facts: Facts) -> bool:
    """Whether a condition holds under a binding."""
    return next(iter(solutions(condition, binding, facts)), None) is not None


def _conjunction(parts: tuple[Condition, ...], binding: Binding, facts: Facts) -> Iterator[Binding]:
    if not parts:
        yield binding
        return
    first = min(range(len(parts)), key=lambda at: _cost(parts[at], binding, facts))
    rest = parts[:first] + parts[first + 1 :]
    for found in solutions(parts[first], binding, facts):
        yield from _conjunction(rest, found, facts)


def _cost(part: Condition, binding: Binding, facts: Facts) -> int:
    """An estimate of the number of solutions; what cannot be evaluated yet comes last."""
    free = {term for atom in atoms(part) for term in atom.terms if term[0] == "?" and term not in binding}
    if isinstance(part, Atom) and part.predicate != "=":
        rows = facts.rows(part.predicate)
        return 0 if not free else len(cast("dict[Fact, None]", rows)) // (1 if len(free) == len(part.terms) else 8)
    if isinstance(part, Not) or (isinstance(part, Atom) and free):
        return 10**6 if free else 0
    return 10**4


def _match(atom: Atom, binding: Binding, facts: Facts) -> Iterator[Binding]:
    wanted = tuple(binding.get(term) if term[0] == "?" else term for term in atom.terms)
    if None not in wanted:
        fact = (atom.predicate, *cast("tuple[str, ...]", wanted))
        if (wanted[0] == wanted[1]) if atom.predicate == "=" else facts.has(fact):
            yield binding
        return
    for row in facts.rows(atom.predicate):
        found: dict[str, str] | None = None
        for term, want, value in zip(atom.terms, wanted, row[1:], strict=True):
            if want is not None:
                if want != value:
                    break
            elif found is not None and found.get(term, value) != value:
                break
            else:
                found = {**(found or {}), term: value}
        else:
            yield {**binding, **(found or {})}


def _parts(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, And) else (condition,)


@lru_cache(maxsize=4096)
def _shared(fact: Fact) -> Fact:
    """One object for equal facts: games have most of their constant facts in common."""
    return fact


def _effects(part: Expression, condition: Condition) -> Iterator[Effect]:
    adds: list[Atom] = []
    deletes: list[Atom] = []
    for each in _conjuncts(part):
        head = each[0]
        if head == "when":
            yield from _effects(each[2], condition_of(each[1]))
        elif head == "not":
            deletes.append(cast("Atom", condition_of(each[1])))
        elif head != "increase":
            adds.append(cast("Atom", condition_of(each)))
    if adds or deletes:
        yield Effect(condition=condition, adds=tuple(adds), deletes=tuple(deletes))


def _conjuncts(part: Expression) -> list[list[Expression]]:
    if isinstance(part, str) or not part:
        return []
    return [each for inner in part[1:] for each in _conjuncts(inner)] if part[0] == "and" else [part]


def _typed(part: Expression) -> dict[str, str]:
    """Parses `a b - type c - other` into names with types."""
    names: dict[str, str] = {}
    waiting: list[str] = []
    items = iter(_strings(part))
    for item in items:
        if item == "-":
            kind = next(items, "object")
            names.update(dict.fromkeys(waiting, kind))
            waiting = []
        else:
            waiting.append(item)
    return {**names, **dict.fromkeys(waiting, "object")}


def _strings(part: Expression) -> tuple[str, ...]:
    if isinstance(part, str) or not all(isinstance(each, str) for each in part):
        raise ValueError(f"PDDL: got {part!r}; need names")
    return tuple(cast("list[str]", part))
