"""Evaluations over several seeds of the samples."""

import re

import pytest
from tests.small import run as small

from bough.config import ConfigError
from bough.evaluate import evaluate, sentence
from bough.view import mean_interval

FEW = ("evaluation.tasks.count=3", "limits.turns=2")


def test_seeds_are_those_from_the_first_on() -> None:
    both = evaluate(small(), seeds=2, changes=FEW)
    texts = [[tree.token.tolist() for tree in score.trees] for score in both.seeds]
    assert texts[0] != texts[1], "another seed samples other episodes"
    alone = evaluate(small(), changes=FEW)
    assert texts[0] == [tree.token.tolist() for tree in alone.score.trees], "the first seed is that of one evaluation"
    assert [*both.seeds[0].successes] == [*both.seeds[1].successes], "the tasks are the same"
    rates = [each.rate for each in both.seeds]
    low, high = mean_interval(rates)
    expected = f"mean success {sum(rates) / 2:.1%} over 2 seeds (95 % interval {max(low, 0):.1%} to {min(high, 1):.1%};"
    assert expected in sentence(both).splitlines()[0]
    assert not alone.seeds
    assert not re.search("over .* seeds", sentence(alone))


def test_no_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seeds: got 0; need 1 or more"):
        evaluate(small(), seeds=0)
