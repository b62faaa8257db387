"""Noise of an advantage as the number of decisions of a path grows, on the quiz itself, with its exact advantage.

An answer that is right with probability 1/2, whatever the question, has the exact advantage (1{right} - 1/2) / K in an
episode of K questions: nothing else depends on it.
"""

from collections.abc import Sequence
from functools import cache
from math import sqrt

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, rewarded

from bough.credit import Credit, Gigpo, Grpo, Hgpo, ReinforcePlusPlus, Salt, TurnPpo, compute_credit
from bough.tree import Outcome, Rewarded, Tree, build, path_view, token_node
from bough.worlds.quiz import Quiz

PATHS = 8
WRONG, RIGHT = 2, 3
"""The token of an answer."""


@cache
def grown(questions: int, *, dense: bool = True) -> Sequence[Rewarded]:
    """Trees of eight chains, each answer right with probability 1/2; the critic has the exact value at discount 1/2."""
    rng, quiz = np.random.default_rng(0), Quiz(questions=questions, dense=dense)
    return [_tree(quiz, seed, rng) for seed in range(30)]


def _tree(quiz: Quiz, seed: int, rng: np.random.Generator) -> Rewarded:
    (task,) = quiz.tasks("train", 1, seed)
    start = quiz.start(task)
    plan, value, nodes = quiz.plan(start), [0.0], [N(parent=-1, kind=PROMPT, tokens=(1,), state_key=_key(start.key))]
    for _ in range(PATHS):
        state, parent = start, 0
        for turn, answer in enumerate(plan):
            right = bool(rng.random() < 0.5)
            step = quiz.step(state, answer if right else "none")
            token = (RIGHT if right else WRONG,)
            nodes.append(N(parent=parent, kind=ACTION, tokens=token, env_reward=step.reward))
            value.append(sum(0.5**later for later in range(len(plan) - turn)) / 2 / len(plan))
            done = step.outcome is Outcome.TERMINATED
            nodes.append(
                N(
                    parent=len(nodes) - 1,
                    kind=OBSERVATION,
                    tokens=(1,),
                    outcome=step.outcome,
                    success=step.success if done else None,
                    state_key=_key(step.state.key),
                )
            )
            value.append(0.0)
            state, parent = step.state, len(nodes) - 1
    tree = build(*nodes, task=task.id)
    paid = rewarded(tree)
    return Rewarded(tree=tree, channels=paid.channels, estimates={"value": np.asarray(value)[token_node(tree)]})


def _key(text: str) -> int:
    """A number that is not 0."""
    return 1 + int.from_bytes(text.encode(), "big") % (2**61 - 1)


def noise(rule: Credit, given: Sequence[Rewarded]) -> float:
    """Standard deviation of the advantages of equal answers, over half the difference that being right makes."""
    credited = compute_credit(rule, given)
    advantage = np.concatenate([each.path_advantage for each in credited])
    right = np.concatenate([_tokens(each.tree) for each in given]) == RIGHT
    spread = sqrt((advantage[right].var() + advantage[~right].var()) / 2)
    return spread / float(advantage[right].mean() - advantage[~right].mean()) * 2


def _tokens(tree: Tree) -> np.ndarray:
    """The token of each answer, path by path."""
    view = path_view([rewarded(tree)])
    return tree.token[view.path_tokens.token]


@pytest.mark.parametrize("rule", [Grpo(), Salt(), ReinforcePlusPlus(kl=0.0)], ids=lambda rule: type(rule).__name__)
def test_the_whole_return_is_noisier_the_more_decisions_a_path_has(rule: Credit) -> None:
    few, many = (noise(rule, grown(count)) for count in (5, 80))
    assert many > 3 * few, "16 times the decisions: at least the root of that"


def test_the_noise_of_grpo_is_the_root_of_the_number_of_other_decisions() -> None:
    for count in (5, 20, 80):
        assert noise(Grpo(), grown(count)) == pytest.approx(sqrt(count - 1), rel=0.35)


@pytest.mark.parametrize(
    ("rule", "most"),
    [(Gigpo(discount=0.5), 1.4), (Hgpo(discount=0.5), 1.0), (TurnPpo(discount=0.5, lam=0.9), 0.6)],
    ids=lambda each: type(each).__name__,
)
def test_a_short_horizon_keeps_the_noise_at_any_number_of_decisions(rule: Credit, most: float) -> None:
    for count in (5, 20, 80):
        assert noise(rule, grown(count)) < most


def test_without_a_short_horizon_the_comparison_by_state_does_not_help() -> None:
    few, many = (noise(Gigpo(discount=1.0), grown(count)) for count in (5, 80))
    assert many > 2.5 * few


def test_paid_at_the_end_the_comparison_by_state_is_as_noisy_as_that_of_paths() -> None:
    given = grown(40, dense=False)
    assert noise(Gigpo(discount=0.5), given) > 0.9 * noise(Grpo(), given)
