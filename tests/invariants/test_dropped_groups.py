"""Groups that a filter drops, and paths that it masks, leave the gradient of the others as if they had stayed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.invariants.test_credit_spread import branches
from tests.invariants.tiny import apart, gradient, loss
from tests.trees import ACTION, PROMPT, N, build, chains, rewarded
from torch import Tensor

from bough.batch import Batch, pack
from bough.credit import Grpo
from bough.curate import NonZeroAdvantage, Ties, UncutPaths, apply_filters
from bough.learner.loss_inputs import NO_CONTEXT, before_forward, by_path, loss_weights
from bough.objective import Kl, Normalizer, PpoClip, Sum
from bough.tree import Credited, Outcome, Source, Ternary, counted, exclude_leaves, spread_paths

HORIZON = 7
SHARES = [Normalizer(), Normalizer(by="paths"), Normalizer(by="unique_tokens")]
SHARES += [Normalizer(by="constant", horizon_tokens=HORIZON)]
each_share = pytest.mark.parametrize("share", SHARES, ids=lambda share: share.by)


TURNS = [(1 + i % 4, 1 + (i + 1) % 3) for i in range(8)]
"""Of the two chains of each group."""


def eight_groups(*tied: int) -> list[Credited]:
    """Groups of two chains whose turns have 2 tokens; in some groups both chains have one return."""
    returns = [[1.0, 1.0] if i in tied else [1.0, 0.0] for i in range(8)]
    return Grpo()([rewarded(chains(returns[i], turns=TURNS[i], task=str(i))) for i in range(8)])


def packed(credited: list[Credited], ties: Ties, *, paths: bool = False, in_mean: bool = True) -> Batch:
    found = apply_filters(credited, [NonZeroAdvantage(in_mean=in_mean)], ties=ties)
    return pack(found.trees, paths=paths, counted_only=found.counted_only)


def step(batch: Batch, share: Normalizer) -> Tensor:
    return gradient(loss(PpoClip(), batch, loss_weights(batch, share)))


@each_share
@pytest.mark.parametrize("tied", [(3,), (0, 3, 7), (1, 2, 3, 4, 5, 6, 7)], ids=len)
def test_leaving_out_tied_groups_changes_no_gradient(share: Normalizer, tied: tuple[int, ...]) -> None:
    groups = eight_groups(*tied)
    assert apart(step(packed(groups, "count"), share), step(pack(groups), share)) < 1e-6


@each_share
def test_metrics_are_means_over_the_tokens_with_a_loss(share: Normalizer) -> None:
    batch = packed(eight_groups(1, 2, 3), "count")
    inputs = before_forward(batch, frozenset(), NO_CONTEXT, loss_weight=loss_weights(batch, share))
    assert float(inputs.loss_weight.sum()) != pytest.approx(1, abs=0.1)
    metrics = PpoClip()(replace(inputs, logprob=inputs.rollout_logprob + 0.1)).metrics
    assert float(metrics["ratio"]) == pytest.approx(np.exp(0.1), rel=1e-5)


@each_share
def test_without_them_in_the_mean_it_is_larger(share: Normalizer) -> None:
    groups = eight_groups(3)
    alone, whole = (step(packed(groups, "count", in_mean=each), share) for each in (False, True))
    turns = [sum(each) for each in TURNS]
    factor = sum(turns) / (sum(turns) - turns[3]) if share.by in ("path_tokens", "unique_tokens") else 8 / 7
    assert apart(alone, factor * whole) < 1e-6


@each_share
def test_the_same_weights_in_the_path_view(share: Normalizer) -> None:
    batch = packed(eight_groups(2, 5), "count", paths=True)
    weights = loss_weights(batch, share)
    index = batch.path_index
    assert index is not None
    inputs = before_forward(batch, frozenset(), NO_CONTEXT, loss_weight=weights)
    assert torch.equal(by_path(inputs, batch, share).loss_weight, weights[index.trained])


@pytest.mark.parametrize("share", [each for each in SHARES if each.by != "paths"], ids=lambda share: share.by)
def test_shared_tokens_in_both_views(share: Normalizer) -> None:
    """Trees whose paths share tokens, of several lengths; the weights of a token's paths add up to its own."""
    rng = np.random.default_rng(0)
    trees = [branches(rng, str(i)) for i in range(4)]
    given = [
        spread_paths(rewarded(tree), rng.normal(size=len(counted(tree))) * (i > 0)) for i, tree in enumerate(trees)
    ]
    batch, whole = packed(given, "count", paths=True), pack(given)
    weights, index = loss_weights(batch, share), batch.path_index
    assert index is not None
    assert weights.sum().item() < loss_weights(whole, share).sum().item()
    torch.testing.assert_close(weights, loss_weights(whole, share)[-len(weights) :])
    inputs = before_forward(batch, frozenset(), NO_CONTEXT, loss_weight=weights)
    view = by_path(inputs, batch, share).loss_weight
    torch.testing.assert_close(torch.zeros_like(weights).index_add(0, index.trained, view), weights)


