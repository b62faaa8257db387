"""The correction of ST-PPO: what clipping removes, its norm over the weights, and the quotient."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from tests.invariants.test_every_objective import forest, policies
from tests.objective.example import example, run
from torch import Tensor

from bough.batch import Batch
from bough.cli.find import find_run
from bough.learner import Learner, Optimizer
from bough.learner.clipped_norm import clipped_part
from bough.needs import CLIPPED_NORM, PATHS, needs_of
from bough.objective import ClippingBias, Entropy, LossInputs, Normalizer, Objective, PpoClip, Rec, Sum
from bough.objective.spans import Ratio
from bough.policy.policy import Policy

TOKEN = ClippingBias(objective=PpoClip(), floor=1.0)


def test_worked_example() -> None:
    """Ratios 1.4, 1.1, .6 and an advantage of 1."""
    given = partial(example, [[0.7, 0.55, 0.3]], advantage=(1.0,))
    assert run(Rec(keep="none", weight="ratio"), given())[1] == pytest.approx([-0.466667, -0.366667, -0.2], abs=2e-5)
    assert run(TOKEN.clipped_part, given())[1] == pytest.approx([-0.466667, 0, 0], abs=2e-5)
    value, slope, loss = run(TOKEN, given(clipped_norm=2.0))
    assert (value, slope) == (pytest.approx(-2.9 / 6, abs=2e-5), pytest.approx([0, -0.183333, -0.1], abs=2e-5))
    assert loss.metrics["clipped_norm"].item() == pytest.approx(2.0)


@pytest.mark.parametrize("ratio", ["token", "turn", "sequence"])
@pytest.mark.parametrize("dual", [None, 1.5])
def test_the_clipped_gradient_is_that_without_bounds_less_what_is_removed(ratio: Ratio, dual: float | None) -> None:
    clip = PpoClip(ratio=ratio, low=0.1, high=0.1, dual=dual)
    free = replace(clip, low=1 - 1e-9, high=1e9, dual=None)
    given = partial(example, [[0.7, 0.75, 0.3], [0.9, 0.7], [0.3, 0.4, 0.4]], advantage=(1.0, -1.0, -2.0))
    turns = [[2, 1], [1, 1], [2, 1]]
    clipped, removed, whole = (
        run(each, given(turns=turns))[1] for each in (clip, ClippingBias(objective=clip).clipped_part, free)
    )
    assert any(removed)
    assert clipped == pytest.approx([one - other for one, other in zip(whole, removed, strict=True)], abs=1e-12)


def test_a_norm_below_the_floor_changes_nothing() -> None:
    plain = run(PpoClip(), example())[1]
    assert run(TOKEN, example(clipped_norm=0.2))[1] == plain
    for norm, factor in ((0.0, 1.0), (0.2, 1.0), (0.5, 1.0), (2.0, 0.25)):
        found = run(replace(TOKEN, floor=0.5), example(clipped_norm=norm))[1]
        assert found == pytest.approx([factor * each for each in plain])


def seen_and_moved() -> tuple[Policy, Batch]:
    """A policy, and a batch that another sampled."""
    policy, _ = policies("float64")
    _, batch = forest(experts=False, seed=6, count=2)
    seen = Learner(policy, Optimizer(), total_updates=1, temperature=1.0).logprobs(batch).double()
    near = torch.rand(len(seen), generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    return policy, replace(batch, rollout_logprob=seen + near)


def gradient(
    policy: Policy, batch: Batch, objective: Objective, *, micro_tokens: int = 10**6, cpu_workers: int = 1
) -> tuple[dict[str, float], Tensor]:
    optimizer = Optimizer(micro_tokens=micro_tokens, cpu_workers=cpu_workers)
    learner = Learner(policy, optimizer, total_updates=1, temperature=1.0)
    for weight in policy.parameters().values():
        weight.grad = None
    metrics = learner.backward(batch, objective, Normalizer())
    grads = [each.grad for each in policy.parameters().values() if each.grad is not None]
    return metrics, torch.cat([each.flatten() for each in grads])


def length(vector: Tensor) -> float:
    return float(vector.square().sum().sqrt())


@pytest.mark.parametrize("ratio", ["token", "turn"])
def test_a_learner_divides_by_the_norm_over_all_weights(ratio: Ratio) -> None:
    """However the batch is split; a term beside it is not divided."""
    policy, batch = seen_and_moved()
    clip, bonus = PpoClip(ratio=ratio, low=0.05, high=0.05), Entropy(coefficient=0.5)
    one = ClippingBias(objective=clip, floor=1e-2)
    removed, plain, beside = (gradient(policy, batch, each)[1] for each in (one.clipped_part, clip, bonus))
    expected = plain * one.floor / length(removed) + beside
    assert length(removed) > 0.01
    for micro_tokens, cpu_workers in ((10, 1), (64, 2)):
        metrics, found = gradient(
            policy, batch, Sum(terms=(one, bonus)), micro_tokens=micro_tokens, cpu_workers=cpu_workers
        )
        assert length(found - expected) < 1e-9 * length(expected)
        assert metrics["policy/clipped_norm"] == pytest.approx(length(removed))


def test_a_learner_takes_smaller_steps_the_more_is_removed() -> None:
    policy, batch = seen_and_moved()
    far = replace(batch, positive=100 * batch.positive, negative=100 * batch.negative)
    clip = PpoClip(low=0.05, high=0.05)
    without, corrected = gradient(policy, far, clip)[1], gradient(policy, far, ClippingBias(objective=clip))[1]
    assert length(corrected) < 0.5 * length(without)


@pytest.mark.parametrize("unit", ["turn", "token"])
def test_the_method_takes_another_step_than_without_the_correction(unit: str) -> None:
    """With its own settings, on a batch of another policy: the same direction, a shorter step."""
    policy, batch = seen_and_moved()
    batch = replace(batch, rollout_logprob=batch.rollout_logprob - 0.4)
    one, other = (find_run(f"st_ppo(unit={unit},corrected={each})", "sokoban") for each in ("true", "false"))
    assert isinstance(one.method.objective, Sum)
    assert isinstance(other.method.objective, Sum)
    metrics, found = gradient(policy, batch, one.method.objective.terms[0])
    _, plain = gradient(policy, batch, other.method.objective.terms[0])
    assert length(found) < 0.9 * length(plain)
    assert length(found) == pytest.approx(length(plain) * 0.1 / metrics["policy/clipped_norm"])
    assert float(found @ plain) == pytest.approx(length(found) * length(plain))


def test_what_it_needs() -> None:
    assert needs_of(ClippingBias()) == {CLIPPED_NORM, PATHS}
    assert needs_of(ClippingBias().clipped_part) == {PATHS}
    with pytest.raises(ValueError, match="ClippingBias: got columns without `clipped_norm`; need the norm"):
        TOKEN(example())
    with pytest.raises(ValueError, match=r"ClippingBias.floor: got 0.0; need a number above 0"):
        ClippingBias(floor=0.0)
    with pytest.raises(ValueError, match=r"ClippingBias.objective: got product=True; need"):
        ClippingBias(objective=PpoClip(ratio="turn", product=True))
    two = Sum(terms=(TOKEN, ClippingBias()))
    with pytest.raises(ValueError, match="objective=Sum: got 2 clipped losses for one norm; need one ClippingBias"):
        clipped_part(two)


def test_a_policy_far_away_has_a_finite_part() -> None:
    far = example([[1.0, 1e-40]], old=1e-80, advantage=(1.0,))
    assert isinstance(far, LossInputs)
    assert all(abs(each) < float("inf") for each in run(TOKEN.clipped_part, far)[1])
