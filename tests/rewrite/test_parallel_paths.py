# ruff: noqa: ARG002
"""Parallel paths: independent calls of a path become one action, which does the same in the real environment."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.explore.stage import Letters, grow, runner
from tests.policy import families

from bough.context import Full, Plain, Tagged, ToolCalls
from bough.engine import Scripted
from bough.env import Branching, InProcessHost, ParallelCalls, Split, State, Step
from bough.explore import Demonstration
from bough.methods.dta_llama import dta_llama
from bough.policy.chat import ChatRenderer
from bough.rewrite import ParallelPaths
from bough.rollout import Limits, PolicyFormat
from bough.searches.dfsdt import dfsdt
from bough.train.check import check
from bough.tree import (
    Action,
    Kind,
    Outcome,
    Rewarded,
    Source,
    Task,
    ToolCall,
    Tree,
    action_in,
    action_text,
    messages_in,
    plain_text,
    text_in,
)
from bough.worlds.frozenlake.preset import frozenlake
from bough.worlds.pantry.preset import pantry


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """Find who lives where: two names are found by a list, and their streets by the names."""

    branching: Branching = Branching.COPY
    instructions: str = "go"

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return []

    def start(self, task: Task) -> State:
        return State(observation="who lives near the park?", key="0", value=())

    def step(self, state: State, action: str) -> Step:
        results = {
            "list park": "ann bob",
            "street ann": "elm",
            "street bob": "oak",
            "near elm oak": "both",
            "weather park": "sunny",
        }
        done = (*state.value, action)  # type: ignore[misc]
        solved = action == "near elm oak" and {"street ann", "street bob"} <= set(done)
        return Step(
            state=State(observation=results.get(action, "what?"), key=str(done), value=done),
            valid=action in results,
            success=solved,
            reward=float(solved),
            outcome=Outcome.TERMINATED if solved else Outcome.OPEN,
        )

    def plan(self, state: State) -> tuple[str, ...]:
        words = ["list park", "weather park", "street ann", "nothing", "street bob", "near elm oak"]
        return tuple(words[len(state.value) :])  # type: ignore[arg-type]


FORMAT = PolicyFormat(renderer=Letters(), context=Full(), parser=Tagged())


def town() -> Rewarded:
    place = runner(Scripted(script=lambda _: ()), InProcessHost(env=Town()), limits=Limits(turns=9))
    place = replace(place, agent=replace(place.agent, parser=Tagged()))
    (tree,) = grow(place, Demonstration()).trees
    return Rewarded(tree=tree, channels={"won": np.nan_to_num(tree.env_reward)})


def spoken(tree: Tree) -> list[str]:
    return [str(text_in(tree.info[node])) for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]


def test_a_turn_comes_after_the_turns_whose_results_it_uses() -> None:
    (made,) = ParallelPaths()([town()], FORMAT)
    assert spoken(made.tree) == [
        "1: list park\n2: weather park",
        "1: street ann\n2: street bob",
        "near elm oak",
    ]
    seen = [str(made.tree.info[node]["text"]) for node in range(made.tree.nodes) if made.tree.kind[node] != Kind.ACTION]
    assert seen == ["who lives near the park?", "1: ann bob\n2: sunny", "1: elm\n2: oak", "both"]
    acts = made.tree.kind == Kind.ACTION
    assert set(made.tree.source[acts].tolist()) == {Source.TEACHER}
    # The environment of parallel calls gives the observations that the demonstration has.
    env = ParallelCalls(env=Town())
    state = env.start(Task(id="t"))
    for action, expected in zip(spoken(made.tree), seen[1:], strict=True):
        step = env.step(state, action)
        state = step.state
        assert plain_text(state.observation) == expected
    assert step.success


def test_limits_and_tools_that_are_alone() -> None:
    (two,) = ParallelPaths(max_calls=1)([town()], FORMAT)
    assert spoken(two.tree) == ["list park", "weather park", "street ann", "street bob", "near elm oak"]
    (alone,) = ParallelPaths(alone=("weather",))([town()], FORMAT)
    assert spoken(alone.tree)[:2] == ["list park", "weather park"]
    assert not ParallelPaths()([town()], replace(FORMAT, max_tokens=10))
    with pytest.raises(ValueError, match=r"parser=Plain: got the action '1: list park'"):
        ParallelPaths()([town()], replace(FORMAT, parser=Plain()))
    with pytest.raises(ValueError, match=r"ParallelPaths.max_calls: got 0"):
        ParallelPaths(max_calls=0)


def test_calls_of_tools_are_joined_and_do_the_same_in_the_pantry() -> None:
    """All purchases of the oracle follow from its look, and are one action."""
    renderer = ChatRenderer(families.tokenizer("qwen2.5"), template={})
    world = pantry()
    place = runner(Scripted(script=lambda _: ()), InProcessHost(env=world.env), limits=world.limits, max_tokens=256)
    place = replace(place, agent=replace(place.agent, renderer=renderer, parser=ToolCalls()))
    tasks = [task for task in world.env.tasks("train", 40, 0) if len({*task.data["needed"]} - {*task.data["has"]}) == 3]
    (tree,) = asyncio.run(place.run(Demonstration(), tasks[:1], seed=0)).trees
    policy_format = PolicyFormat(renderer=renderer, context=Full(), parser=ToolCalls())
    (made,) = ParallelPaths()([Rewarded(tree=tree, channels={"won": np.nan_to_num(tree.env_reward)})], policy_format)
    acts = [node for node in range(made.tree.nodes) if made.tree.kind[node] == Kind.ACTION]
    actions: list[Any] = [action_in(made.tree.info[node]) for node in acts]
    assert [len(action.calls) for action in actions] == [1, 3, 0]
    assert {call.name for call in actions[1].calls if isinstance(call, ToolCall)} == {"buy"}
    state, step = world.env.start(tasks[0]), None
    for node, action in zip(acts, actions, strict=True):
        step = world.env.step(state, action)
        state = step.state
        if action.calls:
            expected = [each.content for each in messages_in(made.tree.info[node + 1])]
            assert [each.content for each in state.observation] == expected  # type: ignore[union-attr]
    assert step is not None
    assert (step.success, step.reward) == (True, 1.0)


def test_an_action_of_several_calls_stays_whole_and_the_answer_comes_last() -> None:
    assert action_text(Action(text="done")) == "done"
    (made,) = ParallelPaths(min_characters=99)([town()], FORMAT)
    assert spoken(made.tree)[-1] == "near elm oak", "without any dependency"
    assert len(spoken(made.tree)) == 2


def test_the_method_searches_depth_first_and_wraps_environments_of_text() -> None:
    run = dta_llama(frozenlake())
    check(run)
    assert run.world.env == ParallelCalls(env=frozenlake().env)
    assert (run.method.explorer, run.method.demonstrations.revise) == (dfsdt(), ParallelPaths())
    tools = dta_llama(pantry())
    check(tools)
    assert tools.world.env == pantry().env
