"""A model that cannot read a forest is trained path by path, and says so."""

import warnings
from typing import Literal

import numpy as np
import pytest
import torch
from tests.trees import credited, random_tree
from torch import Tensor

from bough.batch import Batch, pack
from bough.learner import Learner, Optimizer
from bough.learner.packing_check import packing_agrees
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy


def policy(dtype: Literal["float64", "bfloat16"] = "float64") -> Policy:
    return Tiny(layers=2, width=16, heads=2, vocab_tokens=260, context_tokens=128, dtype=dtype).build(["a"])


def batch(edits: float = 0.3) -> Batch:
    rng = np.random.default_rng(0)
    return pack([credited(random_tree(rng, edits=edits, task=str(i)), rng) for i in range(3)])


def leak(model: Policy) -> None:
    """Have every token take a little of the one before it in memory, as a convolution or a recurrence would."""
    plain = model.hidden

    def hidden(
        tokens: Tensor, positions: Tensor, attend: object, rows: Tensor | None = None, attend_last: object = None
    ) -> Tensor:
        del attend_last
        out = plain(tokens, positions, attend)  # type: ignore[arg-type]
        leaking = out + 0.5 * torch.cat([out[:1], out[:-1]])
        return leaking if rows is None else leaking[rows]

    model.hidden = hidden  # type: ignore[method-assign]


def gradient(learner: Learner, given: Batch) -> Tensor:
    weights = list(learner.policy.parameters().values())
    for weight in weights:
        weight.grad = None
    learner.backward(given, PpoClip(), Normalizer())
    return torch.cat([weight.grad.flatten() for weight in weights if weight.grad is not None])


def test_a_model_that_reads_forests_is_left_alone() -> None:
    model = policy()
    assert packing_agrees(model, batch(), temperature=1.0)
    learner = Learner(model, Optimizer(), total_updates=1, temperature=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = learner.learn(batch(), PpoClip(), Normalizer(), seed=0)
    assert learner.merges
    given = batch()
    assert metrics["update/tokens"] == len(given.prefix_tree()) < given.prefix_tree().path_tokens
    # The arithmetic of the tokens, of the words and of the pairs is not saved alike.
    assert 1 < metrics["update/saving"] < given.prefix_tree().path_pairs / given.prefix_tree().pairs


def test_one_that_does_not_is_trained_path_by_path() -> None:
    model, given = policy(), batch()
    leak(model)
    assert not packing_agrees(model, given, temperature=1.0)
    learner = Learner(model, Optimizer(), total_updates=1, temperature=1.0)
    with pytest.warns(UserWarning, match="trained path by path"):
        learner.learn(given, PpoClip(), Normalizer(), seed=0)
    assert not learner.merges
    apart = Learner(model, Optimizer(), total_updates=1, temperature=1.0)
    apart.merges = False
    assert torch.equal(gradient(learner, given), gradient(apart, given))


def test_in_bfloat16_rounding_is_no_objection_and_a_leak_is() -> None:
    model, given = policy("bfloat16"), batch()
    with torch.no_grad():
        model.head()[0].mul_(40)  # unlikely tokens have the largest errors
    plain = model.hidden

    def rounded(tokens: Tensor, *rest: object, **more: object) -> Tensor:
        """Errors that depend on the shape of the batch, as those of large models."""
        return plain(tokens, *rest, **more) * (1 + 0.02 * (len(tokens) > 20))  # type: ignore[arg-type]

    model.hidden = rounded  # type: ignore[method-assign]
    assert packing_agrees(model, given, temperature=1.0)
    leak(model)
    assert not packing_agrees(model, given, temperature=1.0)


def test_nothing_to_compare_is_no_objection() -> None:
    given = batch()
    single = given.select_rows(torch.tensor([0])).batch
    model = policy()
    leak(model)
    assert packing_agrees(model, single, temperature=1.0)
