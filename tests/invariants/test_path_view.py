"""The path view that losses over whole paths see: the ordinary loss on every path by itself, however rows are split."""

import numpy as np
import pytest
import torch
from tests.invariants.test_credit_spread import branches
from tests.trees import rewarded
from torch import Tensor

from bough.batch import pack
from bough.learner import Learner, Optimizer
from bough.learner.loss_inputs import ObjectiveContext
from bough.needs import PATHS, needs_of
from bough.objective import Entropy, Kl, Loss, LossInputs, Need, Normalizer, PpoClip, Sum
from bough.policy import Tiny
from bough.tree import counted, spread_paths

WHOLE = Sum(terms=(PpoClip(low=0.2, high=0.3, dual=1.6), Kl(coefficient=0.05), Entropy(coefficient=0.02)))


class ByPath:
    """The same loss, but asks for paths."""

    needs: frozenset[Need] = needs_of(WHOLE) | {PATHS}

    def __call__(self, columns: LossInputs) -> Loss:
        assert columns.path_ids is not None
        assert bool((columns.path_ids.path.diff() >= 0).all())
        assert bool((columns.path_ids.turn.diff() >= 0).all())
        assert torch.equal(columns.path_ids.path_of_turn[columns.path_ids.turn], columns.path_ids.path)
        return WHOLE(columns)


@pytest.mark.parametrize(
    "share", [Normalizer(), Normalizer(by="unique_tokens"), Normalizer(by="constant", horizon_tokens=9)], ids=str
)
def test_a_loss_over_tokens_is_the_same_in_both_views(share: Normalizer) -> None:
    rng = np.random.default_rng(0)
    trees = [branches(rng, str(i)) for i in range(4)]
    credited = [spread_paths(rewarded(tree), rng.normal(size=len(counted(tree)))) for tree in trees]
    batch = pack(credited, paths=True)
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=128, dtype="float64").build(["a b"])
    context = ObjectiveContext(reference=policy.replica())

    def gradient(objective: Sum | ByPath, micro_tokens: int, part: int | None) -> tuple[dict[str, float], list[Tensor]]:
        learner = Learner(policy, Optimizer(micro_tokens=micro_tokens), total_updates=1, temperature=1.0)
        for weight in policy.parameters().values():
            weight.grad = None
        chosen = batch if part is None else batch.minibatches(2, 3)[part].batch
        metrics = learner.backward(chosen, objective, share, context=context)
        return metrics, [weight.grad.clone() for weight in policy.parameters().values() if weight.grad is not None]

    for part in (None, 0, 1):
        metrics, whole = gradient(WHOLE, 10**6, part)
        # Shares of a minibatch and splits of rows meet in one split.
        for micro_tokens in (1, 50, 10**6) if part is None else (50,):
            other_metrics, other = gradient(ByPath(), micro_tokens, part)
            assert other_metrics["loss/total"] == pytest.approx(metrics["loss/total"], rel=1e-5)
            for one, two in zip(whole, other, strict=True):
                torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-8)
