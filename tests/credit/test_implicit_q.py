from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, dressed, random_tree, rewarded, seeds

from bough.credit import Grpo, ImplicitQ
from bough.needs import REFERENCE, needs_of
from bough.tree import Credited, Floats, Outcome, Rewarded

OWN, REFERRED = [-0.2, -0.4, -3.0], [-1.2, -0.3, -1.0]


def pair() -> Rewarded:
    """A path of three tokens in two turns that succeeds, and one of a single token that fails."""
    end = Outcome.TERMINATED
    nodes = [
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION, tokens=(4, 5), logprob=OWN[:2]),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, tokens=(6,), logprob=OWN[2:], env_reward=1.0, outcome=end),
        N(parent=0, kind=ACTION, tokens=(7,), logprob=[-0.5], outcome=end),
    ]
    one = rewarded(build(*nodes))
    reference = np.full(len(one.tree.token), np.nan)
    reference[one.tree.sampled] = [*REFERRED, -0.5]
    return replace(one, estimates={"reference": reference})


def said(credited: Credited) -> Floats:
    return (credited.positive + credited.negative)[credited.tree.sampled]


def test_worked_example() -> None:
    (credited,) = ImplicitQ()([pair()])
    assert said(credited) == pytest.approx([0.1, -0.01, -0.2, 0], abs=2e-5)
    (credited,) = ImplicitQ(beta=0.5)([pair()])
    assert said(credited) == pytest.approx([0.5, -0.05, -1.0, 0], abs=2e-5)


def test_a_base_is_added() -> None:
    (credited,) = ImplicitQ(base=Grpo(std="none"))([pair()])
    assert said(credited) == pytest.approx([0.6, 0.49, 0.3, -0.5], abs=2e-5)


@given(seeds())
def test_its_sum_over_a_path_is_the_implicit_reward(rng: np.random.Generator) -> None:
    one = dressed(random_tree(rng, unusual=0.0), rng, {REFERENCE})
    (credited,) = ImplicitQ()([one])
    ratio = np.where(one.tree.sampled, one.tree.logprob - one.estimates["reference"], 0.0)
    mine = credited.positive + credited.negative
    assert mine == pytest.approx(np.where(mine != 0, 0.1 * ratio, 0.0), abs=1e-5)


def test_what_it_needs() -> None:
    assert needs_of(ImplicitQ()) == {REFERENCE}
    with pytest.raises(ValueError, match=r"ImplicitQ.beta: got 0.0; need a number above 0"):
        ImplicitQ(beta=0.0)
