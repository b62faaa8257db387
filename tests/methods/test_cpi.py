"""Agnostic RL: a loss whose minimum is the mixture of the policy and of its greedy improvement."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from tests.credit.grown import branching

from bough.credit import ConservativeMixture
from bough.explore import FullTree
from bough.methods.cpi import cpi
from bough.objective import Loss, LossInputs, MixtureKl
from bough.worlds.frozenlake.preset import frozenlake


def weights(eta: float, *returns: float) -> list[float]:
    """The weight of each action of one state by its return."""
    (credited,) = ConservativeMixture(eta=eta)([branching({str(at): q for at, q in enumerate(returns)}, tokens=1)])
    return credited.path_advantage.tolist()


def test_worked_example() -> None:
    assert weights(0.3, 1, 0, 0, 0.5) == pytest.approx([1.9, 0.7, 0.7, 0.7])
    assert weights(0.3, 1, 0, 0, 1) == pytest.approx([1.3, 0.7, 0.7, 1.3])
    assert weights(1.0, 1, 0, 0, 0.5) == pytest.approx([4, 0, 0, 0])
    assert weights(0.3, 0.5, 0.5) == [1, 1]
    assert weights(0.3, 1) == [1]


def test_an_action_is_worth_the_mean_of_its_paths() -> None:
    """a leads to 1 and 0, b to .4 and .4: a is the better first action, and within it the first ending."""
    tree = branching({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 0.4, "y": 0.4}}, tokens=1)
    (credited,) = ConservativeMixture(eta=0.5)([tree])
    first, second = credited.path_advantage[0::2].tolist(), credited.path_advantage[1::2].tolist()
    assert first == pytest.approx([1.5, 1.5, 0.5, 0.5])
    assert second == pytest.approx([1.5, 0.5, 1, 1])


@pytest.mark.parametrize("eta", [0.2, 0.7])
def test_the_minimum_is_the_mixture_and_the_first_gradient_points_to_the_greedy_policy(eta: float) -> None:
    """Three actions, all pairs of samples enumerated: (1 - eta) pi + eta * (best of the two samples)."""
    policy, q = np.array([0.5, 0.3, 0.2]), [0.0, 0.6, 1.0]
    expected = np.zeros(3)
    for one, other in product(range(3), repeat=2):
        chance = policy[one] * policy[other]
        given = weights(eta, q[one], q[other])
        expected[one] += chance * given[0] / 2
        expected[other] += chance * given[1] / 2
    best_of_two = np.array([0.25, 0.3**2 + 2 * 0.3 * 0.5, 1 - 0.8**2])
    assert expected == pytest.approx((1 - eta) * policy + eta * best_of_two)
    logits = torch.tensor(np.log(policy), requires_grad=True)
    (slope,) = torch.autograd.grad(loss_of(expected, policy, logits.log_softmax(0)).value, logits)
    assert (-slope).tolist() == pytest.approx((eta * (best_of_two - policy)).tolist())
    at_mixture = loss_of(expected, policy, torch.tensor(np.log(expected), requires_grad=True))
    assert at_mixture.metrics["mixture_kl"].item() == pytest.approx(0, abs=1e-12)


def loss_of(expected: np.ndarray, policy: np.ndarray, logprob: torch.Tensor) -> Loss:
    """The mean over the policy's samples, of which each action is one with its probability."""
    columns = LossInputs(
        logprob=logprob,
        rollout_logprob=torch.tensor(np.log(policy)),
        positive=torch.tensor(expected / policy),
        negative=torch.zeros(3),
        loss_weight=torch.tensor(policy),
    )
    return MixtureKl()(columns)


def test_samples_of_a_state_without_a_better_action_have_no_gradient() -> None:
    """Worked example: weights 1.9, .7 and 1 at the policy itself, then at a ratio of 1.9."""
    logprob = torch.tensor([-1.0, -1.0, -1.0], requires_grad=True)
    columns = LossInputs(
        logprob=logprob,
        rollout_logprob=torch.full((3,), -1.0),
        positive=torch.tensor([1.9, 0.7, 1.0]),
        negative=torch.zeros(3),
        loss_weight=torch.ones(3),
    )
    for ratio, expected in ((1.0, [-0.9, 0.3, 0]), (1.9, [0, 1.2, 0.9])):
        moved = replace(columns, rollout_logprob=logprob.detach() - np.log(ratio))
        (slope,) = torch.autograd.grad(MixtureKl()(moved).value, logprob)
        assert slope.tolist() == pytest.approx(expected, abs=1e-5)


def test_settings() -> None:
    run = cpi(frozenlake(), eta=0.1, width=4, depth=1)
    assert run.method.explorer == FullTree(width=4, depth=1, trunk=frozenlake().limits.turns - 1)
    assert cpi(frozenlake(), trunk=2).method.explorer == FullTree(width=3, depth=2, trunk=2)
    assert run.method.credit == ConservativeMixture(eta=0.1)
    with pytest.raises(ValueError, match="eta: got 0"):
        ConservativeMixture(eta=0)
