"""ZeroSearch's curriculum: the noise of each step's tasks."""

import asyncio
from itertools import pairwise

import pytest
from tests.trees import PROMPT, N, build, rewarded

from bough.hooks import SearchNoise
from bough.hooks.hook import HookSetup
from bough.hooks.hook_state import restore, save
from bough.hooks.search_noise import SearchNoiseState
from bough.tree import Action, Task, ToolCall
from bough.worlds.search import KnowledgeGraph, SearchQa


async def nobody(task: Task) -> tuple[str, ...]:
    raise AssertionError(task)


def noises(state: SearchNoiseState, steps: int) -> list[float]:
    found: list[float] = []
    for _ in range(steps):
        (task,) = asyncio.run(state.rewrite([Task(id="a", data={"question": "Who?"})], nobody, 0))
        assert (task.id, task.data["question"]) == ("a", "Who?")
        found.append(task.data["noise"])  # type: ignore[arg-type]
        assert state.observe() == {"search/noise": found[-1]}
    return found


def fresh(settings: SearchNoise) -> SearchNoiseState:
    return settings.build(HookSetup(vocab_tokens=10))


def test_the_example_in_words() -> None:
    found = noises(fresh(SearchNoise(steps=4)), 6)
    assert found == pytest.approx([0.0, 0.0690, 0.1667, 0.3047, 0.5, 0.5], abs=1e-4)


def test_the_ends_and_the_curve() -> None:
    rule = SearchNoise(start=0.1, end=0.7, steps=10)
    found = [rule.at(step) for step in range(11)]
    assert (found[0], found[10], rule.at(99)) == (0.1, pytest.approx(0.7), pytest.approx(0.7))
    rises = [after - before for before, after in pairwise(found)]
    assert rises == sorted(rises), "convex: it grows late"
    early = SearchNoise(base=0.25, steps=10)
    assert early.at(5) > 0.25 > SearchNoise(steps=10).at(5)
    assert {SearchNoise(start=0.5, end=0.5).at(step) for step in (0, 50, 300)} == {0.5}


def test_the_metric_is_of_the_tasks_that_were_played() -> None:
    """With staleness 1 the tasks of the second step are drawn in the first."""
    state = fresh(SearchNoise(start=0.25, steps=4))
    batches = [asyncio.run(state.rewrite([Task(id="a")], nobody, 0)) for _ in range(2)]
    for (task,) in batches:
        state.transform([rewarded(build(N(parent=-1, kind=PROMPT), task=task))], 0)
        assert state.observe() == {"search/noise": task.data["noise"]} == {"search/noise": 0.25}


def test_a_resumed_hook_goes_on() -> None:
    one, two = fresh(SearchNoise(steps=5)), fresh(SearchNoise(steps=5))
    noises(one, 3)
    restore(two.data, save(one.data))
    assert noises(one, 2) == noises(two, 2)


def test_the_environment_reads_the_noise_of_the_task() -> None:
    env = SearchQa(source=KnowledgeGraph(entities=100))
    tasks = env.tasks("train", 20, 0)
    state = fresh(SearchNoise(start=1.0, end=1.0))
    noisy = asyncio.run(state.rewrite(tasks, nobody, 0))

    def found(task: Task) -> bool:
        query = task.data["evidence"][0]["query"]  # type: ignore[index]
        call = ToolCall(name="search", arguments={"query": query})
        after = env.step(env.start(task), Action(calls=(call,))).state.value
        return task.data["evidence"][0]["document"] in after.listed  # type: ignore[index, attr-defined]

    assert all(map(found, tasks))
    assert not any(map(found, noisy))


@pytest.mark.parametrize("fields", [{"start": -0.1}, {"end": 1.1}, {"base": 1.0}, {"base": 0.0}, {"steps": 0}])
def test_settings_out_of_range(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="SearchNoise"):
        SearchNoise(**fields)  # type: ignore[arg-type]
