# ruff: noqa: ARG002
"""Pairs that a search mines, against the exact action values of worlds small enough to enumerate."""

import random
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from tests.explore.stage import grow, runner, scripted
from tests.objective.test_search_pairs import view_of

from bough.batch import pack
from bough.credit import Searched
from bough.env import Branching, InProcessHost, Split, State, Step
from bough.objective import Pairs
from bough.rollout import Limits
from bough.searches.mcts import mcts
from bough.tree import Credited, Kind, Outcome, Rewarded, Task, path, token_node

LETTERS, LENGTH = "abc", 4


def good(task: str, said: str) -> bool:
    """Whether four letters are a solution; four of ten are."""
    return random.Random(f"{task}:{said}").random() < 0.4


def quality(task: str, said: str) -> float:
    """The exact chance that random letters after these make a solution."""
    ends = [said + "".join(rest) for rest in product(LETTERS, repeat=LENGTH - len(said))]
    return sum(good(task, end) for end in ends) / len(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Four letters, one at a turn; some words are solutions."""

    branching: Branching = Branching.COPY
    instructions: str = ""

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}{number}", seed=seed) for number in range(count)]

    def start(self, task: Task) -> State:
        return State(observation=".", key="", value=(task.id, ""))

    def step(self, state: State, action: str) -> Step:
        task, said = state.value[0], state.value[1] + action  # type: ignore[index]
        over = len(said) == LENGTH
        success = over and good(task, said)
        return Step(
            state=State(observation=said, key=said, value=(task, said)),
            outcome=Outcome.TERMINATED if over else Outcome.OPEN,
            success=success,
            reward=float(success),
            valid=True,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        return None


@pytest.fixture(scope="module")
def searched() -> list[Credited]:
    place = runner(
        scripted(lambda dice: dice.choice(LETTERS)),
        InProcessHost(env=Words()),
        limits=Limits(turns=LENGTH, tree_turns=80),
        max_tokens=2,
    )
    explorer = replace(mcts(width=4), stop_value=None)
    trees = grow(place, explorer, *(f"word{number}" for number in range(10))).trees
    return Searched()([Rewarded(tree=tree, channels={"env": np.asarray(tree.env_reward)}) for tree in trees])


def precision(searched: list[Credited], pairs: Pairs) -> tuple[float, int]:
    """Of the pairs whose sides are not equally good, the share that has them the right way round; and how many."""
    batch = pack(searched, paths=True)
    assert batch.path_index is not None
    found = pairs(view_of(*searched), "test")
    turn = batch.path_index.turn.numpy()
    token = batch.origin[batch.path_index.trained].numpy()[np.unique(turn, return_index=True)[1]]
    ends = np.cumsum([len(each.tree.token) for each in searched])
    score: list[list[float]] = []
    for unit in (found.won, found.lost):
        score.append([])
        for at in token[found.candidates.first[unit].numpy()].tolist():
            number = int(np.searchsorted(ends, at, side="right"))
            tree = searched[number].tree
            node = int(token_node(tree)[at - (ends[number] - len(tree.token))])
            acts = [step for step in path(tree, node).tolist() if tree.kind[step] == Kind.ACTION]
            score[-1].append(quality(tree.task.id, "".join(str(tree.info[step]["text"]) for step in acts)))
    apart = np.asarray(score[0]) - np.asarray(score[1])
    return float((apart > 0).sum() / (apart != 0).sum()), int((apart != 0).sum())


def test_most_pairs_are_the_right_way_round(searched: list[Credited]) -> None:
    """Best over worst is surer than best over second best, and a gap makes either surer."""
    worst, many = precision(searched, Pairs(unit="turn"))
    second, _ = precision(searched, Pairs(unit="turn", choice="best_second"))
    clear, fewer = precision(searched, Pairs(unit="turn", gap=0.4))
    assert many > 50
    assert fewer > 20
    assert worst >= 0.9
    assert worst > second >= 0.85
    assert clear >= 0.95
