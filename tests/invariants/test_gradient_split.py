"""Invariant 5: the gradient is the same however a batch is split."""

import numpy as np
import pytest
import torch
from tests.invariants.tiny import apart, gradient, loss, read
from tests.trees import credited, random_tree

from bough.batch import Batch, MiniBatch, pack
from bough.objective import Entropy, Kl, LossInputs, Normalizer, PpoClip, Sum

WHOLE = Sum(terms=(PpoClip(dual=3.0), Kl(coefficient=0.05, estimator="k2"), Entropy(coefficient=0.02)))
SHARES = [Normalizer(), Normalizer(by="unique_tokens"), Normalizer(by="constant", horizon_tokens=12)]


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, turns=3, logprobs=(-3.3, -1.8), task=str(i), grammars=0.4) for i in range(7)]
    packed = pack([credited(tree, rng) for tree in trees])
    assert packed.rows > 10
    assert len(packed.allowed[packed.allowed >= 0].unique()) > 3
    assert len(packed.tree.unique()) > 2
    return packed


def by_rows(batch: Batch, count: int) -> list[MiniBatch]:
    """Micro-batches of so many rows."""
    return [batch.select_rows(rows) for rows in torch.arange(batch.rows).split(count)]


def accumulated(parts: list[MiniBatch], share: torch.Tensor) -> torch.Tensor:
    return torch.stack([gradient(loss(WHOLE, part.batch, share[part.trained])) for part in parts]).sum(0)


@pytest.mark.parametrize("share", SHARES, ids=lambda share: share.by)
def test_micro_batches_row_orders_and_ranks(batch: Batch, share: Normalizer) -> None:
    weight = share(batch.paths, batch.inverse_length, batch.equal_length)
    whole = gradient(loss(WHOLE, batch, weight))
    rows = torch.arange(batch.rows)
    shuffled = torch.randperm(batch.rows, generator=torch.Generator().manual_seed(1))
    splits = {
        "one row each": by_rows(batch, 1),
        "a few rows each": by_rows(batch, 3),
        "all": by_rows(batch, 10**6),
        "another order": [batch.select_rows(shuffled)],
        "two ranks, dealt by turns": [batch.select_rows(rows[0::2]), batch.select_rows(rows[1::2])],
        "by tree": batch.minibatches(3, seed=5),
    }
    for name, parts in splits.items():
        assert apart(accumulated(parts, weight), whole) < 1e-6, name


def test_a_part_of_a_part(batch: Batch) -> None:
    """An optimizer step on some trees, in micro-batches, is a step on these trees."""
    for part in batch.minibatches(2, seed=7):
        own = part.batch
        weight = Normalizer()(own.paths, own.inverse_length, own.equal_length)
        whole = gradient(loss(WHOLE, own, weight))
        assert apart(accumulated(by_rows(own, 2), weight), whole) < 1e-6


def test_metrics_add_up(batch: Batch) -> None:
    def metrics(given: Batch, share: torch.Tensor) -> dict[str, float]:
        logprob, entropy = read(given)
        columns = LossInputs(
            logprob=logprob,
            entropy=entropy,
            rollout_logprob=given.rollout_logprob,
            reference=torch.full_like(logprob, -2.5).detach(),
            positive=given.positive,
            negative=given.negative,
            loss_weight=share,
        )
        return {name: metric.item() for name, metric in WHOLE(columns).metrics.items()}

    weight = Normalizer()(batch.paths, batch.inverse_length, batch.equal_length)
    whole, parts = metrics(batch, weight), [metrics(p.batch, weight[p.trained]) for p in by_rows(batch, 3)]
    assert {name: sum(part[name] for part in parts) for name in whole} == pytest.approx(whole, rel=1e-6)


def test_an_unshared_divisor_would_show(batch: Batch) -> None:
    """The mean over each micro-batch by itself, a usual mistake, is another gradient."""
    weight = Normalizer()(batch.paths, batch.inverse_length, batch.equal_length)
    parts = by_rows(batch, 3)
    wrong = torch.zeros(())
    for part in parts:
        own = part.batch
        weight_of_part = Normalizer()(own.paths, own.inverse_length, own.equal_length)
        wrong = wrong + gradient(loss(WHOLE, own, weight_of_part)) / len(parts)
    assert apart(wrong, gradient(loss(WHOLE, batch, weight))) > 1e-2
