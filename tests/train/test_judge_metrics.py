"""Metrics of judges: agreement with the environment, cost per turn, unknown verdicts."""

from dataclasses import replace

import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import EnvReward, reward_trees
from bough.train.notices import Notices
from bough.train.summary import summarize
from bough.tree import Appraisal, Entry, Outcome, RolloutCounts, Tree, Verdict


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


def test_refused_questions_are_counted_and_named_once() -> None:
    """Those of appraisers, and those of explorers and searches."""
    reason = "got a question of 90 tokens"
    tree = judged(True, Entry(verdict=Verdict.REFUSED, questions=1))
    asked = replace(tree, info=tuple({**info, "appraisal judge": [reason]} for info in tree.info))
    searched = replace(judged(True, rated(0.9)), counts=RolloutCounts(refused=2, unanswered=3))
    searched = replace(searched, info=({**searched.info[0], "refused": "too long"}, *searched.info[1:]))
    found = summarize(reward_trees([asked, searched], (EnvReward(),)), unstarted=0, dropped={})
    counts = [found[name] for name in ("judge/refused", "questions/refused", "questions/unanswered")]
    assert counts == [1, 2, 3]
    said: list[str] = []
    notices = Notices(report=lambda alarm: said.append(str(alarm)))
    for _ in range(2):
        notices.refusals([searched])
        notices.refusals([asked, judged(True, rated(0.9))])
    (line,) = said
    assert line.startswith(
        "2 questions to models were refused (judge/refused, questions/refused). The last reason: too long."
    )
    notices.given.clear()
    notices.refusals([asked])
    assert f"The last reason: {reason}." in said[1]


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