def by_formula(kind: str) -> list[float]:
    """The weight of each chain's tokens as TRL computes it from a padded mask: "dapo", "grpo" and "dr_grpo"."""
    lengths = [2 * turns for pair in TURNS for turns in pair]
    mask = torch.tensor([[column < length for column in range(max(lengths))] for length in lengths]).double()
    weight = {
        "path_tokens": mask / mask.sum(),
        "paths": mask / mask.sum(1, keepdim=True) / len(mask),
        "constant": mask / (len(mask) * HORIZON),
    }[kind]
    return [each for row, length in zip(weight.tolist(), lengths, strict=True) for each in row[:length]]


@pytest.mark.parametrize("share", [each for each in SHARES if each.by != "unique_tokens"], ids=lambda share: share.by)
def test_weights_are_those_of_the_formula(share: Normalizer) -> None:
    expected, batch = by_formula(share.by), packed(eight_groups(3), "count")
    begin, end = (2 * sum(map(sum, TURNS[:group])) for group in (3, 4))
    assert loss_weights(batch, share).tolist() == pytest.approx(expected[:begin] + expected[end:])


def test_a_divergence_is_over_tied_groups_too() -> None:
    whole = Sum(terms=(PpoClip(), Kl(coefficient=0.3)))
    groups = eight_groups(3, 4)
    batch, unfiltered = packed(groups, "train"), pack(groups)
    assert len(batch.at) == len(unfiltered.at)
    one, two = (gradient(loss(whole, each, loss_weights(each, Normalizer()))) for each in (batch, unfiltered))
    assert torch.equal(one, two)


@each_share
def test_minibatches_share_what_is_left_out(share: Normalizer) -> None:
    """Over an epoch the divisors add up to that of the whole."""
    batch = packed(eight_groups(3), "count")
    for count in (1, 2, 4):
        parts = [each.batch for each in batch.minibatches(count, seed=1)]
        assert sum(part.counted_only.paths for part in parts) == pytest.approx(batch.counted_only.paths)
        divisors = sum(float((part.inverse_length.sum() + part.counted_only.paths).item()) for part in parts)
        assert divisors == pytest.approx(16)
    one = batch.minibatches(2, seed=1)[0].batch
    assert loss_weights(one, share).sum().item() < 1 + (share.by == "constant")
    assert one.to("cpu").counted_only == one.counted_only


def test_demonstrations_have_a_mean_of_their_own() -> None:
    groups = eight_groups(3)
    shown = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=(2, 3), source=Source.TEACHER, outcome=Outcome.TERMINATED),
    )
    found = apply_filters(groups, [NonZeroAdvantage()], ties="count")
    taught = pack(found.trees, experts=[shown], counted_only=found.counted_only)
    weights = loss_weights(taught, Normalizer(by="paths"))
    assert weights[taught.expert].sum().item() == pytest.approx(1.0)
    assert weights[~taught.expert].sum().item() == pytest.approx(7 / 8)


@each_share
def test_masked_paths_count_and_have_no_loss(share: Normalizer) -> None:
    """The gradient is that of the whole batch with the advantages of masked paths set to zero."""
    groups = eight_groups()
    cut = groups[2].tree
    cut_off = np.where(np.arange(cut.nodes) == 1, Ternary.YES, cut.cut_off).astype(cut.cut_off.dtype)
    groups[2] = replace(groups[2], rewarded=rewarded(replace(cut, cut_off=cut_off)))
    found = apply_filters(groups, [UncutPaths(), NonZeroAdvantage()], ties="count")
    masked = pack(found.trees, counted_only=found.counted_only)
    own = groups[2]
    silent = np.where(np.arange(len(own.path_advantage)) < 2 * TURNS[2][0], 0.0, own.path_advantage)
    whole = pack([replace(each, path_advantage=silent) if each is own else each for each in groups])
    assert len(masked.at) < len(whole.at)
    assert apart(step(masked, share), step(whole, share)) < 1e-6


def test_a_token_that_kept_and_masked_paths_share_is_one_unique_token() -> None:
    tree = branches(np.random.default_rng(0), "a")
    given = spread_paths(rewarded(tree), np.arange(len(counted(tree))) - 1.0)
    first = counted(tree)[:1]
    rest = exclude_leaves(given, counted(tree)[1:])
    batch = pack([exclude_leaves(given, first)], counted_only=[rest, rest])
    assert len(batch.at) + batch.counted_only.unique_tokens == len(pack([given]).at)
