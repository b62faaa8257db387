from dataclasses import replace

import pytest
import torch
from tests.objective.example import example, run, shown

from bough.objective import Chord, PpoClip, SftMix, gspo


def test_worked_example_of_phi() -> None:
    value, slope, _ = run(Chord(peak=1.0, valley=1.0), shown(True, True))
    assert value == pytest.approx(0.141019, abs=2e-5)
    assert slope == pytest.approx([-0.042, -0.0495, -0.042, -0.018, -0.048], abs=2e-5)


def test_worked_example_of_the_mixture() -> None:
    value, slope, loss = run(Chord(), shown(False, True))
    assert value == pytest.approx(-0.85853, abs=2e-5)
    assert slope == pytest.approx([0, -0.33, -0.18, -0.0045, -0.012], abs=2e-5)
    assert loss.metrics["expert_mu"].item() == pytest.approx(0.1)
    assert loss.metrics["expert_nll"].item() == pytest.approx(0.510826, abs=1e-6)


def test_probability_as_the_weight() -> None:
    _, slope, _ = run(Chord(phi="probability"), shown(False, True))
    assert slope[3:] == pytest.approx([-0.1 * 0.9 / 2, -0.1 * 0.4 / 2])


def test_a_token_that_is_likely_enough_has_no_gradient() -> None:
    """The demonstrated tokens have p .9 and .4: with the release's cutoff of .8 the first is left alone."""
    plain, cut = (run(Chord(cutoff=cutoff), shown(False, True))[1] for cutoff in (0.9, 0.8))
    assert cut == pytest.approx([*plain[:3], 0, plain[4]])
    assert plain[3] != 0
    assert run(Chord(phi="none", cutoff=0.8), shown(False, True))[1][3:] == pytest.approx([0, -0.05])
    with pytest.raises(ValueError, match=r"Chord.cutoff: got 0; need a number above 0 and up to 1"):
        Chord(cutoff=0)


def test_mu_over_the_training() -> None:
    chord = Chord(peak=0.9, valley=0.05, warm=0.5, decay=0.5)
    assert [chord.mu(step / 20) for step in (0, 5, 10, 15, 20)] == pytest.approx([0, 0.45, 0.9, 0.475, 0.05])
    early = Chord(peak=0.9, valley=0.05, warm=0.2, decay=0.3)
    assert [early.mu(p) for p in (0.1, 0.2, 0.35, 0.5, 1.0)] == pytest.approx([0.45, 0.9, 0.475, 0.05, 0.05])
    assert {Chord().mu(p) for p in (0.0, 0.5, 1.0)} == {0.1}


def test_mu_is_taken_at_the_progress_of_the_columns() -> None:
    chord = Chord(peak=1.0, valley=0.0, warm=0.5, decay=0.5)
    for progress, mu in ((0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (1.0, 0.0)):
        mixed = run(chord, replace(shown(False, True), progress=progress))[0]
        assert mixed == pytest.approx((1 - mu) * -2.9 / 3 + mu * 0.114697, abs=2e-6)


def test_without_phi_it_is_plain_mixing() -> None:
    one, two = (run(each, shown(False, True)) for each in (Chord(phi="none"), SftMix(mu=0.1)))
    assert one[:2] == two[:2]


def test_the_objective_does_not_see_demonstrations() -> None:
    """A ratio over paths, of columns in which the first path is demonstrated."""
    given = shown(True, False)
    alone = example([[0.9, 0.4]], advantage=(-1.0,))
    mixed, (value, slope, _) = run(SftMix(objective=gspo(), mu=0.25), given), run(gspo(), alone)
    nll = -(given.loss_weight * given.logprob)[:3].sum().item()
    assert mixed[0] == pytest.approx(0.75 * value + 0.25 * nll)
    assert mixed[1][3:] == pytest.approx([0.75 * each for each in slope])


def test_no_demonstration_in_a_micro_batch_and_nothing_else_in_it() -> None:
    for which in ((False, False), (True, True)):
        value, slope, _ = run(Chord(), shown(*which))
        assert torch.tensor(value).isfinite()
        assert all(torch.tensor(slope).isfinite())
    assert run(SftMix(mu=0.25), shown(False, False))[0] == pytest.approx(0.75 * run(PpoClip(), example())[0])


def test_what_does_not_tell_the_two_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="got columns without `expert`; need demonstrations"):
        Chord()(example())
    for make, message in (
        (lambda: Chord(peak=1.5), "Chord.peak: got 1.5; need a number from 0 to 1"),
        (lambda: Chord(peak=0.1, valley=0.2), r"Chord.valley: got 0.2; need at most peak=0.1"),
        (lambda: Chord(warm=0.6, decay=0.5), "Chord: got warm=0.6, decay=0.5; need shares"),
        (lambda: SftMix(mu=-0.1), "SftMix.mu: got -0.1"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
