from dataclasses import replace

import pytest
import torch
from tests.objective.example import example, run

from bough.needs import PATHS
from bough.objective import LossInputs, PpoClip, gspo, loop_clip
from bough.objective.spans import span_log_ratio, span_means, span_sums, spans

NEW = [[0.7, 0.55, 0.3, 0.6], [0.9]]


def columns(advantage: tuple[float, float] = (1.0, -1.0)) -> LossInputs:
    """A path with two turns of three and one tokens, and a path of one token."""
    return example(NEW, turns=[[3, 1], [1]], advantage=advantage)


def geometric(*probabilities: float) -> float:
    return float(torch.tensor(probabilities).double().div(0.5).log().mean().exp())


def test_sums_and_means() -> None:
    given = columns()
    assert given.path_ids is not None
    value = torch.tensor([1.0, 2.0, 6.0, 5.0, 7.0])
    turn, turns = spans(given.path_ids, "turn")
    path, paths = spans(given.path_ids, "sequence")
    assert span_sums(value, turn, turns).tolist() == [9.0, 5.0, 7.0]
    assert span_means(value, turn, turns).tolist() == [3.0, 5.0, 7.0]
    assert span_means(value, path, paths).tolist() == [3.5, 7.0]
    assert span_means(value[:0], turn[:0], 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        ("token", [1.4, 1.1, 0.6, 1.2, 1.8]),
        ("turn", [geometric(0.7, 0.55, 0.3)] * 3 + [1.2, 1.8]),
        ("sequence", [geometric(0.7, 0.55, 0.3, 0.6)] * 4 + [1.8]),
    ],
)
def test_values_are_of_the_span_and_gradients_of_the_token(ratio: str, expected: list[float]) -> None:
    given = columns()
    found = span_log_ratio(given, ratio, "Test")  # type: ignore[arg-type]
    assert found.exp().tolist() == pytest.approx(expected)
    weight = torch.arange(1.0, 6.0, dtype=torch.float64)
    assert torch.autograd.grad((weight * found).sum(), given.logprob)[0].tolist() == weight.tolist()


def test_a_product() -> None:
    found = span_log_ratio(columns(), "turn", "Test", product=True)
    assert found.exp().tolist() == pytest.approx([1.4 * 1.1 * 0.6] * 3 + [1.2, 1.8])


def test_loop_clips_the_product_over_a_path() -> None:
    """Ratios 1.4, 1.1, .6 | 1.2 of a path with an advantage of 4 have the product 1.1088; 1.8 that of one with -1."""
    given = replace(columns((4.0, -1.0)), loss_weight=torch.tensor([1 / 8] * 4 + [1 / 2], dtype=torch.float64))
    value, grad, loss = run(loop_clip(9.0, "sequence"), given)
    product = 1.4 * 1.1 * 0.6 * 1.2
    assert value == pytest.approx(-(4 * product - 1.8) / 2)
    # The gradient of the product: its value, at the log-probability of each of its tokens.
    assert grad == pytest.approx([-4 * product / 2] * 4 + [1.8 / 2])
    assert loss.metrics["ratio"].item() == pytest.approx((product + 1.8) / 2)
    value, grad, _ = run(loop_clip(0.1, "sequence"), given)
    assert value == pytest.approx(-(4 * 1.1 - 1.8) / 2), "the product is past the bound"
    assert grad == pytest.approx([0.0] * 4 + [1.8 / 2])
    assert loop_clip(0.1, "sequence").needs == {PATHS}
    with pytest.raises(
        ValueError, match=r"PpoClip.product: got it with ratio='token'; need ratio='turn' or 'sequence'"
    ):
        PpoClip(product=True)


def test_a_turn_is_clipped_together() -> None:
    """Ratios 1.4, 1.1 and .6 of one turn have the mean .974, which no bound of .2 touches; that of 1.2 it just does."""
    by_token, turn_advantage = (run(PpoClip(high=0.15, ratio=ratio), columns()) for ratio in ("token", "turn"))  # type: ignore[arg-type]
    assert by_token[1][0] == 0
    assert turn_advantage[1][:3] == pytest.approx([-geometric(0.7, 0.55, 0.3) / 5] * 3)
    assert turn_advantage[1][3] == 0
    assert turn_advantage[2].metrics["clip_high"].item() == pytest.approx(0.2)


def test_with_one_advantage_the_gradient_is_that_of_the_mean_ratio() -> None:
    given = columns()
    assert given.path_ids is not None
    path, paths = spans(given.path_ids, "sequence")
    ratio = span_means(given.logprob - given.rollout_logprob, path, paths).exp()
    plain = -(ratio * torch.tensor([4.0, -1.0])).sum() / 5
    assert run(gspo(0.9, 9.0), given)[1] == pytest.approx(torch.autograd.grad(plain, given.logprob)[0].tolist())


def test_settings_with_a_name() -> None:
    assert gspo() == PpoClip(low=3e-4, high=4e-4, ratio="sequence")
    assert gspo().needs == PpoClip(ratio="turn").needs == {PATHS}
    assert PpoClip().needs == frozenset()
    assert 1 - loop_clip(0.25).low == pytest.approx(1 / 1.25)


def test_no_path_view_is_refused() -> None:
    with pytest.raises(ValueError, match="PpoClip: got columns without `path_ids`; need the path view"):
        gspo()(example(path_ids=None))
