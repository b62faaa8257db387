"""Staged rewards: no later stage before an earlier one, and what each stage reads."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from tests.trees import ACTION, EDIT, OBSERVATION, PROMPT, N, build

from bough.cli.find import find_run
from bough.credit import Grpo
from bough.reward import (
    AnswerBleu,
    BudgetReward,
    CalledTool,
    Finished,
    JudgedQuality,
    Solved,
    StagedReward,
    ValidActions,
    WellFormed,
    reward_trees,
)
from bough.reward.bleu import bleu
from bough.tree import Appraisal, Entry, Floats, Outcome, StageError, Task, Tree, Verdict, counted

DONE = Outcome.TERMINATED
CALL: dict[str, object] = {"name": "search", "arguments": {}, "call_id": ""}


def answered(
    *, formed: tuple[bool, bool] = (True, True), valid: tuple[bool, bool] = (True, True), success: bool = True
) -> Tree:
    """A path of two turns: a call, and an answer."""
    info: list[dict[str, object]] = [{"text": "search", "calls": [CALL]}, {"text": "New York City"}]
    nodes = [N(parent=-1, kind=PROMPT)]
    for turn in range(2):
        nodes.append(N(parent=2 * turn, kind=ACTION, info=info[turn], valid=valid[turn], well_formed=formed[turn]))
        end = DONE if turn else Outcome.OPEN
        nodes.append(N(parent=2 * turn + 1, kind=OBSERVATION, tokens=(4,), outcome=end, success=success and turn == 1))
    tree = build(*nodes)
    return replace(tree, task=Task(id="t", data={"answers": ["Boston", "New York City"]}))


def paid(tree: Tree, reward: StagedReward) -> float:
    (channels,) = reward([tree])
    assert np.flatnonzero(channels["staged"]).tolist() in ([3], [])
    return float(channels["staged"].sum())


def test_the_worked_example() -> None:
    met = np.asarray([[0.5, 1, 1, 1], [1, 0.5, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0.6]])
    assert StagedReward().of_paths(list(met.T)) == pytest.approx([0.05, 0.15, 0.2, 0.72])


def test_no_order_of_faults_lets_a_later_stage_pay_without_the_earlier() -> None:
    reward = StagedReward()
    for met in product((0.0, 0.5, 1.0), repeat=4):
        found = float(reward.of_paths([np.asarray([each]) for each in met])[0])
        first = next((place for place, each in enumerate(met) if each < 1), 4)
        assert found == pytest.approx(
            sum(reward.shares[:first]) + (reward.shares[first] * met[first] if first < 4 else 0)
        )
        assert found <= sum(reward.shares[: first + 1]) + 1e-12, "at most what stages up to the first fault pay"


def test_a_right_answer_after_a_wrong_call_earns_less_than_a_wrong_answer_after_a_right_call() -> None:
    reward = StagedReward()
    assert paid(answered(), reward) == pytest.approx(1.0)
    assert paid(answered(success=False), reward) == pytest.approx(0.3)
    assert paid(answered(valid=(False, True)), reward) == pytest.approx(0.15)
    assert paid(answered(formed=(False, True)), reward) == pytest.approx(0.05)
    assert paid(answered(formed=(False, False)), reward) == 0


def test_a_stage_that_all_paths_meet_leaves_their_comparison() -> None:
    group = [answered(success=won) for won in (True, False, False)]
    with_stages = Grpo()(reward_trees(group, (StagedReward(),)))
    alone = Grpo()(reward_trees(group, (StagedReward(stages=(Solved(),), shares=(0.7,)),)))
    for one, other in zip(with_stages, alone, strict=True):
        assert one.path_advantage == pytest.approx(other.path_advantage, abs=1e-5)


def test_stages_read_calls_answers_and_judges() -> None:
    tree = answered()
    assert CalledTool()(tree).tolist() == [1]
    bare = replace(tree, info=tuple({"text": "search"} for _ in tree.info))
    assert CalledTool()(bare).tolist() == [0]
    assert AnswerBleu()(tree).tolist() == [1]
    nested = replace(tree, task=Task(id="t", data={"answers": [["Boston"], ["New York City", "NYC"]]}))
    assert AnswerBleu()(nested).tolist() == [1]
    tagged = replace(tree, info=(*tree.info[:3], {"text": "so <answer>York</answer>"}, *tree.info[4:]))
    assert AnswerBleu(tag="answer")(tagged) == pytest.approx([np.exp(-2)])
    with pytest.raises(StageError, match=r"AnswerBleu.field: got 'gold' and a task with the fields \['answers'\]"):
        AnswerBleu(field="gold")(tree)
    with pytest.raises(StageError, match=r"JudgedQuality.column: got 'judge'.*need a tree that has been appraised"):
        JudgedQuality()(tree)
    rated = replace(tree, appraisals={"judge": Appraisal.of({4: Entry(value=0.4, verdict=Verdict.OK)}, tree.nodes)})
    assert JudgedQuality()(rated) == pytest.approx([0.4])
    assert Finished()(answered(valid=(True, False))).tolist() == [0]
    assert ValidActions()(answered(valid=(True, False))).tolist() == [0.5]
    assert WellFormed()(answered(formed=(True, False))).tolist() == [0.5]


def test_bleu_of_short_answers() -> None:
    found = [bleu(text, ["New York City"]) for text in ("the new york city!", "New York", "York", "in New York City")]
    assert found == pytest.approx([1, 0.606531, 0.135335, 0.721125], abs=2e-5)
    assert bleu("Paris", ["Paris"]) == 1, "a word is not too short for its reference"
    assert bleu("City of Paris", ["Paris"]) == pytest.approx(1 / 3)
    assert (bleu("", ["Paris"]), bleu("Rome", ["Paris"]), bleu("Paris", [])) == (0, 0, 0)
    assert bleu("Bonn", ["Berlin", "Bonn"]) == 1


def test_the_method_takes_its_quality_from_success_answers_or_a_judge() -> None:
    staged = [find_run(name, "search").world.rewards[-1] for name in ("prs", "prs(field=answers)", "prs(column=judge)")]
    assert [each.stages[-1] for each in staged] == [Solved(), AnswerBleu(field="answers"), JudgedQuality()]  # type: ignore[attr-defined]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"StagedReward.shares: got 1 for 4 stages; need one for each stage"):
        StagedReward(shares=(1.0,))
    with pytest.raises(ValueError, match=r"StagedReward.shares: got \(0.0,\); need numbers above 0"):
        StagedReward(stages=(Solved(),), shares=(0.0,))


def test_an_action_that_ends_several_paths_pays_each_its_own() -> None:
    """Whatever the order of the paths."""
    for first in (True, False):
        ends = [N(parent=1, kind=OBSERVATION, outcome=DONE, success=won) for won in (first, not first)]
        tree = build(N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION), *ends)
        (staged,) = StagedReward()([tree])
        assert staged["staged"].tolist() == pytest.approx([0, 0, 1, 0.3] if first else [0, 0, 0.3, 1])
        (budget,) = BudgetReward()([tree])
        assert (budget["budget"] > 0).tolist() == [False, False, first, not first]


def test_a_path_without_an_action_does_not_pay_the_others() -> None:
    nodes = [N(parent=0, kind=EDIT, outcome=Outcome.TRUNCATED), N(parent=0, kind=ACTION, outcome=DONE, success=True)]
    (found,) = StagedReward(stages=(Unstarted(),), shares=(1.0,))([build(N(parent=-1, kind=PROMPT), *nodes)])
    assert found["staged"].tolist() == [0, 1, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstarted:
    """1 for a path without an action."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        return np.asarray([float(tree.kind[leaf] != ACTION) for leaf in counted(tree)])
