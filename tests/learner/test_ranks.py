"""Processes that compute the gradients of a batch together: the same step as one process takes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.loads import tokens_of_shares, without_shares
from tests.trees import random_tree, rewarded

from bough.batch import Batch, pack
from bough.credit import TurnPpo
from bough.critics import ValueHead
from bough.learner import Learner, Optimizer
from bough.learner.estimates import add_estimates
from bough.learner.leading_rank import LeadingRank
from bough.learner.learner import Diverged
from bough.learner.loss_inputs import ObjectiveContext
from bough.learner.rank_gpus import VisibleGpus, check_gpus, own_gpus
from bough.learner.rank_processes import LaunchedRanks
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.learner.reference import Reference
from bough.objective import Kl, Normalizer, Objective, PpoClip, Sum, ValueClip, gspo
from bough.policy import Lora, Tiny
from bough.policy.policy import Policy

OBJECTIVES = {
    "tokens": PpoClip(),
    "paths": gspo(),
    "critic": Sum(terms=(PpoClip(), ValueClip())),
    "reference": Sum(terms=(PpoClip(), Kl(coefficient=0.1))),
}
CASES = (("tokens", "trees"), ("paths", "alike"), ("critic", "alike"), ("reference", "trees"))
"""Each loss with one kind of batch: the kind decides how a batch is divided, the loss what is summed."""
SMOOTH = Optimizer(learning_rate=1e-2, epsilon=1.0)
"""Its steps are nearly proportional to gradients: AdamW's are signs of them, which rounding may turn near 0."""


@pytest.fixture(scope="module", params=[2, 4])
def ranks(request: pytest.FixtureRequest) -> Iterator[LeadingRank]:
    several = LeadingRank(LaunchedRanks(request.param), notify=print)
    yield several
    several.close()


