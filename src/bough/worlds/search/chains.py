"""Questions about a chain of facts: the boss of the mentor of an entity."""

from collections.abc import Sequence
from random import Random

from bough.worlds.search.graph import Graph
from bough.worlds.search.question import Evidence, Question
from bough.worlds.search.solvable import RetrievableFacts, forward_query


def propose_chain(graph: Graph, starts: Sequence[int], hops: int, rng: Random) -> tuple[int, ...] | None:
    """Samples a walk of `hops` facts through different entities; None where it ends early.

    A relation is used again only where an entity has no unused one.
    """
    here = rng.choice(starts)
    visited, used, walk = {here}, set[str](), list[int]()
    for _ in range(hops):
        known = [index for index in graph.by_subject.get(here, ()) if graph.facts[index].value not in visited]
        fresh = [index for index in known if graph.facts[index].relation not in used] or known
        if not fresh:
            return None
        index = rng.choice(fresh)
        here = graph.facts[index].value
        visited.add(here)
        used.add(graph.facts[index].relation)
        walk.append(index)
    return tuple(walk)


def chain_question(found: RetrievableFacts, walk: Sequence[int], *, forward: bool = False) -> Question:
    """The question of a walk, whose answer is the last entity.

    Args:
        found: The retrievable facts.
        walk: Indices of facts.
        forward: Whether the question has the relations in the order of the walk.
    """
    graph, place = found.graph, found.corpus.locations
    facts = [graph.facts[index] for index in walk]
    start = graph.entities[facts[0].subject].name
    relations = [fact.relation for fact in facts]
    backward = " of ".join([*(f"the {each}" for each in reversed(relations)), start])
    text = f"Who is reached from {start} by {' '.join(relations)}?" if forward else f"Name {backward}."
    mentions = [start, *(fact.mention for fact in facts)]
    evidence = tuple(
        Evidence(
            document=place[index][0],
            text=place[index][1],
            query=forward_query(mentions[step], graph.facts[index].relation),
            after=(step - 1,) if step else (),
            entity=graph.entities[graph.facts[index].value].name,
        )
        for step, index in enumerate(walk)
    )
    last, entity = facts[-1].mention, graph.entities[facts[-1].value]
    spellings = (last, *(each for each in entity.spellings if each != last))
    content = " > ".join([start, *(f"{fact.relation} > {graph.entities[fact.value].name}" for fact in facts)])
    return Question(text=text, answers=(spellings,), evidence=evidence, content=content)


def chain_is_solvable(found: RetrievableFacts, walk: Sequence[int]) -> bool:
    """Whether a search for each fact of the walk, by the spelling that the fact before states, finds it."""
    facts = [found.graph.facts[index] for index in walk]
    mentions = [found.graph.entities[facts[0].subject].name, *(fact.mention for fact in facts)]
    return all(map(found.forward, walk, mentions))
