"""Each setting at a value other than its default, in an example whose numbers are computed by hand."""

import math
from dataclasses import replace

import pytest
import torch
from tests.objective.example import example, run, shown
from tests.objective.preference_pairs import lay, pair

from bough.objective import (
    Aepo,
    Cispo,
    Epo,
    Imitation,
    Inpo,
    LossInputs,
    Mis,
    Objective,
    PpoClip,
    Rec,
    Reject,
    Sapo,
    SelfPlay,
    SimPo,
    StepApo,
    Tis,
    WDpo,
)


def softplus(x: float) -> float:
    """Minus the log of the sigmoid of -x."""
    return math.log1p(math.exp(x))


@pytest.mark.parametrize(
    ("objective", "slope"),
    [
        # Ratios 1.4, 1.1, .6 with advantage 1, then 1.8 and .8 with -1; each token weighs .2.
        (Cispo(high=0.5), [-0.28, -0.22, -0.12, 0.30, 0.16]),
        (Cispo(low=0.3), [-0.256, -0.22, -0.14, 0.256, 0.16]),
        (Cispo(mask_high=0.05), [0, 0, -0.12, 0.256, 0.16]),
        (Cispo(mask_low=0.1), [-0.256, -0.22, -0.12, 0.256, 0]),
        (Rec(high=0.5), [-0.2, -0.2, -0.2, 0.2, 0.2]),
        (Rec(low=0.1), [0, -0.2, -0.2, 0.2, 0]),
        (Rec(keep="ring", low_far=0.3), [0, -0.2, -0.2, 0, 0.2]),
        (Rec(keep="ring", high_far=0.5), [0, -0.2, 0, 0.2, 0.2]),
        (PpoClip(low=0.1, high=0.5), [-0.28, -0.22, -0.12, 0.36, 0]),
    ],
    ids=str,
)
def test_bounds_of_the_ratio(objective: Objective, slope: list[float]) -> None:
    assert run(objective, example())[1] == pytest.approx(slope)


@pytest.mark.parametrize(("gaining", "losing"), [(2.0, 1.05), (1.0, 3.0)])
def test_sapo(gaining: float, losing: float) -> None:
    """The gradient of a token is its weight, times advantage, ratio and gate 4 s (1 - s)."""

    def slope(ratio: float, heat: float) -> float:
        gate = 1 / (1 + math.exp(-heat * (ratio - 1)))
        return 0.2 * ratio * 4 * gate * (1 - gate)

    expected = [*(-slope(r, gaining) for r in (1.4, 1.1, 0.6)), *(slope(r, losing) for r in (1.8, 0.8))]
    assert run(Sapo(gaining=gaining, losing=losing), example())[1] == pytest.approx(expected)


WEIGHTS = (0.4, 0.5, 1.0, 4.0, 6.0)


def gap(*weights: float) -> LossInputs:
    """The example, where old over engine probability is as given."""
    given = example()
    shift = torch.tensor(weights, dtype=torch.float64).log()
    return replace(given, old=given.rollout_logprob, rollout_logprob=given.rollout_logprob - shift)


@pytest.mark.parametrize(
    ("correction", "weights"),
    [
        (Tis(objective=PpoClip(low=0.5, high=1.0), cap=1.5), (0.4, 0.5, 1.0, 1.5, 1.5)),
        (Tis(objective=PpoClip(low=0.5, high=1.0), cap=5.0), (0.4, 0.5, 1.0, 4.0, 5.0)),
        (Mis(objective=PpoClip(low=0.5, high=1.0), low=0.3), (0.4, 0.5, 1.0, 4.0, 0)),
        (Mis(objective=PpoClip(low=0.5, high=1.0), low=0.6), (0, 0, 1.0, 4.0, 0)),
        (Mis(objective=PpoClip(low=0.5, high=1.0), high=7.0), (0, 0.5, 1.0, 4.0, 6.0)),
        (Mis(objective=PpoClip(low=0.5, high=1.0), high=3.0), (0, 0.5, 1.0, 0, 0)),
    ],
    ids=str,
)
def test_weights_of_corrections(correction: Objective, weights: tuple[float, ...]) -> None:
    # Nothing is clipped: the gradient is .2 * advantage * ratio.
    plain = (-0.28, -0.22, -0.12, 0.36, 0.16)
    expected = [weight * each for weight, each in zip(weights, plain, strict=True)]
    assert run(correction, gap(*WEIGHTS))[1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "rejected"),
    [({}, 0.6), ({"low": 0.7}, 0.0), ({"low": 0.7, "veto": 0.85}, 0.6), ({"high": 2.0}, 0.6), ({"low": 0.85}, 0.6)],
    ids=str,
)
def test_the_range_of_rejection(settings: dict[str, float], rejected: float) -> None:
    """The first path's tokens all have the weight .8, the second's 1."""
    loss = run(Reject(**settings), gap(0.8, 0.8, 0.8, 1.0, 1.0))[2]  # type: ignore[arg-type]
    assert loss.metrics["gap_rejected"].item() == pytest.approx(rejected)


