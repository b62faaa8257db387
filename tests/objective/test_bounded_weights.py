"""CISPO, SAPO, TOPR, OPMD, sPPO and REC beyond their worked examples."""

import math

import pytest
import torch
from tests.objective.example import example, run

from bough.needs import PATHS
from bough.objective import Cispo, Objective, Opmd, PpoClip, Rec, Sapo, Sppo, Topr, gspo


def test_cispo_leaves_no_token_without_a_gradient() -> None:
    clipped, bounded = run(PpoClip(high=0.28), example()), run(Cispo(high=0.28), example())
    assert clipped[1][0] == 0
    assert bounded[1][0] == pytest.approx(-0.256)
    assert bounded[2].metrics["weight_clipped"].item() == pytest.approx(0.4)
    assert bounded[2].metrics["ratio"].item() == pytest.approx(1.14)


def test_cispo_masks_as_ppo_clips() -> None:
    """Ratios 1.4, 1.1, .6 that gain; 1.8, .8 that lose."""
    _, plain, _ = run(Cispo(high=0.28), example())
    _, masked, loss = run(Cispo(high=0.28, mask_low=0.2, mask_high=0.28), example([[0.7, 0.55, 0.3], [0.9, 0.39]]))
    assert masked == pytest.approx([0, -0.22, -0.12, 0.256, 0])
    assert loss.metrics["masked"].item() == pytest.approx(0.4)
    _, upper, _ = run(Cispo(high=0.28, mask_high=0.28), example())
    assert upper == pytest.approx([0, *plain[1:]])
    _, lower, _ = run(Cispo(high=0.28, mask_low=0.1), example())
    assert lower == pytest.approx([*plain[:4], 0])


@pytest.mark.parametrize(("field", "value"), [("mask_low", 1.0), ("mask_high", -0.1), ("low", -0.1), ("high", -1.0)])
def test_bounds_of_cispo(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"Cispo.{field}: got {value}; need"):
        Cispo(**{field: value})


def test_sapo_has_the_slope_of_ppo_at_a_ratio_of_one_and_is_flat_far_off() -> None:
    near, far = example([[0.5]], advantage=(1.0,)), example([[1.0]], advantage=(1.0,), old=1e-30)
    assert run(Sapo(), near)[1] == pytest.approx([-1.0])
    assert run(Sapo(), far)[:2] == (pytest.approx(-4.0), [0.0])
    slope = 4 / (1 + math.exp(-0.4)) / (1 + math.exp(0.4))
    assert run(Sapo(), example([[0.7]], advantage=(1.0,)))[2].metrics["gate"].item() == pytest.approx(slope)


def test_topr_over_paths_turns_and_tokens() -> None:
    """The losing path's ratios are 1.8 and .8: a product of 1.44, a mean of 1.2."""
    weights = {
        Topr(): [1.0, 1.0],
        Topr(ratio="token"): [1.0, 0.8],
        Topr(ratio="turn", mean=True): [1.0, 1.0],
    }
    for objective, expected in weights.items():
        assert run(objective, example())[1][3:] == pytest.approx([each / 5 for each in expected])
    seldom = example([[0.4, 0.3]], advantage=(-1.0,))
    assert run(Topr(), seldom)[1] == pytest.approx([0.5 * 0.8 * 0.6] * 2)
    assert run(Topr(ratio="turn", mean=True), seldom)[1] == pytest.approx([0.5 * math.sqrt(0.8 * 0.6)] * 2)
    # What gains is imitated, however unlikely.
    assert run(Topr(), example([[0.001]], advantage=(1.0,)))[1] == pytest.approx([-1.0])


def test_topr_tapers_up_to_its_threshold() -> None:
    """At a ratio of .8, advantages of .5, .2 and -.1."""
    given = example([[0.4]] * 3, advantage=(0.5, 0.2, -0.1))
    for threshold, weights in {0.0: [1, 1, 0.8], 0.3: [1, 0.8, 0.8], -0.2: [1, 1, 1]}.items():
        for ratio in ("token", "sequence"):
            _, gradient, loss = run(Topr(threshold=threshold, ratio=ratio), given)  # type: ignore[arg-type]
            expected = [-a * w / 3 for a, w in zip((0.5, 0.2, -0.1), weights, strict=True)]
            assert gradient == pytest.approx(expected)
            assert loss.metrics["weight_lose"].item() == pytest.approx(weights[2] / 3)
    assert Topr(threshold=0.3, ratio="token").needs == {PATHS}
    assert not Topr(ratio="token").needs
    with pytest.raises(ValueError, match=r"Topr.threshold: got nan; need a finite number"):
        Topr(threshold=math.nan)


