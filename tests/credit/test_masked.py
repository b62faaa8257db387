"""Masked spans: the policy's own information gets no gradient."""

import numpy as np
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.credit import Grpo, MaskedSpans, compares_with
from bough.objective import LossInputs, PpoClip
from bough.tree import Outcome, Rewarded
from bough.tree.needs import annotation


def two(spans: dict[str, list[int]]) -> Rewarded:
    """Two paths of one turn of six tokens, in one piece and in two, that differ in reward."""
    return rewarded(
        build(
            N(parent=-1, kind=PROMPT, tokens=(1, 2)),
            N(parent=0, kind=ACTION, tokens=(3, 4, 5, 6, 7, 8), env_reward=1.0, info={"spans": spans}),
            N(parent=1, kind=OBSERVATION, outcome=Outcome.TERMINATED),
            N(parent=0, kind=ACTION, tokens=(4, 4)),
            N(parent=3, kind=ACTION, tokens=(5, 6, 7, 8), info={"spans": {"information": [1, 4]}}),
            N(parent=4, kind=OBSERVATION, outcome=Outcome.TERMINATED),
        )
    )


def test_tokens_of_all_spans_of_the_name_have_no_advantage_and_others_keep_theirs() -> None:
    tree = two({"information": [1, 2], "information 2": [4, 5], "informations": [0, 1], "other": [5, 6]})
    (plain,) = Grpo()([tree])
    (masked,) = MaskedSpans()([tree])
    kept = np.asarray([1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(masked.path_advantage, plain.path_advantage * kept)
    assert np.all(plain.path_advantage != 0)
    batch = pack([masked])
    trained = (batch.positive != 0) | (batch.negative != 0)
    assert trained.tolist() == kept.astype(bool).tolist()


def test_a_batch_of_trees_and_turns_without_spans() -> None:
    trees = [two({}), two({"information": [0, 6]}), two({"information": [2, 3]})]
    plain, masked = Grpo()(trees), MaskedSpans(credit=Grpo())(trees)
    for before, after, first in zip(plain, masked, ([], [*range(6)], [2]), strict=True):
        changed = np.flatnonzero(before.path_advantage != after.path_advantage).tolist()
        assert changed == [*first, 7, 8, 9]


def test_needs_and_comparison_are_those_of_its_parts() -> None:
    assert MaskedSpans().needs == {annotation("information")}
    assert MaskedSpans(span="search").needs == {annotation("search")}
    assert compares_with(MaskedSpans()) == "task"
    assert MaskedSpans()([]) == []


def test_a_policy_gradient_is_exactly_zero_on_masked_tokens_and_there_alone() -> None:
    batch = pack(MaskedSpans()([two({"information": [1, 3]})]))
    logprob = (batch.rollout_logprob + 0.01).requires_grad_()
    columns = LossInputs(
        logprob=logprob,
        rollout_logprob=batch.rollout_logprob,
        positive=batch.positive,
        negative=batch.negative,
        loss_weight=torch.full_like(batch.positive, 1 / len(batch.positive)),
    )
    PpoClip()(columns).value.backward()
    assert logprob.grad is not None
    assert (logprob.grad == 0).tolist() == [
        False,
        True,
        True,
        False,
        False,
        False,
        False,
        True,
        True,
        True,
        False,
        False,
    ]