def test_the_coefficient_of_epo() -> None:
    """Where no entropy is known there is no penalty, and the gradient is the bonus."""
    entropy = torch.full((5,), 0.3, dtype=torch.float64, requires_grad=True)
    unknown = torch.full((5,), torch.nan, dtype=torch.float64)
    value, slope, _ = run(Epo(coefficient=0.05), example(entropy=entropy, mean_turn_entropy=unknown), entropy)
    assert value == pytest.approx(-0.05 * 0.3)
    assert slope == pytest.approx([-0.05 * 0.2] * 5)


@pytest.mark.parametrize(
    ("objective", "slope"),
    [
        # Entropies 2, .2, .2, .2 have z = 1.5, -.5, -.5, -.5; ratios 1.4, 1.1, .6, 1.4; advantage -1; weight .25.
        (Aepo(low=0.5), [0.455, 0.2475, 0.135, 0.315]),
        (Aepo(dual=1.3), [0, 0.2475, 0, 0]),
        (Aepo(weight=0.4), [0.56, 0.22, 0, 0.28]),
    ],
    ids=str,
)
def test_aepo(objective: Objective, slope: list[float]) -> None:
    entropy = torch.tensor([2.0, 0.2, 0.2, 0.2], dtype=torch.float64)
    given = example([[0.7, 0.55, 0.3, 0.7]], advantage=(-1.0,), entropy=entropy)
    # The standard deviation has an epsilon.
    assert run(objective, given)[1] == pytest.approx(slope, abs=1e-5)


def test_imitation_of_demonstrations_alone() -> None:
    """Two demonstrated tokens weigh 1/2 each; the samples of the other path gain, and have no loss."""
    assert run(Imitation(of="all"), shown(False, True))[1] == pytest.approx([-1 / 3] * 3 + [-1 / 2] * 2)
    assert run(Imitation(of="demonstrations"), shown(False, True))[1] == pytest.approx([0, 0, 0, -1 / 2, -1 / 2])


PAIR = lay(
    pair(
        [-1.0, -0.5],
        [-2.0],
        winner_reference=[-1.2, -0.7],
        loser_reference=[-1.5],
        winner_old=[-1.1, -0.6],
        loser_old=[-1.7],
    )
)
"""The winner has moved from the reference by .4 nats and from the last policy by .2, the loser by -.5 and -.3."""


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        # The margins: .9 over the reference, .5 over the policy before. (h - 1 / (2 eta))^2
        (Inpo(eta=0.5, tau=0.0), (0.5 - 1.0) ** 2),
        (Inpo(eta=0.5, tau=0.25), (0.5 * 0.9 + 0.5 * 0.5 - 1.0) ** 2),
        (Inpo(eta=0.5, tau=0.5), (0.9 - 1.0) ** 2),
        # Means of log-probabilities -.75 and -2.
        (SimPo(gamma=0.0), softplus(-2.5 * 1.25)),
        (SimPo(beta=1.0, gamma=1.0), softplus(-(1.25 - 1.0))),
        # The gap of the advantages is 2.
        (WDpo(beta=0.5), softplus(-0.5 * 0.9)),
        (WDpo(reference=False), softplus(-0.1 * 0.5)),
        (WDpo(max_weight=0.25), 0.25 * softplus(-0.1 * 0.9)),
        (StepApo(beta=0.5), softplus(-(0.5 * 0.9 - 2.0))),
        (StepApo(alpha=0.5), softplus(-(0.3 * 0.9 - 0.5 * 2.0))),
    ],
    ids=str,
)
def test_preferences(objective: Objective, value: float) -> None:
    assert run(objective, PAIR)[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        # Of two, the better one wins by 1/4 of eta: (.2 - eta / 4)^2 and (-.3 + eta / 4)^2, their mean over eta.
        ({"eta": 2.0}, (0.3**2 + 0.2**2) / 2 / 2),
        ({"eta": 4.0, "unit": "turn"}, (0.8**2 + 0.7**2) / 2 / 4),
        # With a gap of 2 or more there is no winner, and no loss.
        ({"eta": 2.0, "gap": 2.5}, 0.0),
    ],
    ids=str,
)
def test_self_play(settings: dict[str, object], value: float) -> None:
    assert run(SelfPlay(**settings), PAIR)[0] == pytest.approx(value)  # type: ignore[arg-type]


def test_self_play_of_turns() -> None:
    """Two paths of two turns each compete as a whole, or at their first turn alone."""
    paths = pair([-1.0], [-2.0], winner_old=[-1.1], loser_old=[-1.7])
    longer = lay([replace(each, turns=[*each.turns, each.turns[0]]) for each in paths])
    assert run(SelfPlay(eta=2.0), longer)[2].metrics["units"].item() == 2
    whole, first = (run(SelfPlay(eta=2.0, unit=unit), longer)[0] for unit in ("path", "turn"))
    # The moves of a path are those of its two turns.
    assert whole == pytest.approx(((0.2 - 0.5) ** 2 + (-0.6 + 0.5) ** 2) / 2 / 2)
    assert first == pytest.approx(((0.1 - 0.5) ** 2 + (-0.3 + 0.5) ** 2) / 2 / 2)
