"""Checklists: which items a turn satisfies, and what it is paid for them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.appraise.test_appraisers import appraised, asker, says, trees
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.appraise import Checklist
from bough.appraise.checklist import Satisfied
from bough.cli.find import find_run
from bough.credit import TurnPosition
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.reward import Judged, reward_trees
from bough.tree import Kind, Outcome, Rewarded, Tree, Verdict, counted, path

ITEMS = ["writes a", "writes b", "writes c"]


def with_items(*found: Tree, items: object = ITEMS) -> list[Tree]:
    return [replace(tree, task=replace(tree.task, data={"checklist": items})) for tree in found]


def did(request: Request) -> str:
    """The action that a question is about."""
    text = "".join(map(chr, request.prompt_tokens))
    return text.rsplit("It then did this:\n", 1)[1].split("\n", 1)[0]


def honest(request: Request) -> Reply:
    action = did(request)
    return says(f"{'ab'.index(action) + 1}: {action}")


def turns_of(tree: Tree) -> list[list[int]]:
    return [
        [node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION]
        for leaf in counted(tree).tolist()
    ]


def letter(tree: Tree, node: int) -> str:
    return chr(int(tree.tokens_of(node)[0]))


def test_each_item_counts_once_at_the_first_turn(tmp_path: Path) -> None:
    ask, engine = asker(honest, tmp_path)
    (tree,) = appraised(with_items(*trees(n=6)), ask, Checklist(role="judge"))
    column = tree.appraisals["checklist"]
    for nodes in turns_of(tree):
        seen: set[str] = set()
        for node in nodes:
            assert column.value[node] == pytest.approx(0 if letter(tree, node) in seen else 1 / 3)
            seen.add(letter(tree, node))
    assert column.questions.sum() == int((tree.kind == Kind.ACTION).sum()), "a shared turn is judged once"
    assert len(engine.requests) <= column.questions.sum()


def test_an_item_without_evidence_is_not_satisfied(tmp_path: Path) -> None:
    lie, _ = asker(lambda _: says("1: a\n2: b\n3: the third item"), tmp_path)
    (tree,) = appraised(with_items(*trees(n=4)), lie, Checklist(role="judge"))
    for nodes in turns_of(tree):
        paid = tree.appraisals["checklist"].value[nodes]
        assert paid.sum() == pytest.approx(len({letter(tree, node) for node in nodes}) / 3)
    trusting = Checklist(role="judge", evidence=False)
    (believed,) = appraised(with_items(*trees(n=4)), lie, trusting)
    assert all(believed.appraisals["checklist"].value[nodes[0]] == pytest.approx(1) for nodes in turns_of(believed))


def test_weights_add_up_to_one_and_other_forms_are_refused(tmp_path: Path) -> None:
    ask, _ = asker(honest, tmp_path)
    items = [{"item": "writes a", "weight": 3}, {"item": "writes b"}]
    (tree,) = appraised(with_items(*trees(n=6), items=items), ask, Checklist(role="judge"))
    for nodes in turns_of(tree):
        first = letter(tree, nodes[0])
        assert tree.appraisals["checklist"].value[nodes[0]] == pytest.approx({"a": 0.75, "b": 0.25}[first])
    for wrong in ("writes a", [], [{"item": "x", "weight": -1}], [{"weight": 1}], [3]):
        with pytest.raises(ValueError, match=r"in data\['checklist'\] of task .*; need a list of texts"):
            appraised(with_items(*trees(n=2), items=wrong), ask, Checklist(role="judge"))


def test_a_model_writes_the_items_once(tmp_path: Path) -> None:
    def model(request: Request) -> Reply:
        text = "".join(map(chr, request.prompt_tokens))
        return says("1. writes a\n2. writes b") if "Write a checklist" in text else honest(request)

    ask, engine = asker(model, tmp_path)
    (tree,) = appraised(trees(n=6), ask, Checklist(role="judge"))
    written = [each for each in engine.requests if "Write a checklist" in "".join(map(chr, each.prompt_tokens))]
    assert len(written) == 1
    column = tree.appraisals["checklist"]
    assert column.questions.sum() == int((tree.kind == Kind.ACTION).sum()) + 1
    assert column.value[turns_of(tree)[0][0]] == 0.5
    silent, _ = asker(lambda _: says(""), tmp_path / "..")
    (lost,) = appraised(trees(n=2), silent, Checklist(role="judge"), required=("checklist",))
    assert set(lost.appraisals["checklist"].verdict[lost.kind == Kind.ACTION].tolist()) == {Verdict.UNPARSED}
    assert not len(counted(lost))


def test_no_more_items_than_the_maximum(tmp_path: Path) -> None:
    def model(request: Request) -> Reply:
        text = "".join(map(chr, request.prompt_tokens))
        return says("writes a\nwrites b\nwrites c\nwrites d") if "Write a checklist" in text else honest(request)

    ask, _ = asker(model, tmp_path)
    (tree,) = appraised(trees(n=1), ask, Checklist(role="judge", max_items=2))
    assert tree.appraisals["checklist"].value[turns_of(tree)[0][0]] == 0.5


def test_a_path_with_an_unreadable_answer_leaves_the_group(tmp_path: Path) -> None:
    """An answer that names no item and does not say none is no answer, and neither is one with an unknown item."""
    for name, answer in (("hm", "I cannot tell"), ("unknown", "9: a")):
        (tmp_path / name).mkdir()
        ask, _ = asker(
            lambda request, answer=answer: says(answer) if did(request) == "b" else honest(request), tmp_path / name
        )
        (tree,) = appraised(with_items(*trees(n=8)), ask, Checklist(role="judge"), required=("checklist",))
        kept = turns_of(tree)
        assert all(letter(tree, node) == "a" for nodes in kept for node in nodes)


@pytest.mark.parametrize(
    ("answers", "value"),
    [(("1: a", "1: a", "none"), 1 / 3), (("1: a", "none", "none"), 0), (("1: a", "1: a", "none", "none"), 0)],
)
def test_votes_decide_by_majority(answers: tuple[str, ...], value: float, tmp_path: Path) -> None:
    calls: dict[str, int] = {}

    def votes(request: Request) -> Reply:
        action = did(request)
        calls[action] = calls.get(action, -1) + 1
        return says(answers[calls[action] % len(answers)] if action == "a" else "none")

    ask, _ = asker(votes, tmp_path)
    (tree,) = appraised(with_items(*trees(n=4)), ask, Checklist(role="judge", n=len(answers)))
    firsts = [nodes[0] for nodes in turns_of(tree) if letter(tree, nodes[0]) == "a"]
    assert firsts
    assert tree.appraisals["checklist"].value[firsts].tolist() == pytest.approx([value] * len(firsts))


@pytest.mark.parametrize(
    ("text", "found"),
    [("1: a\n- 3. b c", {1: "a", 3: "b c"}), ("None of them.", {}), ("hm", None), ("1:", None)],
)
def test_what_is_an_answer(text: str, found: dict[int, str] | None) -> None:
    assert Satisfied()(text) == found


def scored(*paths: tuple[float, ...]) -> list[Rewarded]:
    """One tree for each path, whose turns are paid these numbers."""
    return [Rewarded(tree=tree, channels={"env": tree.env_reward.astype(np.float64)}) for tree in map(chain, paths)]


def chain(rewards: tuple[float, ...]) -> Tree:
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1,))]
    for number, reward in enumerate(rewards):
        outcome = Outcome.TERMINATED if number + 1 == len(rewards) else Outcome.OPEN
        nodes.append(N(parent=2 * number, kind=ACTION, tokens=(2,), env_reward=reward))
        nodes.append(N(parent=2 * number + 1, kind=OBSERVATION, tokens=(3,), outcome=outcome))
    return build(*nodes)


def test_the_worked_example_of_the_card() -> None:
    paths = [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0,)]
    found = [each.path_advantage.tolist() for each in TurnPosition()(scored(*paths))]
    expected = [[0.5, 0.4], [-0.5, 0.4], [0.5, -0.6], [-0.5, -0.6], [0.5, 0.4], [-0.5]]
    assert [value for row in found for value in row] == pytest.approx([v for row in expected for v in row])


def test_the_deviation_of_a_position_is_an_option() -> None:
    """The second turns are 1, 1, 0, 0, 1: .4 and -.6 over the root of .3. A tie stays 0."""
    paths = [(1.0, 1.0), (1.0, 1.0), (1.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    found = [each.path_advantage.tolist() for each in TurnPosition(std="group")(scored(*paths))]
    assert [row[0] for row in found] == [0] * 5
    assert [row[1] for row in found] == pytest.approx([0.7303, 0.7303, -1.0954, -1.0954, 0.7303], abs=1e-4)


def test_groups_of_four_or_fewer_get_nothing() -> None:
    paths = [(1.0, 1.0), (0.0, 0.0), (1.0, 1.0), (0.0, 0.0), (1.0,)]
    found = [each.path_advantage.tolist() for each in TurnPosition()(scored(*paths))]
    assert [row[0] for row in found] == pytest.approx([0.4, -0.6, 0.4, -0.6, 0.4])
    assert all(row[1] == 0 for row in found[:4])
    with pytest.raises(ValueError, match=r"TurnPosition.min_turns: got 1; need at least 2"):
        TurnPosition(min_turns=1)


def test_cm2_favours_the_turn_that_ticks_a_new_item(tmp_path: Path) -> None:
    run = find_run("cm2(judge=judge)", "frozenlake")
    (checklist,) = run.world.appraisers
    ask, _ = asker(honest, tmp_path)
    items = [{"item": "writes a"}, {"item": "writes b", "weight": 0}]
    (tree,) = appraised(with_items(*trees(n=12), items=items), ask, checklist, required=("checklist",))
    paid = [reward for reward in run.world.rewards if isinstance(reward, Judged)]
    (credited,) = run.method.credit(reward_trees([tree], paid))
    advantage = credited.positive + credited.negative
    for nodes in turns_of(tree):
        number = next((place for place, node in enumerate(nodes) if letter(tree, node) == "a"), None)
        for place, node in enumerate(nodes):
            value = advantage[tree.span[node]]
            assert value > 0 if place == number else value <= 0
