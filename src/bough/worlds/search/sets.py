"""Questions whose answer is a set of entities, in the shapes of WebLeaper (arXiv 2510.24697)."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from bough.worlds.search.graph import Graph
from bough.worlds.search.question import Evidence, Question
from bough.worlds.search.solvable import RetrievableFacts, backward_query, forward_query

SetShape: TypeAlias = Literal["set", "both", "either", "reverse"]
"""Entities with one value of a relation; with two values at once; with one or the other; with the value that a further
fact states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInstance:
    """A question about a set.

    Attributes:
        shape: Its shape.
        conditions: One or two, each a relation and the number of its value.
        anchor: For "reverse", the index of the fact that states the value.
        answers: Numbers of the required entities, ascending.
        facts: Indices of the facts about them, in the order of the answers.
    """

    shape: SetShape
    conditions: tuple[tuple[str, int], ...]
    anchor: int | None
    answers: tuple[int, ...]
    facts: tuple[int, ...]


def propose_set(
    graph: Graph, starts: Sequence[int], shape: SetShape, sizes: tuple[int, int], rng: Random
) -> SetInstance | None:
    """Samples a question; None where its set has too few or too many entities.

    Args:
        graph: The graph.
        starts: Numbers of the entities of the split.
        shape: Its shape.
        sizes: Minimum and maximum size of the set; a set of "both" may also have one entity.
        rng: Random numbers.
    """
    known = graph.by_subject.get(rng.choice(starts), ())
    if len(known) < 2:
        return None
    first, second = (graph.facts[index] for index in rng.sample(known, 2))
    anchor: int | None = None
    if shape == "reverse":
        anchor = rng.choice(known)
        value = graph.facts[anchor].value
        conditions = ((rng.choice(graph.relations_to[value]), value),)
    elif shape == "set":
        conditions = ((first.relation, first.value),)
    else:
        conditions = tuple(sorted([(first.relation, first.value), (second.relation, second.value)]))
    held = [{graph.facts[index].subject: index for index in graph.by_value.get(each, ())} for each in conditions]
    answers = {*held[0]}
    for other in held[1:]:
        answers = answers & {*other} if shape == "both" else answers | {*other}
    least = 1 if shape == "both" else sizes[0]
    if not least <= len(answers) <= sizes[1]:
        return None
    order = tuple(sorted(answers))
    facts = tuple(each[number] for number in order for each in held if number in each)
    return SetInstance(shape=shape, conditions=conditions, anchor=anchor, answers=order, facts=facts)


def set_is_solvable(found: RetrievableFacts, instance: SetInstance) -> bool:
    """Whether searches find all facts of the question, the anchor included."""
    graph, anchor = found.graph, instance.anchor
    if anchor is not None and not found.forward(anchor, graph.entities[graph.facts[anchor].subject].name):
        return False
    return all(map(found.backward, instance.facts))


def set_question(found: RetrievableFacts, instance: SetInstance) -> Question:
    """The question of an instance."""
    graph, place = found.graph, found.corpus.locations
    values = [graph.entities[value].name for _, value in instance.conditions]
    evidence: list[Evidence] = []
    if instance.anchor is not None:
        fact = graph.facts[instance.anchor]
        start = graph.entities[fact.subject].name
        document, text = place[instance.anchor]
        evidence.append(Evidence(document=document, text=text, query=forward_query(start, fact.relation)))
        values = [f"the {fact.relation} of {start}"]
    for index in instance.facts:
        fact, (document, text) = graph.facts[index], place[index]
        query = backward_query(graph.entities[fact.value].spellings, fact.relation)
        name = graph.entities[fact.subject].name
        after = (0,) if instance.anchor is not None else ()
        evidence.append(Evidence(document=document, text=text, query=query, after=after, entity=name))
    joint = " or " if instance.shape == "either" else " and "
    condition = joint.join(
        f"whose {relation} is {value}" for (relation, _), value in zip(instance.conditions, values, strict=True)
    )
    named = [f"{relation} {graph.entities[value].name}" for relation, value in instance.conditions]
    return Question(
        text=f"Name all {condition}.",
        answers=tuple(graph.entities[number].spellings for number in instance.answers),
        evidence=tuple(evidence),
        content=" ".join([instance.shape, *named, *(values if instance.anchor is not None else ())]),
    )
