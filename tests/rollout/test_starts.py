"""Trees of tasks that begin elsewhere than at the start."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.explore.stage import World, runner, scripted
from tests.rollout.test_writing import play

from bough.batch import pack
from bough.context import Window
from bough.credit import Grpo
from bough.engine import Scripted
from bough.env import Branching, EnvFault, InProcessHost, Replay, Split, State, Step
from bough.explore import Chains, Demonstration
from bough.reward import EnvReward
from bough.rollout import Cursor, Explorer, Limits, Rollout, Usage
from bough.rollout.runner import RolloutRunner, Rollouts
from bough.tree import Kind, Outcome, Rewarded, Source, Task, counted, leaves, path, turns


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Typewriter:
    """Types letters on a page that each start makes: three letters end it, "x" breaks the first page.

    The page is changed in place, and nothing notices an older state.
    """

    numbered: bool = False
    pages: list[list[str]] = field(default_factory=list[list[str]])
    branching = Branching.NONE
    instructions = ""

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        del split, seed
        return [Task(id=f"t{number}") for number in range(count)]

    def start(self, task: Task) -> State:
        del task
        self.pages.append([])
        return self._state(self.pages[-1])

    def step(self, state: State, action: str) -> Step:
        assert isinstance(state.value, list)
        if action == "x" and state.value is self.pages[0]:
            raise RuntimeError("the ribbon broke")
        state.value.append(action)
        over = len(state.value) == 3
        outcome = Outcome.TERMINATED if over else Outcome.OPEN
        return Step(state=self._state(state.value), reward=float(len(state.value)), outcome=outcome)

    def _state(self, page: list[str]) -> State:
        text = f"page {len(self.pages)}: " if self.numbered else ""
        return State(observation=f"{text}{''.join(page)}.", key="", value=page)


@pytest.mark.parametrize("begun", ["", "a", "ab"])
def test_chains_in_an_environment_that_cannot_branch_start_each_for_itself(begun: str) -> None:
    env = Typewriter()
    task = Task(id="t").after([*begun])
    (tree,) = grown(runner(scripted(lambda _: "c"), InProcessHost(env=env)), Chains(n=4, retries=0), task).trees
    ends = counted(tree)
    assert tree.outcome[ends].tolist() == [Outcome.TERMINATED] * 4
    assert env.pages == [[*begun, *"ccc"[len(begun) :]]] * 4
    assert tree.counts.replayed_turns == 3 * len(begun)
    assert turns(tree)[ends].tolist() == [3] * 4
    assert all(tree.env_reward[path(tree, int(end))].sum() == 6 for end in ends)


def test_a_retry_starts_for_itself_too() -> None:
    env = Typewriter()
    (tree,) = grown(runner(scripted(lambda _: "x"), InProcessHost(env=env)), Chains(n=1, retries=1), Task(id="t")).trees
    assert sorted(tree.outcome[leaves(tree)].tolist()) == sorted([Outcome.FAILED, Outcome.TERMINATED])
    assert env.pages == [[], ["x", "x", "x"]]


def test_a_start_that_differs_is_a_fault() -> None:
    place = runner(scripted(lambda _: "a"), InProcessHost(env=Typewriter(numbered=True)))
    (tree,) = grown(place, Chains(n=2, retries=0), Task(id="t")).trees
    assert sorted(tree.outcome[leaves(tree)].tolist()) == sorted([Outcome.FAILED, Outcome.TERMINATED])
    (fault,) = [str(info["fault"]) for info in tree.info if "fault" in info]
    assert fault.startswith("a new start of task t: got 'page 2: .' (key ''); need 'page 1: .' (key '') as before")


def test_a_state_that_was_changed_is_not_stepped_again() -> None:
    env = Typewriter()

    async def script(rollout: Rollout) -> None:
        inner = await rollout.advance(await rollout.root())
        assert isinstance(inner, Cursor)
        assert isinstance(await rollout.advance(inner), Cursor)
        assert await rollout.advance(inner, branch=1) is Outcome.FAILED
        (fault,) = [str(node.info["fault"]) for node in rollout.builder.nodes if "fault" in node.info]
        assert fault.startswith("a second action in a state after 1 actions: got an environment of branching NONE")
        assert "need Replay(env=...), or an explorer whose paths part at the start: Chains()" in fault

    play(runner(scripted(lambda _: "a"), InProcessHost(env=env)), script, Task(id="t"))
    assert env.pages == [["a", "a"]]
