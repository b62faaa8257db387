"""Questions about a list of entities, of which one has a value: each has to be looked up until it is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bough.worlds.search.graph import Graph
from bough.worlds.search.question import Evidence, Question
from bough.worlds.search.solvable import RetrievableFacts, forward_query


@dataclass(frozen=True, slots=True, kw_only=True)
class ListInstance:
    """A question about a list.

    Attributes:
        facts: Indices of facts with one relation, each about another entity, in the order of the list.
        answer: The index in `facts` of the only one with its value.
    """

    facts: tuple[int, ...]
    answer: int


def propose_list(graph: Graph, starts: Sequence[int], sizes: tuple[int, int], rng: Random) -> ListInstance | None:
    """Samples a question; None where too few entities have the relation, or the value has an alias.

    Args:
        graph: The graph.
        starts: Numbers of the entities of the split.
        sizes: Minimum and maximum number of entities in the list.
        rng: Random numbers.
    """
    known = graph.by_subject.get(rng.choice(starts), ())
    if not known:
        return None
    answer, size, allowed = rng.choice(known), rng.randint(*sizes), {*starts}
    wanted = graph.facts[answer]
    others = [
        index
        for index in graph.by_relation[wanted.relation]
        if (fact := graph.facts[index]).subject in allowed and wanted.value not in (fact.value, fact.subject)
    ]
    if graph.entities[wanted.value].alias or len(others) < size - 1:
        return None
    facts = rng.sample(others, size - 1)
    place = rng.randrange(size)
    facts.insert(place, answer)
    return ListInstance(facts=tuple(facts), answer=place)


def list_is_solvable(found: RetrievableFacts, instance: ListInstance) -> bool:
    """Whether searches for the listed entities find their facts, and no search for the value finds the answer."""
    graph = found.graph
    named = all(found.forward(index, graph.entities[graph.facts[index].subject].name) for index in instance.facts)
    return named and not found.backward(instance.facts[instance.answer])


def list_question(found: RetrievableFacts, instance: ListInstance) -> Question:
    """The question of an instance. Its evidence ends with the answer's fact: the others are not needed."""
    graph, locations = found.graph, found.corpus.locations
    facts = [graph.facts[index] for index in instance.facts]
    names = [graph.entities[fact.subject].name for fact in facts]
    answer = facts[instance.answer]
    shown = [locations[index] for index in instance.facts[: instance.answer + 1]]
    evidence = [
        Evidence(document=document, text=text, query=forward_query(name, answer.relation), entity=name)
        for name, (document, text) in zip(names, shown, strict=False)
    ]
    return Question(
        text=f"Which of {', '.join(names)} has the {answer.relation} {answer.mention}?",
        answers=(graph.entities[answer.subject].spellings,),
        evidence=tuple(evidence),
        content=" ".join(["among", answer.relation, answer.mention, *names]),
    )
