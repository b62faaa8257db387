from dataclasses import replace

import pytest
import torch
from tests.objective.example import example, run

from bough.objective import Epo, LossInputs

ENTROPY = [0.1, 0.5, 1.2, 0.4, 2.5, 0.0]
USUAL = [0.5] * 3 + [1.0] * 3
"""Of the first turn, and of the second."""


def columns(usual: list[float] = USUAL, progress: float = 0.0) -> LossInputs:
    """One path with two turns of three tokens."""
    return example(
        [[0.5] * 6],
        advantage=(1.0,),
        turns=[[3, 3]],
        entropy=torch.tensor(ENTROPY, dtype=torch.float64, requires_grad=True),
        mean_turn_entropy=torch.tensor(usual, dtype=torch.float64),
        loss_weight=torch.ones(6, dtype=torch.float64),
        progress=progress,
    )


def penalties(epo: Epo, given: LossInputs) -> list[float]:
    assert given.entropy is not None
    assert given.mean_turn_entropy is not None
    return epo.penalty(given.entropy, given.mean_turn_entropy).tolist()


def slope(epo: Epo, given: LossInputs) -> list[float]:
    return run(epo, given, given.entropy)[1]


def test_worked_example_of_the_release() -> None:
    released = Epo(as_released=True)
    assert penalties(released, columns()) == pytest.approx([0.1, 0, 0.1, 0.1, 0.1, 0.1])
    wide = Epo(as_released=True, low=0.0, high=2.0, constant=0.05)
    assert penalties(wide, columns()) == pytest.approx([0, 0, 0.05, 0, 0.05, 0.05]), "0 is on the edge"


def test_the_release_penalises_the_edges_of_the_band() -> None:
    """With the bounds 0.25 and 1, which are exact in float; the hinge is 0 there."""
    entropy, usual = torch.tensor([0.25, 0.5, 1.0]), torch.full((3,), 0.5)
    band = Epo(low=0.5, high=2.0)
    assert band.penalty(entropy, usual).tolist() == [0.0, 0.0, 0.0]
    assert replace(band, as_released=True, constant=0.5).penalty(entropy, usual).tolist() == [0.5, 0.0, 0.5]


def test_worked_example_over_turns() -> None:
    """Mean entropies .6 and .967. The release finds the first outside its band of .4 to .6, by rounding;
    here the usual entropy is a little lower, so that it is outside without doubt.
    """
    given = columns([0.499] * 3 + [1.0] * 3)
    loss = Epo(as_released=True, over="turn")(given)
    assert loss.metrics["entropy_penalty"].item() == pytest.approx(0.3)
    assert loss.metrics["entropy_outside"].item() == pytest.approx(3.0)
    pull = slope(Epo(over="turn", smoothing=3.0), given)
    assert pull == pytest.approx([-0.001 + 0.003] * 3 + [-0.001] * 3)


def test_worked_example_of_the_phase() -> None:
    weights = {0: 1.0, 37: 0.874563, 75: 0.827067, 76: 0.768632, 112: 0.18211, 150: 0.03983}
    assert [Epo().fade(epoch / 150) for epoch in weights] == pytest.approx(list(weights.values()), abs=2e-5)


def test_the_middle_of_an_odd_number_of_epochs() -> None:
    """Of 7 epochs the release's middle is epoch 3."""
    weights = {1: 0.902683, 3: 0.827067, 4: 0.377893, 7: 0.03983}
    assert [Epo(middle=3 / 7).fade(epoch / 7) for epoch in weights] == pytest.approx(list(weights.values()), abs=2e-6)
    with pytest.raises(ValueError, match=r"Epo.middle: got 1.0"):
        Epo(middle=1.0)


def test_the_penalty_has_a_gradient_and_in_the_release_none() -> None:
    bonus = [-0.001] * 6
    assert slope(Epo(as_released=True), columns()) == pytest.approx(bonus)
    # Below the band the penalty pulls up, above it pulls down, inside there is the bonus alone.
    pull = [-1, 0, 1, -1, 1, -1]
    assert penalties(Epo(), columns()) == pytest.approx([0.3, 0, 0.6, 0.4, 1.3, 0.8])
    assert slope(Epo(smoothing=3.0), columns()) == pytest.approx([-0.001 + 0.003 * each for each in pull])


def test_the_value_and_its_phase() -> None:
    bonus, hinge = sum(ENTROPY), 3.4
    assert Epo()(columns()).value.item() == pytest.approx(-0.001 * (bonus - hinge))
    late = columns(progress=1.0)
    assert Epo()(late).value.item() == pytest.approx(-0.001 * (bonus - 0.03983 * hinge), abs=1e-7)
    assert Epo(phase=False)(late).value.item() == pytest.approx(-0.001 * (bonus - hinge))


def test_turns_never_seen_before_are_not_penalised() -> None:
    unknown = columns([float("nan")] * 3 + [1.0] * 3)
    for epo in (Epo(), Epo(over="turn"), Epo(as_released=True)):
        assert slope(epo, unknown)[:3] == pytest.approx([-0.001] * 3)
        assert epo(unknown).value.isfinite()
    assert penalties(Epo(), unknown)[:3] == [0.0] * 3


def test_settings_and_columns_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Epo.high: got 0.5; need at least low=0.8"):
        Epo(high=0.5)
    with pytest.raises(ValueError, match=r"Epo.smoothing: got -1.0; need at least 0"):
        Epo(smoothing=-1.0)
    with pytest.raises(ValueError, match="Epo: got columns without `entropy` or `mean_turn_entropy`"):
        Epo()(example())
