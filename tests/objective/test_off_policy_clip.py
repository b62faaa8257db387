"""A teacher's tokens with a ratio and a clip."""

from dataclasses import replace

import pytest
import torch
from tests.objective.example import example

from bough.needs import OLD_LOGPROBS
from bough.objective import LossInputs, OffPolicyClip, PpoClip


def shown(*, old: float | None = None) -> LossInputs:
    """Of the second path, tokens of .9 and .4, a teacher wrote both."""
    given = example(advantage=(1.0, 1.0))
    expert = torch.tensor([False] * 3 + [True] * 2)
    before = None if old is None else torch.full_like(given.logprob, old).log().detach()
    return replace(given, expert=expert, old=before)


def slopes(objective: OffPolicyClip, given: LossInputs) -> list[float]:
    """Gradients with respect to the log-probabilities of the teacher's tokens, over minus their weights."""
    objective(given).value.backward()
    assert given.logprob.grad is not None
    return (-given.logprob.grad / given.loss_weight)[3:].tolist()


def test_shaping_gives_unlikely_tokens_more_gradient() -> None:
    assert slopes(OffPolicyClip(mu=1.0, shape=0.0), shown()) == pytest.approx([0.9, 0.4])
    # f' = shape * r / (r + shape)^2
    assert slopes(OffPolicyClip(mu=1.0), shown()) == pytest.approx([0.09, 0.16])
    rare = replace(shown(), logprob=torch.full((5,), 0.02, dtype=torch.float64).log().requires_grad_())
    loss = OffPolicyClip(mu=1.0)(rare)
    assert float(loss.metrics["expert_ratio"] / rare.loss_weight[3:].sum()) == pytest.approx(1 / 6)
    assert slopes(OffPolicyClip(mu=1.0), rare) == pytest.approx([0.02 / 0.12**2 * 0.1] * 2)


def test_the_clip_ends_the_gradient_of_a_token_that_became_likely() -> None:
    """Ratios .9 / .5 and .4 / .5 to the policy before the update."""
    before = OffPolicyClip(mu=1.0, denominator="old", shape=0.0)
    assert slopes(before, shown(old=0.5)) == pytest.approx([0.0, 0.8])
    assert float(before(shown(old=0.5)).metrics["expert_clip"]) > 0
    assert slopes(OffPolicyClip(mu=1.0, denominator="old", shape=0.0, high=1.0), shown(old=0.5)) == pytest.approx(
        [1.8, 0.8]
    )
    assert OLD_LOGPROBS in before.needs


def test_sampled_tokens_have_their_own_loss_and_weight() -> None:
    alone = PpoClip()(shown().select(torch.tensor([True] * 3 + [False] * 2)))
    assert OffPolicyClip(mu=0.0)(shown()).value.item() == pytest.approx(alone.value.item())
    assert slopes(OffPolicyClip(mu=0.0), shown()) == [0.0, 0.0]


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="got columns without `old`"):
        OffPolicyClip(denominator="old")(shown())
    with pytest.raises(ValueError, match="got columns without `expert`"):
        OffPolicyClip()(example())
    with pytest.raises(ValueError, match=r"OffPolicyClip.shape: got -1; need at least 0"):
        OffPolicyClip(shape=-1)
