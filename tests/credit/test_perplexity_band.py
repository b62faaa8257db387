"""The band of perplexities: turns of the middle keep their advantage, others have none."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Filtered, Grpo, PerplexityBand, compares_with
from bough.tree import Outcome, Rewarded, Source, Ternary


def path(*perplexities: float | None, success: bool = True) -> Rewarded:
    """A path whose turns have these perplexities; None for a turn without log-probabilities."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for each in perplexities:
        known = () if each is None else (-2 * float(np.log(each)), 0.0)
        source = Source.SAMPLED if known else Source.TEACHER
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION, tokens=(2, 2), logprob=known or -0.5, source=source))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(3,)))
    nodes[-1] = N(parent=len(nodes) - 2, kind=OBSERVATION, outcome=Outcome.TERMINATED, success=success)
    return rewarded(build(*nodes))


def of_turns(credit: PerplexityBand, *trees: Rewarded) -> list[list[float]]:
    return [each.path_advantage[::2].tolist() for each in credit(list(trees))]


def test_the_example_of_the_docstring() -> None:
    band = PerplexityBand(low=0.25, high=0.75)
    assert of_turns(band, path(1.0, 1.1, 2.0, 3.0, 40.0)) == [[0, 1, 1, 1, 0]]


def test_quantiles_are_over_the_turns_that_are_learned_and_over_the_batch() -> None:
    """A failed path has no part in them; without log-probabilities a turn stays."""
    band = PerplexityBand(low=0.25, high=0.75)
    good, rest, lost = path(1.0, 1.1, 2.0), path(3.0, 40.0, None), path(500.0, 600.0, 700.0, success=False)
    assert of_turns(band, good, rest, lost) == [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    assert Ternary.YES in good.tree.success


def test_it_keeps_the_comparison_of_its_rule_and_checks_its_settings() -> None:
    assert compares_with(PerplexityBand(credit=Grpo())) == "task"
    assert compares_with(PerplexityBand()) == compares_with(Filtered())
    assert PerplexityBand()([]) == []
    with pytest.raises(ValueError, match=r"PerplexityBand: got low=0\.5, high=0\.5"):
        PerplexityBand(low=0.5, high=0.5)
