"""Ranks that go on from a checkpoint of another number of ranks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from tests.learner.test_ranks import OBJECTIVES, Trained, batch
from tests.loads import tokens_of_shares

from bough.learner.leading_rank import LeadingRank
from bough.learner.rank_processes import LaunchedRanks


@contextmanager
def ranks_of(count: int, shards: bool) -> Iterator[LeadingRank]:
    several = LeadingRank(LaunchedRanks(count), notify=print, shards=shards)
    try:
        yield several
    finally:
        several.close()


@pytest.mark.parametrize(("before", "after"), [((2, False), (3, True)), ((3, True), (2, False))])
def test_a_checkpoint_of_some_ranks_is_continued_by_others(before: tuple[int, bool], after: tuple[int, bool]) -> None:
    """With the moments, the critic and the number of updates: the next update is the one of ranks that stayed."""
    given, kept = batch("alike"), dict[str, torch.Tensor]()
    with ranks_of(*before) as several:
        first = Trained.of(several)
        first.learn(given, OBJECTIVES["critic"])
        saved = first.learner.state.snapshot()
        first.learn(given, OBJECTIVES["critic"], times=1)
        kept = first.weights()
    with ranks_of(*after) as several:
        then = Trained.of(several)
        then.learner.state.restore(saved)
        (told,) = then.learn(given, OBJECTIVES["critic"], times=1)
        assert then.learner.updates == 3
        tokens = tokens_of_shares(told)
        assert len(tokens) == after[0]
        assert min(tokens) > 0.5 * sum(tokens) / len(tokens), "each rank computed its share"
        for name, weight in then.weights().items():
            torch.testing.assert_close(weight, kept[name], rtol=0, atol=1e-8, msg=name)
