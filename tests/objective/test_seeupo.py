"""SeeUPO: the weights of a turn by what came of the later ones, the order of steps, and what the order is for."""

import itertools
import math
from functools import partial

import pytest
import torch
from tests.invariants.test_every_objective import forest, policies
from tests.objective.example import example, run

from bough.config import ConfigError
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext
from bough.learner.turn_order import turn_order
from bough.methods.seeupo import seeupo
from bough.needs import PATHS, TURN_BY_TURN, needs_of
from bough.objective import LossInputs, Normalizer, PpoClip, SeeUpo
from bough.train.check import check
from bough.worlds.frozenlake.preset import frozenlake

WIDE = SeeUpo(clip=PpoClip(ratio="turn", low=0.999, high=1e6))
"""No bound is active."""


def pair(turn_number: int | None, advantage: float = 1.0) -> LossInputs:
    """Two turns with log ratios .3 .1 | .6, and a path of one turn."""
    new = [0.5 * math.exp(each) for each in (0.3, 0.1, 0.6)]
    turns, alone = [[2, 1], [1]], [0.5 * math.exp(0.2)]
    return example([new, alone], advantage=(advantage, -1.0), turns=turns, turn_number=turn_number)


def test_worked_example() -> None:
    """The first turn's weight is the ratio of the second; its own ratio is exp(.2)."""
    first, second = (run(WIDE, pair(number))[1] for number in (0, 1))
    assert first == pytest.approx([-1.8221188 * math.exp(0.2) / 4] * 2 + [0, math.exp(0.2) / 4], abs=2e-5)
    assert second == pytest.approx([0, 0, -math.exp(0.6) / 4, 0], abs=2e-5)
    assert run(WIDE, pair(0))[2].metrics["later_ratio"].item() == pytest.approx((2 * 1.8221188 + 1) / 3)
    together = run(WIDE, pair(None))[1]
    assert together == pytest.approx([one + other for one, other in zip(first, second, strict=True)])


def test_the_weight_multiplies_the_advantage_inside_the_clip() -> None:
    clip = SeeUpo(clip=PpoClip(ratio="turn", low=0.1, high=0.1))
    value, slope, _ = run(clip, pair(0))
    assert slope[:2] == [0, 0]
    assert value == pytest.approx(-(2 * 1.1 * 1.8221188 - math.exp(0.2)) / 4, abs=2e-5)
    assert run(clip, pair(0, advantage=-1.0))[1][:2] == pytest.approx([1.8221188 * math.exp(0.2) / 4] * 2, abs=2e-5)


def test_later_turns_that_became_unlikely_take_the_credit_away() -> None:
    given = partial(example, turns=[[1, 1]], advantage=(1.0,), turn_number=0)
    likelier, rarer = (run(WIDE, given([[0.5, second]]))[1][0] for second in (0.9, 0.1))
    assert (likelier, rarer) == (pytest.approx(-0.9), pytest.approx(-0.1))


def test_a_ratio_beyond_all_bounds_is_finite() -> None:
    far = example([[0.5, 1.0]], old=1e-30, turns=[[1, 1]], advantage=(1.0,), turn_number=0)
    assert all(map(math.isfinite, run(WIDE, far)[1]))


def test_an_update_has_a_step_for_each_turn_the_last_first() -> None:
    policy, _ = policies("float64")
    _, batch = forest(experts=False, seed=6, count=2)
    assert batch.path_index is not None
    longest = int(batch.path_index.path_of_turn.bincount().max())
    seen: list[tuple[int | None, list[float]]] = []

    class Spied:
        needs = needs_of(WIDE)

        def __call__(self, columns: LossInputs) -> object:
            seen.append((columns.turn_number, columns.logprob.tolist()))
            return WIDE(columns)

    learner = Learner(policy, Optimizer(learning_rate=1e-2), total_updates=1, temperature=1.0)
    metrics = learner.learn(batch, Spied(), Normalizer(), seed=0)  # type: ignore[arg-type]
    assert longest > 1
    assert [number for number, _ in seen] == [*range(longest - 1, -1, -1)]
    assert all(one != other for (_, one), (_, other) in itertools.pairwise(seen)), "steps see earlier ones"
    assert learner.updates == 1
    assert metrics["policy/later_ratio"] != 1
    assert turn_order(batch, PpoClip()) == [None]


def test_a_step_trains_its_turn_alone() -> None:
    policy, _ = policies("float64")
    _, batch = forest(experts=False, seed=6, count=2)
    learner = Learner(policy, Optimizer(), total_updates=1, temperature=1.0)

    def gradient(number: int | None) -> torch.Tensor:
        for weight in policy.parameters().values():
            weight.grad = None
        learner.backward(batch, WIDE, Normalizer(), context=ObjectiveContext(turn_number=number))
        grads = [each.grad for each in policy.parameters().values() if each.grad is not None]
        return torch.cat([each.flatten() for each in grads])

    parts = [gradient(number) for number in range(len(turn_order(batch, WIDE)))]
    whole = gradient(None)
    assert float((torch.stack(parts).sum(0) - whole).abs().max()) < 1e-12
    assert all(float(each.abs().max()) > 0 for each in parts)


def test_what_it_needs() -> None:
    assert needs_of(SeeUpo()) == {PATHS, TURN_BY_TURN}
    with pytest.raises(ValueError, match=r"SeeUpo.clip: got ratio='token', product=False; need ratio='turn'"):
        SeeUpo(clip=PpoClip())
    slow = seeupo(frozenlake()).replace(optimizer=Optimizer(momentum="harpg"))
    with pytest.raises(ConfigError, match=r"needs optimizer steps for one turn at a time; got .*optimizer.momentum"):
        check(slow)
    with pytest.raises(ValueError, match="got a batch without paths for an objective on turns"):
        turn_order(forest(experts=False, seed=6, count=2)[1].select_tokens(torch.arange(3)), SeeUpo())
