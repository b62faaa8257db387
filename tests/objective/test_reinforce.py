"""The plain policy gradient."""

import pytest
import torch

from bough.objective import LossInputs, PpoClip, Reinforce


def columns(logprob: torch.Tensor, rollout_logprob: torch.Tensor) -> LossInputs:
    return LossInputs(
        logprob=logprob,
        rollout_logprob=rollout_logprob,
        positive=torch.tensor([1.0, 0.0, 0.5]),
        negative=torch.tensor([0.0, -2.0, -0.25]),
        loss_weight=torch.tensor([0.25, 0.25, 0.5]),
    )


def slope(objective: Reinforce | PpoClip, rollout_logprob: torch.Tensor) -> torch.Tensor:
    logprob = torch.tensor([0.7, 0.55, 0.3]).log().requires_grad_()
    objective(columns(logprob, rollout_logprob)).value.backward()
    assert logprob.grad is not None
    return logprob.grad


def test_the_gradient_is_the_advantage_whoever_sampled() -> None:
    """Where paths disagree it is their mean: 0.5 and -0.25 of one token are 0.25."""
    for rollout_logprob in (torch.zeros(3), torch.tensor([0.5, 0.5, 0.5]).log()):
        assert slope(Reinforce(), rollout_logprob).tolist() == pytest.approx([-0.25, 0.5, -0.125])


def test_on_policy_it_is_the_gradient_of_the_clipped_loss() -> None:
    rollout_logprob = torch.tensor([0.7, 0.55, 0.3]).log()
    torch.testing.assert_close(slope(Reinforce(), rollout_logprob), slope(PpoClip(), rollout_logprob))


def test_what_it_reports() -> None:
    logprob = torch.tensor([0.7, 0.55, 0.3]).log()
    still = Reinforce()(columns(logprob, logprob))
    assert still.metrics["kl_behaviour"] == 0.0
    assert float(still.value) == pytest.approx(
        -float((columns(logprob, logprob).advantage * logprob)[:2].sum()) / 4 - 0.5 * 0.25 * float(logprob[2])
    )
    moved = Reinforce()(columns(logprob, torch.tensor([0.5, 0.5, 0.5]).log()))
    ratio = torch.tensor([1.4, 1.1, 0.6])
    expected = (torch.tensor([0.25, 0.25, 0.5]) * (ratio - 1 - ratio.log())).sum()
    assert float(moved.metrics["kl_behaviour"]) == pytest.approx(float(expected), abs=1e-6)
