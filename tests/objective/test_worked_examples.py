"""What released implementations of policy losses return for one small batch, computed with their own code."""

import pytest
from tests.objective.example import example, run

from bough.objective import (
    Cispo,
    Normalizer,
    Objective,
    Opmd,
    PpoClip,
    Rec,
    Sapo,
    Sppo,
    Topr,
    gspo,
    loop_clip,
)

PATHS = Normalizer(by="paths")
RING = Rec(keep="ring", weight="ratio", low=0.2, high=0.2, low_far=0.6, high_far=2.0)

CASES: list[tuple[Objective, Normalizer, float, list[float] | None]] = [
    (PpoClip(high=0.28, dual=3.0), Normalizer(), -0.076, [0, -0.22, -0.12, 0.36, 0.16]),
    (PpoClip(high=0.28, dual=3.0), PATHS, 0.153333, [0, -0.183333, -0.1, 0.45, 0.2]),
    (gspo(low=0.5, high=0.5), PATHS, 0.113002, [-0.162333, -0.162333, -0.162333, 0.3, 0.3]),
    (Cispo(low=0.2, high=0.28), Normalizer(), 0.24189, [-0.256, -0.22, -0.16, 0.256, 0.16]),
    (Cispo(high=0.28), Normalizer(), 0.193731, [-0.256, -0.22, -0.12, 0.256, 0.16]),
    (Sapo(), PATHS, 0.074926, [-0.224243, -0.182876, -0.096104, 0.379101, 0.197811]),
    (Opmd(temperature=1.0), Normalizer(), 0.113683, [-0.1, -0.1, -0.1, 0.1, 0.1]),
    (Rec(keep="none"), Normalizer(), 0.227367, [-0.2, -0.2, -0.2, 0.2, 0.2]),
    (Rec(keep="one_side", weight="ratio"), Normalizer(), 0.091465, [0, -0.22, -0.12, 0.36, 0.16]),
    (Rec(keep="two_side", weight="ratio"), Normalizer(), -0.015082, [0, -0.22, 0, 0, 0.16]),
    (RING, Normalizer(), -0.015082, [0, -0.22, 0, 0, 0.16]),
    (Rec(keep="none", regulariser="k2", coefficient=0.1), Normalizer(), 0.242937, None),
    (Rec(keep="none", weight="advantage", temperature=1.0), Normalizer(), 1.098305, None),
    (Sppo(epsilon=0.3), Normalizer(), -0.063691, [0, -0.2, 0, 0, 0.2]),
    (Topr(ratio="token"), Normalizer(), 0.264018, [-0.2, -0.2, -0.2, 0.2, 0.16]),
]


@pytest.mark.parametrize(("objective", "normalizer", "loss", "grad"), CASES, ids=lambda case: type(case).__name__)
def test_loss_and_gradient(objective: Objective, normalizer: Normalizer, loss: float, grad: list[float] | None) -> None:
    value, slope, _ = run(objective, example(by=normalizer))
    assert value == pytest.approx(loss, abs=2e-5)
    if grad is not None:
        assert slope == pytest.approx(grad, abs=2e-5)


def test_clip_fraction() -> None:
    metrics = PpoClip(high=0.28, dual=3.0)(example()).metrics
    clipped = sum(metrics[name].item() for name in ("clip_high", "clip_low", "clip_dual"))
    assert clipped == pytest.approx(0.2, abs=2e-5)


def test_gspo_clips_whole_paths_at_tiny_bounds() -> None:
    value, slope, loss = run(gspo(), example(by=PATHS, advantage=(-1.0, 1.0)))
    assert value == pytest.approx(-0.00034997, abs=1e-7)
    assert slope == [0.0] * 5
    assert (loss.metrics["clip_high"] + loss.metrics["clip_low"]).item() == pytest.approx(1.0)


@pytest.mark.parametrize(("advantage", "expected"), [(1.0, [-0.8, -1, -1.05, -1.1]), (-1.0, [0.909091, 1, 1.05, 1.3])])
def test_loop_range(advantage: float, expected: list[float]) -> None:
    each = [run(loop_clip(0.1), example([[0.5 * ratio]], advantage=(advantage,)))[0] for ratio in (0.8, 1.0, 1.05, 1.3)]
    assert each == pytest.approx(expected, abs=2e-5)
