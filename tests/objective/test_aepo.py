import pytest
import torch
from tests.objective.example import example, run

from bough.objective import Aepo, LossInputs, PpoClip


def four(advantage: float) -> LossInputs:
    """Four tokens of one path, the first undecided; ratios 1.4, 1.1, .6 and 1.4."""
    entropy = torch.tensor([2.0, 0.2, 0.2, 0.2], dtype=torch.float64)
    return example([[0.7, 0.55, 0.3, 0.7]], advantage=(advantage,), entropy=entropy)


@pytest.mark.parametrize(
    ("keep", "advantage", "loss", "grad"),
    [
        ("low", 1.0, -1.0865, [0, -0.2475, -0.135, -0.288]),
        ("low", -1.0, 1.1975, [0.455, 0.2475, 0, 0.315]),
        ("high", 1.0, -1.0865, [-0.416, -0.2475, -0.135, 0]),
        ("high", -1.0, 1.1975, [0.455, 0.2475, 0, 0.315]),
        ("all", 1.0, -1.0865, [-0.416, -0.2475, -0.135, -0.288]),
    ],
)
def test_worked_example(keep: str, advantage: float, loss: float, grad: list[float]) -> None:
    value, slope, _ = run(Aepo(keep=keep), four(advantage))  # type: ignore[arg-type]
    assert value == pytest.approx(loss, abs=2e-5)
    assert slope == pytest.approx(grad, abs=2e-5)


def test_undecided_tokens_keep_their_gradient_and_not_the_decided_ones() -> None:
    """A re-implementation has it the wrong way round; `keep="low"` does the same."""
    ours, theirs = run(Aepo(), four(1.0))[1], run(Aepo(keep="low"), four(1.0))[1]
    assert ours[0] < 0 == ours[3]
    assert theirs[3] < 0 == theirs[0]


def test_equal_entropies_and_no_weight_are_plain_clipping() -> None:
    alike = example(entropy=torch.ones(5, dtype=torch.float64))
    clip = PpoClip(low=0.2, high=0.28, dual=3.0)
    assert run(Aepo(), alike)[0] == pytest.approx(run(clip, example())[0])
    assert run(Aepo(), alike)[1] == pytest.approx(run(clip, example())[1])
    assert run(Aepo(), example([[0.6]], advantage=(1.0,), entropy=torch.ones(1).double()))[0] == pytest.approx(-1.2)


def test_metrics() -> None:
    metrics = {name: each.item() for name, each in Aepo()(four(1.0)).metrics.items()}
    assert metrics == pytest.approx(
        {"ratio": 1.125, "clip_high": 0.5, "clip_low": 0, "clip_dual": 0, "clip_kept": 0.25, "entropy": 0.65}
    )


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="Aepo: got columns without `entropy`"):
        Aepo()(example())
    with pytest.raises(ValueError, match="Aepo: got columns without `path_ids`; need the path view"):
        Aepo()(example(entropy=torch.ones(5).double(), path_ids=None))
