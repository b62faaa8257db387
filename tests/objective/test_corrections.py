import math
from dataclasses import replace

import pytest
import torch
from tests.objective.example import OLD, example, run, shown

from bough.needs import OLD_LOGPROBS, PATHS, needs_of
from bough.objective import LossInputs, Mis, PpoClip, Reject, Tis, gspo


def columns(*weights: float, by: torch.Tensor | None = None) -> LossInputs:
    """The example, where the learner gave the tokens so many times the probability that the engine gave them."""
    given = example()
    gap = torch.tensor(weights, dtype=torch.float64).log()
    moved = replace(given, old=given.rollout_logprob, rollout_logprob=given.rollout_logprob - gap)
    return moved if by is None else replace(moved, loss_weight=by)


def test_ratios_are_against_old() -> None:
    """With a weight of 1.5 everywhere, twice: the loss is 1.5 times that against old."""
    plain = run(PpoClip(), example())
    value, slope, loss = run(Tis(), columns(*[1.5] * 5))
    assert value == pytest.approx(1.5 * plain[0])
    assert slope == pytest.approx([1.5 * each for each in plain[1]])
    assert loss.metrics["gap_weight"].item() == pytest.approx(1.5)
    assert loss.metrics["gap_kl"].item() == pytest.approx(0.5 - math.log(1.5))


def test_truncated_and_masked_weights() -> None:
    plain = run(PpoClip(low=0.5, high=1.0), example())[1]
    weights = (0.4, 0.5, 1.0, 4.0, 6.0)
    tis, mis = (run(kind(objective=PpoClip(low=0.5, high=1.0)), columns(*weights)) for kind in (Tis, Mis))
    for loss, expected in ((tis, (0.4, 0.5, 1, 2, 2)), (mis, (0, 0.5, 1, 4, 0))):
        assert loss[1] == pytest.approx([w * each for w, each in zip(expected, plain, strict=True)])
    assert tis[2].metrics["gap_truncated"].item() == pytest.approx(0.4)
    assert mis[2].metrics["gap_masked"].item() == pytest.approx(0.4)


def test_whole_paths_are_rejected_and_the_mean_is_over_the_rest() -> None:
    # Geometric means 1.5 ** (1 / 3) = 1.145 and 1.
    given = columns(1.5, 1.0, 1.0, 2.0, 0.5)
    value, slope, loss = run(Reject(high=1.1), given)
    alone = run(PpoClip(), example([[0.9, 0.4]], advantage=(-1.0,)))
    assert value == pytest.approx(alone[0])
    assert slope == pytest.approx([0, 0, 0, *alone[1]])
    assert loss.metrics["gap_rejected"].item() == pytest.approx(0.6)
    assert run(Reject(high=1.2), given)[0] == pytest.approx(run(PpoClip(), example())[0])
    assert run(Reject(low=1.0, high=1.0), columns(*[2.0] * 5))[:2] == (0.0, [0.0] * 5)


def test_turns_are_rejected_and_a_token_has_a_veto() -> None:
    given = columns(1.0, 1.0, 1.0, 100.0, 0.01)
    assert run(Reject(), given)[2].metrics["gap_rejected"].item() == 0
    assert run(Reject(veto=0.02), given)[2].metrics["gap_rejected"].item() == pytest.approx(0.4)
    turns = example(turns=[[2, 1], [1, 1]])
    gap = torch.tensor([1.0, 1.0, 1.5, 1.0, 1.0], dtype=torch.float64).log()
    turns = replace(turns, old=turns.rollout_logprob + gap)
    slope = run(Reject(over="turn"), turns)[1]
    assert [each == 0 for each in slope] == [True, False, True, False, False]


def test_they_nest() -> None:
    """Inside a rejection that asks for old, the weights are still of behaviour."""
    given = columns(1.5, 1.5, 1.5, 1.0, 1.0)
    nested = run(Reject(objective=Tis(), low=0.5, high=2.0), given)
    assert nested[:2] == run(Tis(), given)[:2]
    assert needs_of(Reject(objective=Tis(objective=gspo()))) == {OLD_LOGPROBS, PATHS}
    assert needs_of(Mis(objective=PpoClip())) == {OLD_LOGPROBS}


def test_demonstrations_are_left_alone() -> None:
    given = replace(shown(True, False), old=torch.full((5,), math.log(OLD / 3)).double())
    for piece in (Tis(), Mis(low=0.0), Reject(objective=PpoClip(low=0.9), low=0.0)):
        loss = piece(given)
        slope = torch.autograd.grad(loss.value, given.logprob)[0]
        assert bool((slope[:3] != 0).all())
    assert Reject()(given).metrics["gap_rejected"].item() == pytest.approx(1.0)


def test_settings_and_columns_that_make_no_sense_are_refused() -> None:
    for make, message in (
        (lambda: Tis(cap=0.0), "Tis.cap: got 0.0; need a number above 0"),
        (lambda: Mis(low=1.5), "Mis.low: got 1.5; need a number from 0 to 1"),
        (lambda: Mis(high=0.5), "Mis.high: got 0.5; need at least 1"),
        (lambda: Reject(high=0.5), "Reject.high: got 0.5; need at least 1"),
        (lambda: Reject(veto=1.0), "Reject.veto: got 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    for piece in (Tis(), Mis(), Reject()):
        with pytest.raises(ValueError, match="got columns without `old`; need log-probabilities from before"):
            piece(example())
