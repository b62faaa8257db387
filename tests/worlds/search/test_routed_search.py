"""Several knowledge bases: routing, the tool's schema, rewards of turns, and the oracle's routes."""

import pytest
from tests.env.play import follow

from bough.env import State, Step
from bough.tree import Action, Task, ToolCall
from bough.worlds.search import KnowledgeGraph, RoutedSearch
from bough.worlds.search.question import read_question

GRAPH = KnowledgeGraph(
    entities=200, relations=4, hops=(2, 2), alias_rate=0.0, facts_per_document=1, document_words=0, sentences=1
)
ENV = RoutedSearch(source=GRAPH, evidence_reward=0.5, search_cost=0.1, max_calls=8)


def search(state: State, base: str, query: str) -> Step:
    return ENV.step(state, Action(calls=(ToolCall(name="search", arguments={"base": base, "query": query}),)))


def begun() -> tuple[Task, State, str, str]:
    """A task, its start, and the base and the query of its first fact."""
    (task,) = ENV.tasks("train", 1, 1)
    state = ENV.start(task)
    plan = ENV.plan(state)
    assert plan
    (call,) = plan[0].calls
    assert isinstance(call, ToolCall)
    return task, state, str(call.arguments["base"]), str(call.arguments["query"])


def test_only_the_right_base_has_the_fact_and_finding_it_is_paid_at_its_turn() -> None:
    _, state, base, query = begun()
    right = search(state, base, query)
    assert right.info["seen"]
    assert right.reward == pytest.approx(0.5 / 2 - 0.1)
    for other in {*ENV.bases} - {base}:
        wrong = search(state, other, query)
        assert wrong.valid
        assert not wrong.info["seen"]
        assert wrong.reward == -0.1


def test_each_document_is_in_one_base_by_its_words() -> None:
    documents = GRAPH.documents()
    found: dict[str, set[int]] = {}
    for base in ENV.bases:
        call = ToolCall(name="search", arguments={"base": base, "query": "birthplace boss newspaper twin employer"})
        found[base] = {*ENV.search(Task(id="t"), call)}
    assert not found["places"] & found["firms"] | found["places"] & found["people"] | found["firms"] & found["people"]
    assert all("birthplace" in documents[number].text or "twin" in documents[number].text for number in found["places"])


def test_a_call_without_a_base_or_with_an_unknown_one_is_not_executed() -> None:
    _, state, _, query = begun()
    assert not search(state, "moon", query).valid
    bare = ENV.step(state, Action(calls=(ToolCall(name="search", arguments={"query": query}),)))
    assert not bare.valid
    assert [tool.name for tool in state.tools] == ["search", "read"]
    assert all(base in ENV.instructions for base in ENV.bases)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_oracle_routes_every_question(split: str) -> None:
    bases: set[str] = set()
    for task in ENV.tasks(split, 6, 0):  # type: ignore[arg-type]
        state = ENV.start(task)
        calls = [call for action in ENV.plan(state) or () for call in action.calls if isinstance(call, ToolCall)]
        bases |= {str(call.arguments["base"]) for call in calls if call.name == "search"}
        assert follow(ENV, state).success
        assert read_question(task).evidence
    assert len(bases) > 1


def test_a_single_base_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bases: got \['all'\]; need at least two"):
        RoutedSearch(bases={"all": ()})
    with pytest.raises(ValueError, match=r"RoutedSearch\.top: got 0"):
        RoutedSearch(top=0)