def test_opmd_halves_the_step_at_temperature_one() -> None:
    cold, warm = (run(Opmd(temperature=t), example())[1] for t in (0.0, 1.0))
    assert warm == pytest.approx([each / 2 for each in cold])


def test_sppo_reports_what_it_drops() -> None:
    assert run(Sppo(), example())[2].metrics["dropped"].item() == pytest.approx(0.6)


def test_rec_one_sided_and_weighed_by_ratio_has_the_gradient_of_ppo() -> None:
    for new in ([[0.7, 0.55, 0.3], [0.9, 0.4]], [[0.2, 0.62], [0.39, 0.1, 0.95]]):
        rec, ppo = Rec(weight="ratio"), PpoClip()
        assert run(rec, example(new))[1] == pytest.approx(run(ppo, example(new))[1])


def test_the_far_side_of_the_ring() -> None:
    """Ratios .3, .5 and .9 that gain, 1.5 and 3.2 that lose: the far ones and the near one are kept."""
    given = example([[0.15, 0.25, 0.45], [0.3, 0.64]], old=0.5)
    assert [each != 0 for each in run(Rec(keep="ring"), given)[1]] == [True, False, True, False, False]
    given = example([[0.06, 0.1, 0.18], [0.3, 0.64]], old=0.2)
    loss = run(Rec(keep="ring"), given)
    assert [each != 0 for each in loss[1]] == [True, False, True, False, True]
    assert loss[2].metrics["dropped"].item() == pytest.approx(0.4)


def test_regularisers_of_rec() -> None:
    nothing = example(advantage=(0.0, 0.0))
    log_ratio = (nothing.logprob - nothing.rollout_logprob).detach()
    k2 = run(Rec(regulariser="k2", coefficient=0.5), nothing)
    assert k2[0] == pytest.approx(0.5 * log_ratio.square().mean().item())
    assert k2[1] == pytest.approx((log_ratio / 5).tolist())
    forward = run(Rec(regulariser="forward_kl", coefficient=0.5), nothing)
    assert forward[1] == pytest.approx([-0.1] * 5)
    assert forward[2].metrics["regulariser"].item() == pytest.approx(-nothing.logprob.mean().item())


def test_which_weight_needs_paths() -> None:
    assert Rec().needs == Rec(weight="ratio").needs == frozenset()
    assert Rec(weight="advantage").needs == Rec(ratio="sequence").needs == {PATHS}


def test_rec_with_the_ratio_of_a_path_has_the_gradient_of_gspo_and_the_value_of_reinforce() -> None:
    """Ratios 1.4, 1.1, .6 of one path: s .974 for all three. The value is the mean of - s * A * log p."""
    given = example([[0.7, 0.55, 0.3]], advantage=(1.0,))
    rec = run(Rec(weight="ratio", ratio="sequence"), given)
    s = (1.4 * 1.1 * 0.6) ** (1 / 3)
    assert rec[0] == pytest.approx(-s * sum(map(math.log, (0.7, 0.55, 0.3))) / 3, abs=1e-6)
    assert rec[1] == pytest.approx([-s / 3] * 3, abs=1e-6)
    assert run(gspo(low=0.2, high=0.2), given)[1] == pytest.approx(rec[1], abs=1e-6)
    beyond = run(Rec(weight="ratio", ratio="sequence", low=0.01), example([[0.7, 0.55, 0.3]], advantage=(-1.0,)))
    assert beyond[1] == [0, 0, 0], "s is below 1 - low, for all tokens of the path"
    assert Topr().needs == {PATHS}
    assert Topr(ratio="token").needs == frozenset()


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (Cispo, "low", 1.0),
        (Cispo, "high", -0.1),
        (Sapo, "gaining", 0.0),
        (Sapo, "losing", math.inf),
        (Opmd, "temperature", -1.0),
        (Sppo, "epsilon", 0.0),
        (Rec, "low", 1.0),
        (Rec, "high", -0.1),
        (Rec, "low_far", 0.1),
        (Rec, "high_far", 0.1),
        (Rec, "coefficient", -1.0),
        (Rec, "temperature", 0.0),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind: type[Objective], field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__}.{field}: got {value}; need"):
        kind(**{field: value})


def test_a_huge_gap_is_finite() -> None:
    for objective in (Cispo(), Sapo(), Topr(ratio="token"), Sppo(), Rec(weight="ratio")):
        loss = objective(example([[1.0]], old=1e-40, advantage=(1.0,)))
        assert bool(torch.isfinite(loss.value))
