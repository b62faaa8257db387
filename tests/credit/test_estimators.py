"""Invariant 9: estimators against the exact policy gradient, on a decision process small enough to enumerate."""

from itertools import product

import numpy as np
import pytest
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded
from torch import Tensor

from bough.batch import pack
from bough.credit import Grpo, dr_grpo, rloo
from bough.objective import LossInputs, Normalizer, PpoClip
from bough.tree import Outcome

# Two states. In the first, action 0 ends the episode and action 1 leads to the second, where both actions end it.
EPISODES = [(0,), (1, 0), (1, 1)]
SHAPED = [0.3, -0.5, 1.2]
BINARY = [0.0, 0.0, 1.0]
SKEWED = [1.0, -1.0, 1.2]


class World:
    """A policy with one logit for each state and action, and everything that can happen under it."""

    def __init__(self, returns: list[float]) -> None:
        self.scores = torch.tensor([[0.2, -0.4], [-0.1, 0.5]], dtype=torch.float64, requires_grad=True)
        self.logprob = self.scores.log_softmax(-1)
        self.returns = returns
        self.chance = [sum(self.logprob[s, a] for s, a in enumerate(e)).exp().item() for e in EPISODES]

    def exact(self) -> Tensor:
        """The gradient of the expected return."""
        pairs = zip(EPISODES, self.returns, strict=True)
        value = sum(paid * sum(self.logprob[s, a] for s, a in enumerate(e)).exp() for e, paid in pairs)
        return torch.autograd.grad(value, self.scores, retain_graph=True)[0]

    def estimate(self, rule: Grpo, share: Normalizer, group: tuple[int, ...]) -> Tensor:
        """Minus the gradient of the loss on one sampled group, through every stage from tree to loss."""
        nodes = [N(parent=-1, kind=PROMPT, tokens=(9,))]
        for number in group:
            place = 0
            for state, action in enumerate(EPISODES[number]):
                old = self.logprob[state, action].item()
                last = state == len(EPISODES[number]) - 1
                paid = self.returns[number] if last else 0.0
                # The token tells state and action apart.
                nodes.append(N(parent=place, kind=ACTION, tokens=(2 * state + action,), logprob=old, env_reward=paid))
                ending = Outcome.TERMINATED if last else Outcome.OPEN
                nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(9,), outcome=ending))
                place = len(nodes) - 1
        batch = pack(rule([rewarded(build(*nodes))]))
        columns = LossInputs(
            logprob=self.logprob.flatten()[batch.target],
            entropy=None,
            rollout_logprob=batch.rollout_logprob,
            reference=None,
            positive=batch.positive,
            negative=batch.negative,
            loss_weight=share(batch.paths, batch.inverse_length, batch.equal_length),
        )
        return -torch.autograd.grad(PpoClip()(columns).value, self.scores, retain_graph=True)[0]

    def expected(self, rule: Grpo, share: Normalizer, size: int) -> Tensor:
        """The mean estimate over every group there can be."""
        total = torch.zeros_like(self.scores)
        for group in product(range(len(EPISODES)), repeat=size):
            total += np.prod([self.chance[number] for number in group]) * self.estimate(rule, share, group)
        return total


def turned(one: Tensor, other: Tensor) -> float:
    """The sine of the angle between two gradients."""
    cosine = float(torch.cosine_similarity(one.flatten(), other.flatten(), dim=0))
    return (1 - min(cosine, 1.0) ** 2) ** 0.5


SUM = Normalizer(by="constant", horizon_tokens=1)
"""A sum over each path, a mean over paths: the normaliser under which a policy gradient is one."""


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("returns", [SHAPED, BINARY])
def test_leave_one_out_is_unbiased(returns: list[float], size: int) -> None:
    world = World(returns)
    estimate = world.expected(rloo(), SUM, size)
    assert torch.allclose(estimate, world.exact(), atol=1e-6)
    assert turned(estimate, world.exact()) < 1e-5


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("returns", [SHAPED, BINARY])
def test_the_group_mean_shrinks_the_gradient_by_a_known_factor(returns: list[float], size: int) -> None:
    """A path is compared with a mean that it is part of itself: (n - 1) / n of the gradient, in its direction."""
    world = World(returns)
    assert torch.allclose(world.expected(dr_grpo(), SUM, size), (size - 1) / size * world.exact(), atol=1e-6)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_standard_deviation_weighs_tasks_by_their_difficulty(size: int) -> None:
    """With success or failure, k of n solved: the direction is exact, the length depends on the chance p of success.

    Each group gives (k / n) (1 - k / n) / s_k * (1 / p + 1 / (1 - p)) times the gradient of p, s_k of ddof 1.
    """
    world = World(BINARY)
    p, factor = world.chance[2], 0.0
    for solved in product((0, 1), repeat=size):
        k = sum(solved)
        if 0 < k < size:
            s_k = np.std(solved, ddof=1)
            factor += p**k * (1 - p) ** (size - k) * (k / size) * (1 - k / size) / s_k * (1 / p + 1 / (1 - p))
    assert torch.allclose(world.expected(Grpo(), SUM, size), factor * world.exact(), atol=1e-5)
    if size == 2:
        assert factor == pytest.approx(2**-0.5)


def test_the_standard_deviation_turns_the_gradient_of_shaped_returns() -> None:
    world = World(SKEWED)
    estimate, exact = world.expected(Grpo(), SUM, 3), world.exact()
    assert turned(estimate, exact) > 0.02


def test_the_token_mean_is_biased_by_length() -> None:
    world = World(SKEWED)
    estimate, exact = world.expected(rloo(), Normalizer(by="path_tokens"), 3), world.exact()
    assert turned(estimate, exact) > 0.02


def test_leave_one_out_has_less_variance_than_no_baseline() -> None:
    world, size = World([paid + 2.0 for paid in SHAPED]), 3
    exact, spread = world.exact(), {"rloo": 0.0, "none": 0.0}
    score = [
        torch.autograd.grad(sum(world.logprob[s, a] for s, a in enumerate(e)), world.scores, retain_graph=True)[0]
        for e in EPISODES
    ]
    for group in product(range(len(EPISODES)), repeat=size):
        chance = float(np.prod([world.chance[number] for number in group]))
        plain = torch.stack([world.returns[number] * score[number] for number in group]).mean(0)
        spread["none"] += chance * float((plain - exact).square().sum())
        spread["rloo"] += chance * float((world.estimate(rloo(), SUM, group) - exact).square().sum())
    assert spread["rloo"] < 0.5 * spread["none"]


def test_turns_that_paths_share_are_biased_toward_zero() -> None:
    """Two branches under one sampled turn: their advantages cancel there, though the turn deserves the gradient."""
    end = Outcome.TERMINATED
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, tokens=(1,)), N(parent=1, kind=OBSERVATION)]
    nodes += [N(parent=2, kind=ACTION, tokens=(a,), env_reward=paid, outcome=end) for a, paid in ((2, 1.0), (3, 0.0))]
    (credited,) = rloo()([rewarded(build(*nodes))])
    assert credited.advantage.tolist() == [0, 0, 0, 1, -1]
    assert credited.positive[1] == 0.5
