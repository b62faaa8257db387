"""Trees of tasks that begin elsewhere than at the start."""

import asyncio

import numpy as np
import pytest
from tests.explore.stage import World, runner, scripted
from tests.rollout.test_writing import play

from bough.batch import pack
from bough.context import Window
from bough.credit import Grpo
from bough.engine import Scripted
from bough.env import EnvFault, InProcessHost, Replay
from bough.explore import Chains, Demonstration
from bough.reward import EnvReward
from bough.rollout import Cursor, Explorer, Limits, Rollout, Usage
from bough.rollout.runner import RolloutRunner, Rollouts
from bough.tree import Kind, Outcome, Rewarded, Source, Task, counted, turns


def grown(place: RolloutRunner, explorer: Explorer, *tasks: Task) -> Rollouts:
    return asyncio.run(place.run(explorer, tasks, seed=0))


@pytest.mark.parametrize("context", [Window(turns=1), Window(turns=9)], ids=str)
def test_the_agent_goes_on_from_where_the_task_begins(context: Window) -> None:
    engine = scripted(lambda _: "a")
    (tree,) = grown(runner(engine, context=context), Chains(n=2), Task(id="t").after(["a", "b"])).trees
    actions = np.flatnonzero(tree.kind == Kind.ACTION)
    assert [tree.info[node]["text"] for node in actions] == ["a", "b", "a", "a"]
    assert tree.source[actions].tolist() == [Source.REPLAYED] * 2 + [Source.SAMPLED] * 2
    assert turns(tree)[counted(tree)].tolist() == [3, 3]
    read = ["".join(map(chr, request.prompt_tokens)) for request in engine.requests]
    assert read == (["{go: }{ab}"] * 2 if context.turns == 1 else ["{go: }{.}a\0{a}b\0{ab}"] * 2)


def test_the_limit_of_turns_is_for_what_the_agent_does() -> None:
    place = runner(scripted(lambda _: "a"), InProcessHost(env=World(length=9)), limits=Limits(turns=2))
    (tree,) = grown(place, Chains(n=1), Task(id="t").after(["a", "b", "a"])).trees
    assert turns(tree)[counted(tree)].tolist() == [5]


def test_what_was_played_again_is_not_learned_from() -> None:
    engine = scripted(lambda chance: chance.choice("ab"))
    trees = grown(runner(engine), Chains(n=6), Task(id="t").after(["a", "a"])).trees
    credited = Grpo()([Rewarded(tree=tree, channels=EnvReward()([tree])[0]) for tree in trees])
    batch = pack(credited)
    assert len(batch.at) == 6 * 2
    assert credited[0].positive.any()
    assert not credited[0].positive[~trees[0].sampled].any()


def test_it_costs_turns() -> None:
    async def script(rollout: Rollout) -> None:
        assert len((await rollout.root()).past) == 2
        assert rollout.budget.spent == Usage(turns=2)

    async def replayed(rollout: Rollout) -> None:
        root = await rollout.root()
        for branch in (0, 1):
            assert isinstance(await rollout.advance(root, branch=branch), Cursor)
        assert rollout.budget.spent.turns == 2 + 1 + 1 + 2
        assert rollout.budget.replayed == 2

    task = Task(id="t").after(["a", "b"])
    play(runner(scripted(lambda _: "a")), script, task)
    play(runner(scripted(lambda _: "a"), InProcessHost(env=Replay(env=World(length=5)))), replayed, task)


def test_an_oracle_shows_the_rest() -> None:
    (tree,) = grown(runner(Scripted(script=lambda _: ())), Demonstration(), Task(id="t").after(["a"])).trees
    assert tree.source[tree.kind == Kind.ACTION].tolist() == [Source.REPLAYED, Source.TEACHER, Source.TEACHER]
    assert tree.outcome[-1] == Outcome.TERMINATED


@pytest.mark.parametrize(
    ("start", "limits", "said"),
    [
        ("aaaa", Limits(), "over after 3 of 4 actions (terminated)"),
        ("aa", Limits(tree_turns=1), "over after 2 of 2 actions (truncated by tree_turns)"),
    ],
)
def test_a_start_that_leaves_nothing_to_do_is_refused(start: str, limits: Limits, said: str) -> None:
    with pytest.raises(ValueError, match=r"task t after .*: got a start that is") as caught:
        grown(runner(scripted(lambda _: "a"), limits=limits), Chains(n=1), Task(id="t").after(start))
    assert said in str(caught.value)


def test_a_fault_on_the_way_is_a_start_that_failed() -> None:
    place = runner(scripted(lambda _: "a"))
    result = grown(place, Chains(n=1), Task(id="t").after(["raise"]), Task(id="u").after(["a"]))
    assert len(result.trees) == 1
    (fault,) = result.unstarted.values()
    assert "a step too far" in fault

    async def script(rollout: Rollout) -> None:
        with pytest.raises(EnvFault):
            await rollout.root()

    play(place, script, Task(id="t").after(["raise"]))
