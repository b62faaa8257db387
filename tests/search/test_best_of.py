"""Answers among independent paths: by a process reward model, and by its weighted vote."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import World, runner
from tests.search.game import answer
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.methods.med_s3 import med_s3
from bough.search import BestOf, CriticValue
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree import Outcome, Task, Ternary, Tree
from bough.worlds.frozenlake.preset import frozenlake

END, YES, NO = Outcome.TERMINATED, Ternary.YES, Ternary.NO


def tree(how: BestOf, letters: str, values: dict[str, float]) -> Tree:
    """One-turn paths that end with the letters, one after another; a critic values a path by its letter."""
    left = list(letters)
    engine = Scripted(script=lambda _: (ord(left.pop(0)),))

    async def critic(texts: Sequence[tuple[int, ...]]) -> list[float]:
        return [values[chr(text[-1])] for text in texts]

    place = runner(engine, InProcessHost(env=World(length=1)))
    place = replace(place, agent=replace(place.agent, critic=critic))
    how = replace(how, judge=how.judge or CriticValue(of="action"), n=len(letters), stop_value=None)
    return asyncio.run(place.run(how, [Task(id="t")], seed=0)).trees[0]


@dataclass(frozen=True, slots=True)
class Noted:
    """A critic's values of paths, noted by action."""

    found: list[tuple[str, float]]

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        value = await CriticValue(of="action")(tree, node)
        self.found.append((node.action, value))
        return value


@pytest.mark.parametrize(("vote", "expected"), [(False, "a"), (True, "b")])
def test_two_good_paths_outvote_a_better_one(vote: bool, expected: str) -> None:
    noted = Noted([])
    # The engine writes its stop token itself, so the critic's last token is the letter.
    grown = tree(BestOf(judge=noted, vote=vote, max_concurrent=1), "abbc", {"a": 0.6, "b": 0.45, "c": 0.1})
    assert noted.found == [("a", 0.6), ("b", 0.45), ("b", 0.45), ("c", 0.1)]
    assert answer(grown) == [expected]


@pytest.mark.parametrize(("stop_value", "turns"), [(1.0, 3), (None, 6)])
def test_a_success_is_the_last_path(stop_value: float | None, turns: int) -> None:
    letters = iter("bbabab")
    place = runner(Scripted(script=lambda _: (ord(next(letters)),)), InProcessHost(env=World(length=1)))
    how = BestOf(n=6, max_concurrent=1, stop_value=stop_value)
    (grown,) = asyncio.run(place.run(how, [Task(id="t")], seed=0)).trees
    assert grown.counts.turns == turns
    assert answer(grown) == ["a"]


def test_equal_values_are_self_consistency() -> None:
    assert answer(tree(BestOf(vote=True), "acbb", {"a": 0.5, "b": 0.5, "c": 0.5})) == ["b"]


def test_a_fall_of_value_is_a_penalty_of_the_step_in_the_reward_models_target() -> None:
    """Two of three paths through `a` succeed; below it one of two through `aa`: the fall 1/6 is taken off."""
    run = med_s3(frozenlake())
    paths = rewarded(
        build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION),
            N(parent=1, kind=OBSERVATION),
            N(parent=2, kind=ACTION),
            N(parent=3, kind=OBSERVATION),
            N(parent=4, kind=ACTION),
            N(parent=5, kind=OBSERVATION, outcome=END, success=YES),
            N(parent=4, kind=ACTION),
            N(parent=7, kind=OBSERVATION, outcome=END, success=NO),
            N(parent=2, kind=ACTION),
            N(parent=9, kind=OBSERVATION, outcome=END, success=YES),
        )
    )
    (credited,) = run.method.credit([paths])
    target = credited.value_targets["value"]
    assert target[[1, 3, 5, 7, 9]] == pytest.approx([2 / 3, 1 / 2 - 1 / 6, 1, -0.5, 1])
    assert np.isnan(target[0])


def test_random_answers_are_not_better_by_a_vote_of_a_blind_critic() -> None:
    luck = random.Random(0)
    letters = "".join(luck.choice("ab") for _ in range(9))
    most = max("ab", key=letters.count)
    assert answer(tree(BestOf(vote=True), letters, {"a": 0.3, "b": 0.3})) == [most]
