from dataclasses import replace

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import AnswerProbe
from bough.cli.find import find_run
from bough.credit import Credit, Igpo, StepGrpo
from bough.reward import reward_trees
from bough.tree import Appraisal, Credited, Entry, Outcome, Rewarded, Verdict, token_node

DONE = Outcome.TERMINATED


def two_paths(first: tuple[float, ...], second: tuple[float, ...]) -> Rewarded:
    """Two paths of turns with these rewards."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for rewards in (first, second):
        parent = 0
        for turn, paid in enumerate(rewards):
            nodes.append(N(parent=parent, kind=ACTION, env_reward=paid))
            nodes.append(
                N(parent=len(nodes) - 1, kind=OBSERVATION, outcome=DONE if turn == len(rewards) - 1 else Outcome.OPEN)
            )
            parent = len(nodes) - 1
    tree = build(*nodes)
    return Rewarded(tree=tree, channels={"env": tree.env_reward})


def per_turn(credited: Credited) -> list[float]:
    """The advantage of the first token of each action."""
    tree = credited.tree
    node = token_node(tree)
    return [float(credited.advantage[np.flatnonzero(node == each)[0]]) for each in np.flatnonzero(tree.kind == ACTION)]


def test_worked_example_with_turns_compared_by_number() -> None:
    """Every turn gets what follows it, though observations lie between: .6 where released code has .1."""
    for rule in (Igpo(over="turn", std="none"), StepGrpo(discount=1, std="none")):
        (found,) = rule([two_paths((0.3, 1.0), (0.1, 0.0))])
        assert per_turn(found) == pytest.approx([0.6, 0.5, -0.6, -0.5])


@pytest.mark.parametrize(
    ("rule", "advantages"),
    [
        (Igpo(over="turn", std="none"), [0.6, 0.5, -0.6, -0.5, 0]),
        (StepGrpo(discount=1, std="none"), [0.35, 0.25, -0.35, -0.25, 0]),
    ],
)
def test_paths_of_different_lengths(rule: Credit, advantages: list[float]) -> None:
    """The release sums before it subtracts the mean, as `StepGrpo` does; a path that has ended is in no mean."""
    (found,) = rule([two_paths((0.3, 1.0), (0.1, 0.0, 0.5))])
    assert per_turn(found) == pytest.approx(advantages)


def test_all_turns_of_a_task_are_normalised_together() -> None:
    rewards = np.asarray([0.3, 1.0, 0.1, 0.0])
    z = (rewards - rewards.mean()) / rewards.std(ddof=1)
    (found,) = Igpo(discount=0.5)([two_paths((0.3, 1.0), (0.1, 0.0))])
    assert per_turn(found) == pytest.approx([z[0] + 0.5 * z[1], z[1], z[2] + 0.5 * z[3], z[3]], abs=1e-5)


def test_the_method_pays_turns_that_raise_the_probability_of_the_answer() -> None:
    """Equal outcomes; the first turn of the first path raises it from .1 to .4, and nothing else changes it."""
    run = find_run("igpo(field=answers)", "search")
    assert run.world.appraisers == (AnswerProbe(field="answers"),)
    tree = two_paths((0.0, 0.0), (0.0, 0.0)).tree
    entries = {1: 0.1, 3: 0.4, 5: 0.1, 7: 0.1}
    probed = {node: Entry(value=value, verdict=Verdict.OK) for node, value in entries.items()}
    seen = replace(tree, appraisals={"probe": Appraisal.of(probed, tree.nodes)})
    (found,) = run.method.credit(reward_trees([seen], run.world.rewards))
    assert per_turn(found) == pytest.approx([1.5 - 0.5, -0.5, -0.5 - 0.5, -0.5], abs=1e-4)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Igpo.discount: got 2; need a number from 0 to 1"):
        Igpo(discount=2)