def policy() -> Policy:
    return Tiny(layers=2, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    learner: Learner
    reference: Reference

    @classmethod
    def of(cls, ranks: Ranks = SINGLE_RANK, *, detach: bool = False, **settings: Any) -> "Trained":
        own = policy()
        critic = ValueHead(detach=detach).build(own.head()[0].shape[1]).double()
        learner = Learner(
            own, replace(SMOOTH, **settings), total_updates=10, temperature=1.0, critic=critic, ranks=ranks
        )
        reference = Reference(own, wanted=True, ranks=ranks)
        reference.freeze()
        return cls(learner=learner, reference=reference)

    def learn(self, batch: Batch, objective: Objective, times: int = 2) -> list[dict[str, float]]:
        context = ObjectiveContext(reference=self.reference.model)
        return [self.learner.learn(batch, objective, Normalizer(), seed=seed, context=context) for seed in range(times)]

    def weights(self) -> dict[str, torch.Tensor]:
        assert self.learner.critic is not None
        return self.learner.policy.state() | self.learner.critic.state()


def batch(kind: str = "trees", count: int = 6) -> Batch:
    rng, one = np.random.default_rng(0), Trained.of()
    trees = [random_tree(rng, task=str(task), vocab=40, grammars=0.3) for task in range(count)]
    if kind == "alike":
        # As with instructions and chat templates: all texts begin with the same token.
        trees = [replace(tree, token=np.where(np.arange(len(tree.token)) == 0, 1, tree.token)) for tree in trees]
    seen = add_estimates(
        [rewarded(tree) for tree in trees],
        one.learner.policy,
        critic=one.learner.critic,
        reference=None,
        temperature=1.0,
        micro_tokens=50,
    )
    return pack(TurnPpo()(seen), paths=True)


def same(one: Trained, other: Trained) -> None:
    """Weights agree to a small part of a step. Norms compute in float32, and ranks round their parts of a sum."""
    for name, weight in one.weights().items():
        torch.testing.assert_close(other.weights()[name], weight, rtol=0, atol=1e-8, msg=name)


@pytest.mark.parametrize(("objective", "kind"), CASES)
def test_ranks_take_the_steps_of_one_process(ranks: LeadingRank, objective: str, kind: str) -> None:
    one, several, given = Trained.of(minibatches=2), Trained.of(ranks, minibatches=2), batch(kind)
    assert bool((given.allowed >= 0).any())
    single, shared = one.learn(given, OBJECTIVES[objective]), several.learn(given, OBJECTIVES[objective])
    for here, there in zip(single, shared, strict=True):
        # Weights of the loss are float32.
        assert without_shares(there) == pytest.approx(here, rel=1e-6, abs=1e-7)
        tokens = tokens_of_shares(there)
        assert len(tokens) == len(ranks.pids) + 1
        assert min(tokens) > 0.5 * sum(tokens) / len(tokens), "each rank computed its share"
    same(one, several)
    torch.testing.assert_close(several.learner.logprobs(given), one.learner.logprobs(given), rtol=0, atol=1e-6)
    assert without_shares(several.learner.rehearse(given, PpoClip(), Normalizer())) == pytest.approx(
        one.learner.rehearse(given, PpoClip(), Normalizer()), rel=1e-6, abs=1e-7
    )


def test_fewer_trees_than_ranks_and_threads_in_each(ranks: LeadingRank) -> None:
    one, several, given = Trained.of(), Trained.of(ranks, cpu_workers=2), batch(count=1)
    one.learn(given, PpoClip())
    several.learn(given, PpoClip())
    same(one, several)


def test_ranks_take_over_weights_and_moments_that_rank_0_has_loaded(ranks: LeadingRank) -> None:
    given = batch()
    one, several, before = Trained.of(), Trained.of(ranks), Trained.of()
    before.learn(given, PpoClip())
    for each in (one, several):
        each.learn(given, gspo(), times=1)
        each.learner.state.restore(before.learner.state.snapshot())
        each.learn(given, PpoClip())
    same(one, several)


def test_adapters_are_trained_by_all_ranks(ranks: LeadingRank, tmp_path: Path) -> None:
    from bough.policy import Pretrained

    policy().save(tmp_path)
    given, learned = batch(), []
    for group in (SINGLE_RANK, ranks):
        own = Pretrained(path=str(tmp_path), dtype="float64", lora=Lora(rank=2)).build(())
        learner = Learner(own, Optimizer(), total_updates=10, temperature=1.0, ranks=group)
        for seed in range(2):
            learner.learn(given, PpoClip(), Normalizer(), seed=seed)
        learned.append(own.state())
    assert all("lora" in name for name in learned[0])
    for name, weight in learned[0].items():
        # Adapters are float32.
        torch.testing.assert_close(learned[1][name], weight, rtol=0, atol=1e-6, msg=name)


def test_an_update_that_diverges_ends_in_no_rank(ranks: LeadingRank) -> None:
    one, several, given = Trained.of(), Trained.of(ranks), batch()
    broken = replace(given, negative=given.negative * torch.nan, positive=given.positive * torch.nan)
    pids = ranks.pids
    with pytest.raises(Diverged):
        several.learn(broken, PpoClip())
    one.learn(given, PpoClip())
    several.learn(given, PpoClip())
    same(one, several)
    assert ranks.pids == pids


def test_a_policy_on_a_gpu_needs_a_gpu_for_each_rank() -> None:
    shared = VisibleGpus(machine=("a", 1), chosen=None, count=2)
    other = VisibleGpus(machine=("b", 2), chosen="5", count=1)
    assert own_gpus([shared, shared, other, shared]) == [0, 1, 0, None]
    check_gpus([0, 1, 0], torch.device("cuda"))
    check_gpus([None], torch.device("cpu"))
    with pytest.raises(ValueError, match=r"ranks: got 2 for a policy on cuda, 1 of them without a GPU; need a GPU"):
        check_gpus([0, None], torch.device("cuda"))
