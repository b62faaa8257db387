"""The audit of rewards: the best-paid episodes, and those about which rewards and checks disagree."""

from collections.abc import Sequence

import numpy as np
from tests.trees import chains

from bough.tree import Credited, Rewarded, count_path_tokens, leaves
from bough.viewer.reward_audit import MOST, MOST_BETWEEN, reward_audit


def tree(
    task: str, success: Sequence[float], bonus: Sequence[float], quality: Sequence[float] | None = None
) -> Credited:
    """Chains with a reward "bonus" and a check "quality" at their leaves."""
    made = chains(success, task=task)
    columns = []
    for paid in (bonus, quality):
        columns.append(np.zeros(made.nodes))
        columns[-1][leaves(made)] = 0.0 if paid is None else paid
    checks = {} if quality is None else {"quality": columns[1]}
    rewarded = Rewarded(tree=made, channels={"bonus": columns[0]}, checks=checks)
    return Credited(rewarded=rewarded, path_advantage=np.zeros(count_path_tokens(made)))


def between(found: dict, one: str, other: str) -> dict:
    names = [each["name"] for each in found["columns"]]
    return next(each for each in found["between"] if {one, other} == {names[each["one"]], names[each["other"]]})


def test_the_best_paid_are_listed_with_what_every_column_has() -> None:
    found = reward_audit(7, [tree("a", [0, 1], [1, 3], [0.5, -2]), tree("b", [0], [2])])
    assert found["columns"] == [
        {"name": "bonus", "kind": "reward"},
        {"name": "quality", "kind": "check"},
        {"name": "success", "kind": "success"},
    ]
    bonus, quality = found["best"]  # type: ignore[misc]
    assert [(each["task"], each["totals"]) for each in bonus["episodes"]] == [
        ("a", [3, -2, 1]),
        ("b", [2, None, 0]),
        ("a", [1, 0.5, 0]),
    ]
    assert [each["totals"][1] for each in quality["episodes"]] == [0.5, -2], "b has no such check"
    first = bonus["episodes"][0]
    assert (first["tree"], first["success"], first["outcome"]) == ("7.0", True, "terminated")
    many = reward_audit(1, [tree("c", [0] * 20, range(20))])
    assert [each["totals"][0] for each in many["best"][0]["episodes"]] == [*range(19, 19 - MOST, -1)]  # type: ignore[index]


def test_disagreements_are_pairs_of_one_task_and_episodes_of_two_signs() -> None:
    """In a the bonus and the check order two of three pairs in opposite ways; the trees of one task count together."""
    trees = [tree("a", [0, 1], [5, 1], [-1, 2]), tree("a", [0], [0], [0]), tree("b", [1, 0], [1, 2], [1, 2])]
    found = between(reward_audit(1, trees), "bonus", "quality")
    assert (found["pairs"], found["alike"]) == (4, 2)
    (pair,) = found["opposed"]
    assert (pair["by_one"]["totals"][:2], pair["by_other"]["totals"][:2]) == ([5, -1], [1, 2])
    assert [each["totals"][:2] for each in found["signs"]] == [[5, -1]]
    success = between(reward_audit(1, trees), "bonus", "success")
    assert {(each["by_one"]["task"]) for each in success["opposed"]} == {"a", "b"}
    agreeing = between(reward_audit(1, trees[2:]), "bonus", "quality")
    assert (agreeing["alike"], agreeing["pairs"], agreeing["opposed"], agreeing["signs"]) == (1, 1, [], [])


def test_lists_are_short_and_nothing_is_nan() -> None:
    trees = [tree(f"t{at}", [0, 0], [1, at + 2], [1, -at]) for at in range(9)]
    found = between(reward_audit(1, trees), "bonus", "quality")
    assert len(found["opposed"]) == len(found["signs"]) == MOST_BETWEEN
    assert found["opposed"][0]["by_one"]["task"] == "t8", "the clearest first"
    equal = reward_audit(1, [tree("a", [0, 0], [1, 1], [1, 1])])
    assert all(each["pairs"] == 0 for each in equal["between"])  # type: ignore[attr-defined]
    assert [(each["equal"], each["episodes"]) for each in equal["best"]] == [(True, [])] * 2  # type: ignore[attr-defined]
    assert reward_audit(1, [])["best"] == []
