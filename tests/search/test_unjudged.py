"""Answers that can't be read, come late or are refused are no numbers in a search: the node is unjudged."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.search.talk import actions, answer, letter, search, talk

from bough.engine import InjectedFault
from bough.rollout import Explorer
from bough.search import (
    AStarCost,
    Best,
    BestOf,
    Descend,
    ExecuteAndEvaluate,
    Imagine,
    Judge,
    JudgeAction,
    Level,
    NodeValue,
    Pairwise,
    PlanCost,
    Puct,
    Ranked,
    Sample,
    Search,
    Uct,
)
from bough.search.node import SearchNode, mean_vote
from bough.search.score import rating_of, value_before, value_of
from bough.tree import Kind

MISSING = {
    "unparsed": "hm",
    "late": InjectedFault.SILENCE,
    "refused": InjectedFault.FAULT,
    "aborted": InjectedFault.ABORTED,
}


def rated(piece: Any) -> Search:
    return Search(select=Best(), expand=Sample(width=12), rate=piece, rounds=1, failure_value=-1.0)


def valued(piece: Any) -> Search:
    select = Descend(by=Uct(), revisit=True)
    return Search(
        select=select, expand=Sample(width=6), evaluate=piece, success_value=None, failure_value=-1.0, rounds=9
    )


PIECES: dict[str, Explorer] = {
    "Judge": valued(Judge(n=2, deadline_s=0.05)),
    "JudgeAction": rated(JudgeAction(deadline_s=0.05)),
    "Ranked": rated(Ranked(deadline_s=0.05)),
    "Pairwise": rated(Pairwise(deadline_s=0.05)),
    "Imagine": rated(Imagine(n=2, deadline_s=0.05)),
    "ExecuteAndEvaluate": rated(ExecuteAndEvaluate(evaluate=Judge(deadline_s=0.05))),
    "PlanCost": rated(PlanCost(deadline_s=0.05)),
    "BestOf": BestOf(n=2, judge=Judge(deadline_s=0.05), stop_value=None),
}


@pytest.mark.parametrize("why", MISSING)
@pytest.mark.parametrize("name", PIECES)
def test_no_answer_is_no_number(name: str, why: str) -> None:
    """Every question fails: no value, no rating and no visit is made of it, and the search ends."""
    if why == "unparsed" and name in ("PlanCost",):
        pytest.skip("any text is a plan")
    said = MISSING[why]
    tree = search(talk(letter, lambda _: said), PIECES[name])
    assert tree.counts.unjudged > 0
    found = actions(tree).values()
    assert all(math.isnan(each["rating"]) and "score" not in each for each in found)
    assert np.isnan(tree.value[tree.kind == Kind.ACTION]).all()
    assert sum(each.get("unjudged", False) for each in tree.info) == tree.counts.unjudged or name == "BestOf"


def family(*values: float) -> list[SearchNode]:
    """A parent of value .5 and children of these values and ratings; nan is unjudged."""
    parent = SearchNode(number=0, parent=None, value=0.5, rating=0.5, at=None)
    for number, value in enumerate(values, start=1):
        child = SearchNode(number=number, parent=parent, value=value, rating=value, unjudged=math.isnan(value))
        parent.children.append(child)
    return parent.children


def test_an_unjudged_node_stands_with_its_siblings_else_with_its_parent() -> None:
    one, two, lost = family(0.2, 0.8, math.nan)
    assert (value_of(lost), rating_of(lost), value_of(one)) == (0.5, 0.5, 0.2)
    two.value = 1.0
    assert value_of(lost) == pytest.approx(0.6)
    alone = family(math.nan, math.nan)
    assert {value_of(each) for each in alone} == {rating_of(each) for each in alone} == {0.5}
    below = SearchNode(number=9, parent=lost, value=math.nan)
    assert value_of(below) == 0.0, "not asked about: as before"
    assert value_before(below) == 0.5, "of the nearest ancestor with a value"
    assert Uct()(lost) == math.inf
    assert Puct()(lost) == Puct()(replace(lost, value=0.0))
    assert AStarCost(weight=0.0)(lost) == rating_of(lost)
    assert NodeValue()(lost) == 0.5 or lost.at is None


def test_an_unjudged_node_changes_no_statistic() -> None:
    """No judgement of the states after b can be read; the estimate of the root is the mean of the others."""

    def judge(read: str) -> str:
        last = read.rpartition("> ")[2][:1] if "> " in read else ""
        return {"a": "yes", "b": "hm"}.get(last, "no")

    expand = Sample(width=8)
    level = Search(select=Level(), expand=expand, evaluate=Judge(), eager=True, success_value=None, rounds=2)
    tree = search(talk(letter, judge), level)
    found = actions(tree)
    known = [each["score"] for each in found.values() if "score" in each]
    assert "score" in found["a"]
    assert "score" not in found["b"]
    assert tree.counts.unjudged == len(found) - len(known) > 0
    assert (tree.value[0], tree.visits[0]) == (pytest.approx(sum(known) / len(known)), len(known))
    assert math.isnan(found["b"]["value"]) or found["b"]["visits"]


def test_a_beam_keeps_an_unjudged_state_before_a_bad_one() -> None:
    """Values are no, nothing and yes; before, nothing counted as the value of a failed path, the worst of all."""
    one, bad, lost = family(1.0, -1.0, math.nan)
    order = sorted((one, bad, lost), key=lambda node: -value_of(node))
    assert order == [one, lost, bad]


def test_the_mean_of_votes_has_those_with_a_value() -> None:
    node = SearchNode(number=0, parent=None)
    assert (mean_vote(node, [1.0, None, 0.0]), node.unjudged) == (0.5, False)
    assert math.isnan(mean_vote(node, [None]))
    assert node.unjudged


def test_a_question_beyond_the_context_or_too_late_is_not_repeated() -> None:
    engine = talk(letter, lambda _: InjectedFault.SILENCE)
    tree = search(engine, Search(select=Best(), evaluate=Judge(deadline_s=0.05), rounds=1))
    assert (tree.counts.unanswered, tree.counts.unjudged, tree.counts.calls) == (1, 1, 1 + 4)
    assert answer(tree) == ""
