"""Masked spans: the policy's own information gets no gradient."""

import numpy as np
import torch
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.batch import pack
from bough.credit import Grpo, MaskedSpans, compares_with
from bough.methods.dialtree import dialtree
from bough.needs import annotation, needs_of
from bough.objective import LossInputs, PpoClip
from bough.tree import Outcome, Rewarded
from bough.worlds.frozenlake.preset import frozenlake


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


def test_tags_of_a_good_form_take_no_blame_and_all_praise() -> None:
    """The adaptive mask of DialTree-RPO: <action>left</action>, three times: a success, a failure, and a bad form."""
    tags = {"spans": {"tag": [0, 1], "tag 2": [2, 3]}}
    end = Outcome.TERMINATED
    tree = rewarded(
        build(
            N(parent=-1, kind=PROMPT),
            N(parent=0, kind=ACTION, tokens=(1, 5, 2), info=tags, outcome=end, env_reward=1.0, well_formed=True),
            N(parent=0, kind=ACTION, tokens=(1, 6, 2), info=tags, outcome=end, well_formed=True),
            N(parent=0, kind=ACTION, tokens=(1, 7, 2), info=tags, outcome=end, well_formed=False),
        )
    )
    rule = Grpo(std="none")
    (shielded,) = MaskedSpans(credit=rule, span="tag", only="negative")([tree])
    third = 1 / 3
    expected = [2 * third] * 3 + [0, -third, 0] + [-third] * 3
    np.testing.assert_allclose(shielded.path_advantage, expected)
    (all_masked,) = MaskedSpans(credit=rule, span="tag")([tree])
    np.testing.assert_allclose(all_masked.path_advantage[::3], 0)
    np.testing.assert_allclose(all_masked.path_advantage[1::3], [2 * third, -third, -third])


def test_a_branch_that_agrees_on_a_tag_keeps_what_the_good_paths_say_of_it() -> None:
    """Both paths go through one turn: its tags keep the praise of one and lose the blame of the other."""
    tags, end = {"spans": {"tag": [0, 1]}}, Outcome.TERMINATED
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(1, 5), info=tags, well_formed=True),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, tokens=(6,), outcome=end, env_reward=1.0, well_formed=True),
        N(parent=2, kind=ACTION, tokens=(7,), outcome=end, well_formed=True),
    ]
    (shielded,) = MaskedSpans(credit=Grpo(std="none"), span="tag", only="negative")([rewarded(build(*nodes))])
    batch = pack([shielded])
    assert batch.positive.tolist() == [0.25, 0.25, 0.5, 0]
    assert batch.negative.tolist() == [0, -0.25, 0, -0.5]


def test_the_method_marks_the_tags_that_its_rule_masks() -> None:
    run = dialtree(frozenlake())
    assert isinstance(run.method.credit, MaskedSpans)
    assert needs_of(run.method.credit) <= run.world.parser.gives  # type: ignore[attr-defined]
    assert run.method.credit.only == "negative"
