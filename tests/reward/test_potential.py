"""Shaping keeps the best policy of every process, raw gains do not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, random_tree, seeds

from bough.env import State
from bough.reward import PotentialGain, PotentialShaping, Reward
from bough.reward.potential import state_potentials
from bough.tree import Appraisal, Entry, Floats, Outcome, Rewarded, StageError, Tree, Verdict, path_view
from bough.worlds.frozenlake import FrozenLake

DONE = Outcome.TERMINATED


def known(tree: Tree, values: dict[int, float], column: str = "progress") -> Tree:
    """The tree with a potential for these turns."""
    entries = {node: Entry(value=value, verdict=Verdict.OK, votes=1) for node, value in values.items()}
    return replace(tree, appraisals={column: Appraisal.of(entries, tree.nodes)})


def per_turn(tree: Tree, reward: Reward) -> Floats:
    """[S]: what each turn of each path is paid."""
    (channels,) = reward([tree])
    return path_view([Rewarded(tree=tree, channels=channels)]).reward


def test_worked_example() -> None:
    path = known(chains([1.0], turns=5), dict(zip([1, 3, 5, 7, 9], [0, 0.2, 0.6, 0.45, 0.67], strict=True)))
    paid = per_turn(path, PotentialShaping(discount=0.9))
    assert paid == pytest.approx([0.18, 0.34, -0.195, 0.153, -0.67])
    assert 0.9 ** np.arange(5) @ paid == pytest.approx(0.0)
    gain = per_turn(known(path, {1: 0.1, 3: 0.4, 5: 0.3, 7: 0.3, 9: 0.9}, "probe"), PotentialGain())
    assert gain == pytest.approx([0.3, -0.1, 0.0, 0.6, 0.0])


def test_a_truncated_path_keeps_its_last_potential() -> None:
    cut = chains([0.0], turns=2, outcomes=[Outcome.TRUNCATED])
    assert per_turn(known(cut, {1: 0.2, 3: 0.6}), PotentialShaping()) == pytest.approx([0.4, 0.0])
    ended = known(chains([0.0], turns=2), {1: 0.2, 3: 0.6})
    assert per_turn(ended, PotentialShaping()) == pytest.approx([0.4, -0.6])


def test_branches_of_one_state_share_its_potential() -> None:
    """Two observations after one action, the first of which two turns continue."""
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, outcome=DONE),
        N(parent=2, kind=ACTION, outcome=DONE),
        N(parent=1, kind=OBSERVATION),
        N(parent=5, kind=ACTION, outcome=DONE),
    )
    valued = known(tree, {1: 0.1, 3: 0.5, 4: 0.7, 6: 0.2})
    assert per_turn(valued, PotentialShaping()) == pytest.approx([0.5, -0.6, 0.5, -0.6, 0.1, -0.2])
    assert per_turn(known(tree, {1: 0.1, 3: 0.5, 4: 0.7, 6: 0.2}, "probe"), PotentialGain()) == pytest.approx(
        [0.5, 0.0, 0.5, 0.0, 0.1, 0.0]
    )


@given(seeds())
def test_discounted_shaping_telescopes_on_every_path(seed: int) -> None:
    """To minus the first state's potential, plus the discounted last one of a truncated path."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    acts = np.flatnonzero(tree.kind == ACTION).tolist()
    valued = known(tree, dict(zip(acts, rng.normal(size=len(acts)).tolist(), strict=True)))
    (channels,) = PotentialShaping(discount=0.8)([valued])
    view = path_view([Rewarded(tree=valued, channels=channels)])
    value, _ = state_potentials(valued, "progress", "column")
    for path in np.flatnonzero(view.turns).tolist():
        steps = slice(int(view.start[path]), int(view.start[path + 1]))
        kept = value[view.place[steps.stop - 1]] if tree.outcome[view.leaf[path]] == Outcome.TRUNCATED else 0.0
        decay = 0.8 ** np.arange(steps.stop - steps.start + 1, dtype=np.float64)
        assert decay[:-1] @ view.reward[steps] == pytest.approx(decay[-1] * kept - value[view.place[steps.start]])


def best_moves(rewards: dict[tuple[str, str], float], moves: dict[tuple[str, str], str | None]) -> dict[str, set[str]]:
    """The best actions of every state at discount .9, by value iteration."""
    states = {state for state, _ in moves}
    value = dict.fromkeys(states, 0.0)

    def worth(state: str, action: str) -> float:
        after = moves[state, action]
        return rewards[state, action] + (0.9 * value[after] if after is not None else 0.0)

    for _ in range(400):
        value = {state: max(worth(s, a) for s, a in moves if s == state) for state in states}
    return {state: {a for s, a in moves if s == state and worth(s, a) > value[state] - 1e-9} for state in states}


def lake() -> tuple[dict[tuple[str, str], str | None], dict[tuple[str, str], float]]:
    """Every move of a lake of nine cells: the next cell, None for the end; and its reward."""
    env = FrozenLake(size=3, max_steps=1000)
    (task,) = env.tasks("train", 1, seed=0)
    moves: dict[tuple[str, str], str | None] = {}
    rewards: dict[tuple[str, str], float] = {}
    queue, seen = [env.start(task)], set[str]()
    while queue:
        state: State = queue.pop()
        here = str(state.observation)
        if here in seen:
            continue
        seen.add(here)
        for action in state.admissible or ():
            step = env.step(state, action)
            over = step.outcome is not Outcome.OPEN
            moves[here, action] = None if over else str(step.state.observation)
            rewards[here, action] = step.reward
            if not over:
                queue.append(step.state)
    return moves, rewards


def shaped(reward: Reward, before: float, after: float | None, column: str) -> float:
    """What a transition between states of these potentials is paid."""
    if after is None:
        return float(per_turn(known(chains([0.0]), {1: before}, column), reward)[0])
    return float(per_turn(known(chains([0.0], turns=2), {1: before, 3: after}, column), reward)[0])


def test_the_best_moves_on_a_lake_stay_the_best() -> None:
    moves, rewards = lake()
    states = sorted({state for state, _ in moves})
    best = best_moves(rewards, moves)
    changed = 0
    for seed in range(3):
        potential = dict(zip(states, np.random.default_rng(seed).normal(size=len(states)).tolist(), strict=True))

        def with_pay(reward: Reward, column: str, potential: dict[str, float] = potential) -> dict[str, set[str]]:
            extra = {
                (s, a): shaped(reward, potential[s], None if after is None else potential[after], column)
                for (s, a), after in moves.items()
            }
            return best_moves({move: rewards[move] + extra[move] for move in moves}, moves)

        assert with_pay(PotentialShaping(discount=0.9), "progress") == best
        changed += with_pay(PotentialGain(), "probe") != best
    assert changed == 3


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"PotentialShaping.discount: got 1.5; need a number from 0 to 1"):
        PotentialShaping(discount=1.5)
    with pytest.raises(StageError, match=r"got 'progress' and a tree with the columns \[\].*need a tree that has been"):
        PotentialShaping()([chains([1.0])])


def test_a_rise_from_an_unknown_potential_is_paid_nothing() -> None:
    tree = chains([1.0], turns=3)
    late = Entry(verdict=Verdict.LATE)
    entries = {1: late, 3: Entry(value=0.4, verdict=Verdict.OK), 5: Entry(value=0.5, verdict=Verdict.OK)}
    asked = replace(tree, appraisals={"probe": Appraisal.of(entries, tree.nodes)})
    assert per_turn(asked, PotentialGain()) == pytest.approx([0.0, 0.1, 0.0])
