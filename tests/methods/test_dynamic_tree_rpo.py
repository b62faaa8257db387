"""Dynamic-TreeRPO: the better branch of a fork is imitated by the progress that it makes."""

import pytest
import torch
from tests.credit.grown import branching

from bough.batch import pack
from bough.methods.dynamic_tree_rpo import dynamic_tree_rpo
from bough.objective import LossInputs
from bough.worlds.frozenlake.preset import frozenlake


def slopes(imitation: float) -> list[float]:
    """The gradient of the log-probability of each turn of a tree, where the policy is the rollout policy."""
    run = dynamic_tree_rpo(frozenlake(), imitation=imitation)
    (credited,) = run.method.credit([branching({"a": {"a1": 1, "a2": 0}, "b": {"b1": 0, "b2": 0}}, tokens=1)])
    batch = pack([credited], paths=True)
    logprob = batch.rollout_logprob.clone().requires_grad_()
    inputs = LossInputs(
        logprob=logprob,
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=torch.full_like(logprob, 1 / len(logprob)),
    )
    (slope,) = torch.autograd.grad(run.method.objective(inputs).value, logprob)
    return slope.tolist()


def test_worked_example() -> None:
    """Six turns; a is better than b, a1 than a2, and b1 and b2 tie: 1.1 times the praise, and the blame as it is."""
    step = 0.707106 / 6
    assert slopes(0.0) == pytest.approx([-step, -step, step, step, 0, 0], abs=2e-5)
    assert slopes(0.1) == pytest.approx([-1.1 * step, -1.1 * step, step, step, 0, 0], abs=2e-5)
