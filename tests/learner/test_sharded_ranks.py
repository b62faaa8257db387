"""Ranks with a part of the weights each: the same step as one process takes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.learner.test_ranks import CASES, OBJECTIVES, SMOOTH, Trained, batch, policy, same
from tests.loads import tokens_of_shares, without_shares
from torch.distributed.tensor import DTensor

from bough.learner import Learner
from bough.learner.leading_rank import LeadingRank
from bough.learner.learner import Diverged
from bough.learner.rank_processes import LaunchedRanks
from bough.learner.ranks import SINGLE_RANK
from bough.objective import Normalizer, PpoClip, ValueClip, gspo
from bough.policy import Lora, Pretrained
from bough.policy.placement import Dtype


@pytest.fixture(scope="module")
def ranks() -> Iterator[LeadingRank]:
    """Four: faults and runs are tested with two."""
    several = LeadingRank(LaunchedRanks(4), notify=print, shards=True, update_s=60.0)
    yield several
    several.close()


@pytest.mark.parametrize(("objective", "kind"), CASES)
def test_shards_take_the_steps_of_one_process(ranks: LeadingRank, objective: str, kind: str) -> None:
    # Trees are cut into chunks, of which the ranks have different numbers.
    settings = {"minibatches": 2, "micro_tokens": 20, "clip_norm": 1e-3}
    one, several, given = Trained.of(**settings), Trained.of(ranks, **settings), batch(kind)
    single, shared = one.learn(given, OBJECTIVES[objective]), several.learn(given, OBJECTIVES[objective])
    for here, there in zip(single, shared, strict=True):
        assert here["optimizer/gradient_norm"] > 1e-3
        # Weights of the loss are float32.
        assert without_shares(there) == pytest.approx(here, rel=1e-6, abs=1e-7)
        tokens = tokens_of_shares(there)
        assert len(tokens) == 4
        assert min(tokens) > 0.5 * sum(tokens) / 4, "each rank computed its share"
    same(one, several)
    torch.testing.assert_close(several.learner.logprobs(given), one.learner.logprobs(given), rtol=0, atol=1e-6)
    assert without_shares(several.learner.rehearse(given, PpoClip(), Normalizer())) == pytest.approx(
        one.learner.rehearse(given, PpoClip(), Normalizer()), rel=1e-6, abs=1e-7
    )


def test_a_rank_has_its_part_of_weights_gradients_and_moments(ranks: LeadingRank) -> None:
    several = Trained.of(ranks)
    several.learn(batch(), PpoClip(), times=1)
    state, whole = several.learner.state, several.learner.policy.parameters()
    moments = state.optimizers.state()
    assert state.weights.keys() == whole.keys()
    for name, weight in state.weights.items():
        for each in (weight, weight.grad, moments[f"{name}/exp_avg"], moments[f"{name}/exp_avg_sq"]):
            assert isinstance(each, DTensor)
            # All weights have 16 or 260 rows.
            assert each.to_local().numel() * ranks.world_size == each.numel() == whole[name].numel()
        # Rank 0 has whole moments for checkpoints.
        assert state.moments()[f"{name}/exp_avg"].shape == whole[name].shape


def test_fewer_trees_than_ranks(ranks: LeadingRank) -> None:
    one, several, given = Trained.of(), Trained.of(ranks), batch(count=1)
    for objective in (PpoClip(), gspo()):
        one.learn(given, objective)
        several.learn(given, objective)
    same(one, several)


def test_a_loss_without_the_policy(ranks: LeadingRank) -> None:
    one, several = (Trained.of(group, micro_tokens=20, detach=True) for group in (SINGLE_RANK, ranks))
    for each in (one, several):
        each.learn(batch(), ValueClip())
    same(one, several)


def test_shards_take_over_weights_and_moments_that_rank_0_has_loaded(ranks: LeadingRank) -> None:
    given = batch()
    one, several, before = Trained.of(), Trained.of(ranks), Trained.of()
    before.learn(given, PpoClip())
    for each in (one, several):
        each.learn(given, gspo(), times=1)
        each.learner.policy.load_state(before.learner.policy.state())
        each.learner.state.load_moments(before.learner.state.moments(), 2)
        each.learn(given, PpoClip())
    same(one, several)


@pytest.mark.parametrize(
    ("dtype", "lora", "recompute", "tolerance"),
    [
        ("float64", None, True, 1e-8),
        # Adapters are float32.
        ("float64", Lora(rank=2), True, 1e-6),
        # A step is below 1e-2, and the gradient of a rank is rounded to 8 bits.
        ("bfloat16", None, False, 2e-3),
    ],
)
def test_adapters_dtypes_and_recomputed_activations(
    ranks: LeadingRank, tmp_path: Path, dtype: Dtype, lora: Lora | None, recompute: bool, tolerance: float
) -> None:
    policy().save(tmp_path)
    given, learned = batch(), []
    for group in (SINGLE_RANK, ranks):
        own = Pretrained(path=str(tmp_path), dtype=dtype, lora=lora).build(())
        own.recompute(recompute)
        settings = replace(SMOOTH, micro_tokens=20, recompute=recompute)
        learner = Learner(own, settings, total_updates=10, temperature=1.0, ranks=group)
        for seed in range(2):
            learner.learn(given, PpoClip(), Normalizer(), seed=seed)
        learned.append(own.state())
    before = Pretrained(path=str(tmp_path), dtype=dtype, lora=lora).build(()).state()
    assert any(bool((learned[1][name] != weight).any()) for name, weight in before.items())
    for name, weight in learned[0].items():
        assert ("lora" in name) == (lora is not None)
        torch.testing.assert_close(learned[1][name], weight, rtol=0, atol=tolerance, msg=name)


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
