"""Critiques of whole paths: what counts as one, how they vote, and what CAPO makes of them."""

import random
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import appraised, asker, says, trees
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import PathCritique
from bough.appraise.path_critique import WrongSteps, combine
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.reward import Judged, reward_trees
from bough.tree import Kind, Outcome, Tree, Verdict, counted, path


def steps_of(tree: Tree, leaf: int) -> list[int]:
    """The actions of a path."""
    return [node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION]


@pytest.mark.parametrize(
    ("vote", "found"),
    [("intersection", [0, 0, 0, 0]), ("majority", [0, 1, 0, 0]), ("union", [0, 1, 1, 0]), ("average", [0, 2, 1, 0])],
)
def test_the_worked_example_of_the_card(vote: str, found: list[float]) -> None:
    critiques = [{2}, {2, 3}, set[int]()]
    share = 3 if vote == "average" else 1
    votes = [combine([step in wrong for wrong in critiques], vote) for step in (1, 2, 3, 4)]  # type: ignore[arg-type]
    assert [share * value for value in votes] == pytest.approx(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Step 2 loops. [2]", {2}),
        ("[1] no, rather [2, 3]", {2, 3}),
        ("all is well: []", set()),
        ("all is well", None),
        ("[2,,3]", None),
    ],
)
def test_what_is_a_list_of_wrong_steps(text: str, found: set[int] | None) -> None:
    """A malformed critique is not one that found no mistake."""
    assert WrongSteps()(text) == found


def test_a_list_with_the_number_of_no_step_is_no_critique(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("[1, 99]"), tmp_path)
    (tree,) = appraised(trees(n=1), ask, PathCritique(role="judge", n=1))
    assert set(tree.appraisals["critique"].verdict[tree.kind == Kind.ACTION].tolist()) == {Verdict.UNPARSED}


def test_one_question_reads_a_whole_path_and_marks_its_steps(tmp_path: Path) -> None:
    answers = iter(["[1]", "hm", "[1]"])
    ask, engine = asker(lambda _: says(next(answers)), tmp_path)
    (tree,) = appraised(trees(n=1), ask, PathCritique(role="judge", n=3))
    (leaf,) = counted(tree).tolist()
    steps, column = steps_of(tree, leaf), tree.appraisals["critique"]
    assert len(engine.requests) == 3
    assert column.value[steps].tolist() == [1.0, *[0.0] * (len(steps) - 1)]
    assert column.votes[steps].tolist() == [2] * len(steps)
    assert column.questions.sum() == 3
    (paid,) = reward_trees([tree], (Judged(column="critique", weight=-1.0),))
    assert paid.channels["critique"][steps].tolist() == [-1.0, *[0.0] * (len(steps) - 1)]


def test_a_path_without_a_critique_has_no_value(tmp_path: Path) -> None:
    ask, _ = asker(lambda _: says("fine"), tmp_path)
    (tree,) = appraised(trees(n=2), ask, PathCritique(role="judge", n=2))
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    assert set(tree.appraisals["critique"].verdict[acts].tolist()) == {Verdict.UNPARSED}


def test_the_majority_of_noisy_critics_is_right_more_often(tmp_path: Path) -> None:
    """Critics that are right about a step with .8: the majority of five is right with .942."""

    def noisy(request: Request) -> Reply:
        luck = random.Random(f"{request.prompt_tokens} {request.seed}")
        return says("[1]" if luck.random() < 0.8 else "[]")

    def share(n: int, name: str) -> float:
        ask, _ = asker(noisy, tmp_path / name)
        right: list[float] = []
        for number in range(150):
            # A prompt of its own, so that each has answers of its own.
            (tree,) = appraised(trees(n=1), ask, PathCritique(role="judge", n=n, prompt=f"{number}: {{steps}}"))
            (leaf,) = counted(tree).tolist()
            right.append(float(tree.appraisals["critique"].value[steps_of(tree, leaf)[0]]))
        return float(np.mean(right))

    for name in ("one", "five"):
        (tmp_path / name).mkdir()
    assert share(1, "one") == pytest.approx(0.8, abs=0.1)
    assert share(5, "five") == pytest.approx(0.94208, abs=0.055)


def test_a_prompt_with_an_unknown_placeholder_and_an_unknown_vote_are_refused() -> None:
    with pytest.raises(ValueError, match=r"PathCritique.prompt: got the placeholders \['step'\]"):
        PathCritique(prompt="{step}")
    with pytest.raises(ValueError, match=r"PathCritique.vote: got 'all'; need 'intersection'"):
        PathCritique(vote="all")  # type: ignore[arg-type]


def test_the_questions_of_paths_that_share_their_first_step_are_all_counted(tmp_path: Path) -> None:
    done = {"kind": ACTION, "outcome": Outcome.TERMINATED}
    tree = build(
        N(parent=-1, kind=PROMPT, tokens=(1,)),
        N(parent=0, kind=ACTION, tokens=(4,), info={"text": "go"}),
        N(parent=1, kind=OBSERVATION, tokens=(2,)),
        N(parent=2, tokens=(5,), info={"text": "left"}, **done),  # type: ignore[arg-type]
        N(parent=2, tokens=(6,), info={"text": "right"}, **done),  # type: ignore[arg-type]
    )
    ask, engine = asker(lambda _: says("[]"), tmp_path)
    (found,) = appraised([tree], ask, PathCritique(role="judge", n=3))
    assert found.appraisals["critique"].questions.sum() == len(engine.requests) == 6
