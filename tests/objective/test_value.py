from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bough.needs import CRITIC, needs_of
from bough.objective import LossInputs, PpoClip, Sum, ValueClip
from bough.objective.inputs import ValueInputs as HeadColumns

NAN = torch.nan


def columns(loss_weight: list[float] | None = None, scale: float = 1.0, **heads: list[list[float]]) -> LossInputs:
    """Values, old values and goals of each head."""
    count = len(next(iter(heads.values()))[0])
    shares = torch.full((count,), 1 / count) if loss_weight is None else torch.tensor(loss_weight)
    values = {
        name: HeadColumns(
            value=torch.tensor(value, requires_grad=True), old=torch.tensor(old), target=torch.tensor(goal), scale=scale
        )
        for name, (value, old, goal) in heads.items()
    }
    zero = torch.zeros(count)
    return LossInputs(
        logprob=zero, rollout_logprob=zero, positive=zero, negative=zero, loss_weight=shares, values=values
    )


def slope(given: LossInputs, loss: Tensor) -> list[float]:
    return torch.autograd.grad(loss, given.values["value"].value)[0].tolist()


def test_squared_error() -> None:
    given = columns(value=[[1.0, 2.0], [0.0, 0.0], [0.0, 5.0]])
    loss = ValueClip(coefficient=0.5, clip=None)(given)
    assert loss.value.item() == pytest.approx(0.5 * (1 + 9) / 2)
    assert slope(given, loss.value) == pytest.approx([0.5 * 2 * 1 / 2, 0.5 * 2 * -3 / 2])
    assert "value_clipped" not in loss.metrics


def test_a_value_that_went_far_enough_has_no_gradient() -> None:
    """From 0: up to the goal of 2 by 1, of which 0.5 is allowed; away from the goal of -2 as far as it likes."""
    given = columns(value=[[1.0, 1.0, 0.3], [0.0, 0.0, 0.0], [2.0, -2.0, 2.0]])
    loss = ValueClip(coefficient=1.0, clip=0.5)(given)
    assert loss.value.item() == pytest.approx((1.5**2 + 3**2 + 1.7**2) / 3)
    assert slope(given, loss.value) == pytest.approx([0.0, 2 * 3 / 3, 2 * -1.7 / 3])
    assert loss.metrics["value_clipped"].item() == pytest.approx(1 / 3)
    assert loss.metrics["value_error"].item() == pytest.approx((1 + 9 + 1.7**2) / 3)


def test_tokens_without_a_goal_do_not_count() -> None:
    some = columns(scale=2.0, value=[[1.0, 7.0, 3.0, 9.0], [0.0, NAN, NAN, 0.0], [0.0, NAN, 1.0, NAN]])
    whole = columns(value=[[1.0, 3.0], [0.0, NAN], [0.0, 1.0]])
    losses = [ValueClip()(some), ValueClip()(whole)]
    assert losses[0].value.item() == pytest.approx(losses[1].value.item())
    for name, number in losses[1].metrics.items():
        assert losses[0].metrics[name].item() == pytest.approx(number.item())
    found = slope(some, losses[0].value)
    assert found[1] == found[3] == 0.0
    assert found[0] != 0.0


def test_nothing_has_a_goal() -> None:
    given = columns(value=[[1.0], [0.0], [NAN]])
    loss = ValueClip()(given)
    assert loss.value.item() == 0.0
    assert slope(given, loss.value) == [0.0]


def test_metrics_of_micro_batches_add_up_to_explained_variance() -> None:
    value, goal = [0.5, 1.0, 2.0, 0.0], [1.0, 1.5, 2.5, -1.0]
    told: dict[str, float] = {}
    for part in (slice(0, 1), slice(1, 4)):
        one = columns([0.25] * len(value[part]), value=[value[part], value[part], goal[part]])
        for name, number in ValueClip()(one).metrics.items():
            told[name] = told.get(name, 0.0) + number.item()
    error = told["value_error"] - told["value_bias"] ** 2
    explained = 1 - error / (told["value_goal_square"] - told["value_goal"] ** 2)
    residual = torch.tensor(goal) - torch.tensor(value)
    assert explained == pytest.approx((1 - residual.var(correction=0) / torch.tensor(goal).var(correction=0)).item())


def test_heads() -> None:
    given = columns(low=[[1.0], [1.0], [0.0]], high=[[2.0], [2.0], [0.0]])
    rule = ValueClip(coefficient=1.0)
    assert rule(given).value.item() == pytest.approx(5.0)
    one = replace(rule, heads=("high",))(given)
    assert one.value.item() == pytest.approx(4.0)
    assert set(one.metrics) == {"high_error", "high_bias", "high_goal", "high_goal_square", "high_clipped"}
    with pytest.raises(ValueError, match=r"ValueClip.heads: got \['value'\] and a critic with \['high', 'low'\]"):
        replace(rule, heads=("value",))(given)
    both = Sum(terms=(PpoClip(), rule))
    assert CRITIC in needs_of(both)
    assert both(given).value.item() == pytest.approx(5.0)


@pytest.mark.parametrize("field", [{"coefficient": -1.0}, {"clip": 0.0}])
def test_fields(field: dict[str, float]) -> None:
    (name,) = field
    with pytest.raises(ValueError, match=f"ValueClip.{name}: got"):
        ValueClip(**field)
