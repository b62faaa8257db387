"""Metrics of judges: agreement with the environment, cost per turn, unknown verdicts."""

from dataclasses import replace

import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import EnvReward, reward_trees
from bough.train.summary import summarize
from bough.tree import Appraisal, Entry, Outcome, Tree, Verdict


def judged(success: bool, entry: Entry) -> Tree:
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=(2,)),
        N(parent=1, kind=OBSERVATION, tokens=(3,)),
        N(parent=2, kind=ACTION, tokens=(2,)),
        N(parent=3, kind=OBSERVATION, tokens=(3,), outcome=Outcome.TERMINATED, success=success),
    )
    return replace(tree, appraisals={"judge": Appraisal.of({4: entry}, tree.nodes)})


def rated(value: float) -> Entry:
    return Entry(value=value, verdict=Verdict.OK, votes=1, questions=1, tokens=30)


def test_agreement_and_cost_of_a_judge() -> None:
    lost = Entry(verdict=Verdict.LATE, questions=1, tokens=10)
    trees = [judged(True, rated(0.9)), judged(False, rated(0.8)), judged(False, rated(0.1)), judged(True, lost)]
    found = summarize(reward_trees(trees, (EnvReward(),)), unstarted=0, dropped={})
    assert found["judge/agreement_judge"] == pytest.approx(2 / 3)
    assert found["judge/questions_per_turn"] == pytest.approx(4 / 8)
    assert found["judge/tokens_per_turn"] == pytest.approx(100 / 8)
    assert (found["judge/unknown"], found["judge/late"]) == (1, 1)
    unknown = summarize(reward_trees([judged(True, lost)], (EnvReward(),)), unstarted=0, dropped={})
    assert "judge/agreement_judge" not in unknown
