from dataclasses import replace

import numpy as np
import pytest
from tests.credit.test_igpo import per_turn
from tests.trees import chains

from bough.appraise import PathCritique
from bough.cli.find import find_run
from bough.credit import Capo
from bough.reward import reward_trees
from bough.tree import Appraisal, Entry, Kind, Outcome, Rewarded, StageError, Verdict


def judged(returns: list[float], turns: list[int], wrong: list[int]) -> Rewarded:
    """Chains with a success of 2, and a penalty for the actions with these numbers."""
    tree = chains(returns, turns=turns, outcomes=[Outcome.TERMINATED] * len(returns))
    acts, penalty = np.flatnonzero(tree.kind == Kind.ACTION), np.zeros(tree.nodes)
    penalty[acts[wrong]] = -1.0
    return Rewarded(tree=tree, channels={"success": tree.env_reward, "critique": penalty})


def test_worked_example() -> None:
    """Right and wrong steps of a success: 2 and 1; of a failure: 0 and -1."""
    (found,) = Capo(std="none")([judged([2.0, 0.0], [2, 2], [1, 2])])
    assert per_turn(found) == pytest.approx(np.asarray([2.0, 1.0, -1.0, 0.0]) - 0.5)


def test_paths_weigh_the_same_whatever_their_length() -> None:
    """A success of one turn and a failure of four: the mean is that of two paths, 1, not of five turns, .4."""
    (found,) = Capo(std="none")([judged([2.0, 0.0], [1, 4], [])])
    assert per_turn(found) == pytest.approx([1, -1, -1, -1, -1])


def test_a_success_with_mistakes_stays_above_a_failure_without() -> None:
    (found,) = Capo()([judged([2.0, 0.0], [3, 3], [0, 1, 2])])
    advantage = per_turn(found)
    assert min(advantage[:3]) > max(advantage[3:])
    (reversed_order,) = Capo()([judged([0.5, 0.0], [3, 3], [0, 1, 2])])
    advantage = per_turn(reversed_order)
    assert max(advantage[:3]) < min(advantage[3:]), "a penalty above the reward of success turns the order"


def test_the_method_charges_the_wrong_step_of_a_success_half_of_the_reward() -> None:
    """A success with a wrong second step, and a failure: 1, .5 and 0, 0, each less .375 and by its deviation."""
    run = find_run("capo", "sokoban")
    assert run.world.appraisers == (PathCritique(n=4, vote="majority"),)
    tree = chains([1.0, 0.0], turns=[2, 2], outcomes=[Outcome.TERMINATED] * 2)
    acts = np.flatnonzero(tree.kind == Kind.ACTION).tolist()
    marked = {act: Entry(value=float(act == acts[1]), verdict=Verdict.OK) for act in acts}
    seen = replace(tree, appraisals={"critique": Appraisal.of(marked, tree.nodes)})
    first, second, third, fourth = per_turn(run.method.credit(reward_trees([seen], run.world.rewards))[0])
    assert first > second > 0 > third == fourth
    assert (first - second) / (second - third) == pytest.approx(1)


def test_the_channel_is_needed() -> None:
    given = judged([1.0], [1], [])
    with pytest.raises(StageError, match=r"Capo.step: got 'other' and the channels \['critique', 'success'\]"):
        Capo(step="other")([given])
