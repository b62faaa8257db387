from dataclasses import replace

import numpy as np
import pytest
from tests.credit.grown import ended, flat
from tests.credit.seen import paid
from tests.trees import ACTION, PROMPT, N, build, rewarded

from bough.credit import Spae
from bough.credit.spae import shaped
from bough.needs import appraised, needs_of
from bough.tree import Appraisal, Entry, Floats, Kind, Outcome, Rewarded, Source, StageError, Verdict


def asked(given: Rewarded, *potentials: float) -> Rewarded:
    """The tree with these potentials before its turns, in the order of its nodes."""
    acts = np.flatnonzero(given.tree.kind == Kind.ACTION).tolist()
    entries = {
        node: Entry(value=value, verdict=Verdict.OK, votes=5) for node, value in zip(acts, potentials, strict=True)
    }
    return replace(given, tree=replace(given.tree, appraisals={"potential": Appraisal.of(entries, given.tree.nodes)}))


def whitened(value: list[float]) -> Floats:
    found = np.asarray(value)
    return (found - found.mean()) / (found.std(ddof=1) + 1e-8)


def test_the_saturation_penalty_of_the_paper() -> None:
    """Potentials .2, .95, .93, .97 after four turns, and another path that knows nothing."""
    after = np.asarray([0.2, 0.95, 0.93, 0.97, 0.1, 0.2])
    found = Spae().discounts(after, np.asarray([0, 4, 6]))
    assert found == pytest.approx([1, 1, 0.68394, 0.567668, 1, 1], abs=2e-5)
    assert Spae(penalty=0.0).discounts(after, np.asarray([0, 4, 6])).tolist() == [1.0] * 6


def test_worked_example() -> None:
    """Two paths of a task, one that succeeds and knows the answer after two turns, and one that fails at once."""
    given = asked(paid(ended(1, 4), ended(0, 1)), -0.1, 0.2, 0.95, 0.93, 0.4)
    shape = [-0.0741, 1.1289, -0.5894, -0.4654]
    expected = [0.5 * f + 0.5 * g for f, g in zip([1, 1, 0.68394, 0.567668], shape, strict=True)]
    assert flat(*Spae()([given])) == pytest.approx(whitened([*expected, -0.5]), abs=1e-4)
    assert shaped(np.asarray([0.3, 0.75, -0.02, 0.07]), np.asarray([0, 4])) == pytest.approx(shape, abs=1e-4)


def test_each_part_by_itself() -> None:
    """Without the penalty and the shaping, it is the outcome; a right answer that is dropped at the end is blamed."""
    pair = asked(paid(ended(1, 2), ended(0, 2)), 0.0, 0.95, 0.0, 0.95)
    assert flat(*Spae(penalty=0.0, shaping=0.0)([pair])) == pytest.approx(whitened([0.5, 0.5, -0.5, -0.5]))
    less = flat(*Spae(shaping=0.0)([pair]))
    assert less == pytest.approx(whitened([0.5, 0.5 * 0.68394, -0.5, -0.5 * 0.68394]), abs=1e-5)
    good, late, spoilt, last = flat(*Spae(penalty=0.0)([pair]))
    # In the first path the last turn adds .05, in the second it takes 1.95.
    assert good > late
    assert spoilt > last


def test_ties_have_no_shape_and_paths_without_turns_none() -> None:
    assert shaped(np.asarray([0.3, 0.3, 0.1]), np.asarray([0, 2, 2, 3])).tolist() == [0.0, 0.0, 0.0]
    assert shaped(np.zeros(0), np.asarray([0])).tolist() == []


def test_what_the_policy_did_not_write_is_outside_the_statistics() -> None:
    end, prompt = Outcome.TERMINATED, N(parent=-1, kind=PROMPT)
    sampled = [N(parent=0, kind=ACTION, env_reward=pay, outcome=end, success=pay > 0) for pay in (1.0, 0.0)]
    teacher = N(parent=0, kind=ACTION, source=Source.TEACHER, env_reward=0.5, outcome=end)
    alone = flat(*Spae()([asked(rewarded(build(prompt, *sampled)), 0.1, 0.2)]))
    beside = flat(*Spae()([asked(rewarded(build(prompt, *sampled, teacher)), 0.1, 0.2, 0.9)]))
    assert beside == pytest.approx([*alone, 0.0])


def test_what_it_needs() -> None:
    assert needs_of(Spae(column="sure")) == {appraised("sure")}
    with pytest.raises(StageError, match=r"Spae.column: got 'potential' and a tree of task task with the columns \[\]"):
        Spae()([paid([1.0])])
    with pytest.raises(ValueError, match=r"Spae.penalty: got 2.0; need a number from 0 to 1"):
        Spae(penalty=2.0)
    with pytest.raises(ValueError, match=r"Spae.shaping: got -1.0; need 0 or more"):
        Spae(shaping=-1.0)
