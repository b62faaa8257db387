from dataclasses import replace

import numpy as np
import pytest
from tests.credit.test_igpo import per_turn, two_paths
from tests.trees import chains

from bough.appraise import ObservationProbe
from bough.cli.find import find_run
from bough.credit import InfoPo
from bough.reward import reward_trees
from bough.tree import Appraisal, Entry, Floats, Kind, Outcome, Rewarded, StageError, Verdict


def informed(returns: list[float], information: list[list[float]]) -> Rewarded:
    """Chains with these returns, whose turns were paid this information at the observation after them."""
    turns = [len(each) for each in information]
    tree = chains(returns, turns=turns, outcomes=[Outcome.TERMINATED] * len(returns))
    paid = np.zeros(tree.nodes)
    paid[np.flatnonzero(tree.kind == Kind.ACTION)] = np.concatenate(information)
    return Rewarded(tree=tree, channels={"success": tree.env_reward, "information": paid})


def gates(spreads: list[float], rule: InfoPo) -> Floats:
    """The gates of tasks with two paths and these standard deviations."""
    returns = np.asarray([side * spread / 2**0.5 for spread in spreads for side in (1, -1)])
    return rule.gate(returns, np.repeat(np.arange(len(spreads)), 2))[::2]


def test_worked_example_of_the_gate() -> None:
    assert gates([0, 0.05, 0.5], InfoPo()) == pytest.approx([0.5, 0.268941, 4.5e-5], abs=2e-5)


def test_information_decides_where_outcomes_tie() -> None:
    """Normalised rewards 1, 2, 3 of turns with two tokens, times .1 and the gate of .5; a turn without one gets 0."""
    given = informed([1.0, 1.0], [[1.0, 2.0, 0.0], [3.0, 0.0]])
    z = 1 / np.std([1, 1, 2, 2, 3, 3], ddof=1)
    (found,) = InfoPo()([given])
    assert per_turn(found) == pytest.approx([-0.05 * z, 0, 0, 0.05 * z, 0], abs=1e-6)
    (without,) = InfoPo(weight=0)([given])
    assert without.is_zero


def test_a_clear_outcome_closes_the_gate() -> None:
    given = informed([1.0, 0.0], [[1.0, 2.0], [3.0, 0.0]])
    (found,) = InfoPo()([given])
    half, z = np.sqrt(0.5), 0.05 / np.std([1, 1, 2, 2, 3, 3], ddof=1)
    assert per_turn(found) == pytest.approx([half, half, -half, -half], abs=1e-5)
    (open_gate,) = InfoPo(temperature=1e6)([given])
    assert per_turn(open_gate) == pytest.approx([half - z, half, -half + z, -half], abs=1e-5)


def test_raw_information_is_scaled_to_the_spread_of_outcomes_or_one() -> None:
    many = [[0.1] * 39 + [500.0]]
    (found,) = InfoPo(normalized=False)([informed([1.0], many)])
    assert np.repeat(per_turn(found), 2).std(ddof=1) == pytest.approx(0.05, abs=1e-6)
    (small,) = InfoPo(normalized=False)([informed([1.0], [[0.2, 0.4]])])
    assert per_turn(small) == pytest.approx([0.05 * 0.1, 0.05 * 0.2]), "two tokens each, and no scale"


def test_a_path_alone() -> None:
    """Its turns are compared with each other; released code closes the gate and gives it its return."""
    given = informed([1.0], [[1.0, 3.0]])
    (found,) = InfoPo()([given])
    z = 1 / np.std([1, 1, 3, 3], ddof=1)
    assert per_turn(found) == pytest.approx([-0.05 * z, 0.05 * z], abs=1e-6)
    (released,) = InfoPo(as_released=True)([given])
    assert per_turn(released) == pytest.approx([1.0, 1.0], abs=1e-5)


def test_the_method_pays_the_turn_before_an_informative_observation() -> None:
    run = find_run("info_po", "search")
    assert run.world.appraisers == (ObservationProbe(),)
    tree = two_paths((0.0, 0.0), (0.0, 0.0)).tree
    probed = {3: Entry(value=0.5, verdict=Verdict.OK), 7: Entry(value=0.1, verdict=Verdict.OK)}
    seen = replace(tree, appraisals={"information": Appraisal.of(probed, tree.nodes)})
    (found,) = run.method.credit(reward_trees([seen], run.world.rewards))
    half = 0.1 * 0.5 * np.sqrt(0.5)
    assert per_turn(found) == pytest.approx([half, 0, -half, 0], abs=1e-5)


def test_the_channel_is_needed() -> None:
    given = informed([1.0], [[1.0]])
    with pytest.raises(StageError, match=r"InfoPo.step: got 'other' and the channels \['information', 'success'\]"):
        InfoPo(step="other")([given])
    with pytest.raises(ValueError, match=r"InfoPo.temperature: got 0; need a number above 0"):
        InfoPo(temperature=0)
