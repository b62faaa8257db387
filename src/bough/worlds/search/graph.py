"""A knowledge graph of invented entities: each relation of an entity has exactly one value."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TypeAlias

from bough.env.env import Split
from bough.env.splits import split_of
from bough.worlds.search.words import names

EntityType: TypeAlias = str

SCHEMA: Mapping[EntityType, Mapping[str, EntityType]] = {
    "person": {
        "boss": "person", "friend": "person", "mentor": "person", "rival": "person", "doctor": "person",
        "lawyer": "person", "cousin": "person", "partner": "person", "coach": "person", "tutor": "person",
        "home": "city", "birthplace": "city", "employer": "company", "bank": "company",
    },
    "city": {"mayor": "person", "architect": "person", "twin": "city", "newspaper": "company"},
    "company": {"founder": "person", "director": "person", "seat": "city", "supplier": "company"},
}  # fmt: skip
"""The relations of each type of entity, with the type of their values."""

SHARES: Mapping[EntityType, float] = {"person": 0.6, "city": 0.2, "company": 0.2}

PEOPLE: Mapping[EntityType, Mapping[str, EntityType]] = {
    "person": dict.fromkeys(
        (
            "boss", "friend", "mentor", "rival", "doctor", "lawyer", "cousin", "partner", "coach", "tutor", "nurse",
            "tailor", "landlord", "neighbour", "butcher", "barber", "pilot", "guard", "dentist", "banker", "cook",
            "driver", "painter", "agent",
        ),
        "person",
    )
}  # fmt: skip
"""People alone, with relations enough for long chains in which each occurs once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """An entity.

    Attributes:
        number: Its place in `Graph.entities`.
        name: Two words.
        alias: Another name, "" for none.
        type: A key of the schema.
        split: The split of all questions about it; None where the split is by question.
    """

    number: int
    name: str
    alias: str
    type: EntityType
    split: Split | None

    @property
    def spellings(self) -> tuple[str, ...]:
        """The name, and the alias where there is one."""
        return (self.name, self.alias) if self.alias else (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A relation of an entity.

    Attributes:
        subject: Number of the entity.
        relation: A relation of its type.
        value: Number of the other entity.
        mention: The spelling of the value in the documents.
    """

    subject: int
    relation: str
    value: int
    mention: str


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Entities and facts. A fact connects entities of one `Entity.split`.

    Attributes:
        entities: By number.
        facts: By subject, then in the order of the schema.
        other_names: Names of no entity, for distractors.
    """

    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    other_names: tuple[str, ...]

    @cached_property
    def by_subject(self) -> Mapping[int, tuple[int, ...]]:
        """Indices of the facts of each entity."""
        found: dict[int, list[int]] = defaultdict(list)
        for index, fact in enumerate(self.facts):
            found[fact.subject].append(index)
        return {subject: tuple(indices) for subject, indices in found.items()}

    @cached_property
    def by_value(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        """Indices of the facts with a relation to an entity."""
        found: dict[tuple[str, int], list[int]] = defaultdict(list)
        for index, fact in enumerate(self.facts):
            found[fact.relation, fact.value].append(index)
        return {pair: tuple(indices) for pair, indices in found.items()}

    @cached_property
    def by_relation(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the facts with each relation."""
        found: dict[str, list[int]] = defaultdict(list)
        for index, fact in enumerate(self.facts):
            found[fact.relation].append(index)
        return {relation: tuple(indices) for relation, indices in found.items()}

    @cached_property
    def relations_to(self) -> Mapping[int, tuple[str, ...]]:
        """The relations with each entity as value, sorted."""
        found: dict[int, list[str]] = defaultdict(list)
        for relation, value in sorted(self.by_value):
            found[value].append(relation)
        return {value: tuple(relations) for value, relations in found.items()}


def make_graph(
    *, entities: int, relations: int, alias_rate: float, words: int, split_entities: bool, people: bool, seed: int
) -> Graph:
    """Makes a graph; the same arguments give the same one.

    Args:
        entities: Number of entities.
        relations: Maximum number of facts of an entity.
        alias_rate: Probability that an entity has an alias, in [0, 1].
        words: Number of different first words, and of second words, of names.
        split_entities: Whether each entity belongs to a split, by its name.
        people: Whether all are people, with the relations of `PEOPLE`.
        seed: Seed of the graph.
    """
    rng = Random(f"graph {seed}")
    supply = names(words, rng)
    made: list[Entity] = []
    schema = PEOPLE if people else SCHEMA
    types = ["person"] * entities if people else rng.choices([*SHARES], [*SHARES.values()], k=entities)
    for number, kind in enumerate(types):
        name, alias = next(supply), next(supply) if rng.random() < alias_rate else ""
        made.append(
            Entity(number=number, name=name, alias=alias, type=kind, split=split_of(name) if split_entities else None)
        )
    pools: dict[tuple[Split | None, EntityType], list[Entity]] = defaultdict(list)
    for entity in made:
        pools[entity.split, entity.type].append(entity)
    facts: list[Fact] = []
    for entity in made:
        known = schema[entity.type]
        chosen = {*rng.sample([*known], min(relations, len(known)))}
        for relation in (each for each in known if each in chosen):
            values = [each for each in pools[entity.split, known[relation]] if each.number != entity.number]
            if values:
                value = rng.choice(values)
                fact = Fact(
                    subject=entity.number,
                    relation=relation,
                    value=value.number,
                    mention=rng.choice(value.spellings),
                )
                facts.append(fact)
    return Graph(entities=tuple(made), facts=tuple(facts), other_names=tuple(supply))
