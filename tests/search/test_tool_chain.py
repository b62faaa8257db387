"""A* by stored plans, agreement of samples, and imagined plans."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.search.game import Game, search, word
from tests.search.talk import talk

from bough.engine import Scripted
from bough.rollout import Limits
from bough.search import Admissible, AStarCost, Best, PlanCost, PlanMemory, SearchNode
from bough.search.plan_memory import position, similarity
from bough.searches.a_star import a_star
from bough.searches.tool_chain import tool_chain
from bough.store import StoreError, write_trees
from bough.tree import Action, ToolCall
from bough.worlds.frozenlake import FrozenLake

LIMITS = Limits(turns=20)


def test_similarity_and_position() -> None:
    plans = ["abcd", "xb"]
    assert similarity("axc", plans) == pytest.approx(2 / 3)
    assert similarity("b", plans) == 1
    assert position("b", plans) == pytest.approx((2 / 4 + 2 / 2) / 2)
    assert position("d", plans) == 1
    assert position("go", [["go left", "stop"]]) == 0.5, "the closest text"
    assert (similarity("a", []), position("a", [])) == (0, 0)


def test_costs_add_up_along_a_path() -> None:
    root = SearchNode(number=0, parent=None)
    one = SearchNode(number=1, parent=root, depth=1, cost=0.25)
    two = SearchNode(number=2, parent=one, depth=2, cost=0.5, rating=-0.125)
    assert (root.path_cost, two.path_cost) == (0, 0.75)
    assert AStarCost()(two) == -0.875
    assert AStarCost(weight=0)(two) == -0.125
    assert SearchNode(number=3, parent=two, depth=3).path_cost == 1.75, "a turn, where no rating sets a cost"


def answers(rest: str) -> Scripted:
    """Three of four samples are `a`; every imagined plan is `rest`."""
    return talk(lambda _read, luck: "ab"[luck.random() < 0.25], lambda _read: rest)


def first_children(how: PlanCost, rest: str = "x\nx\n\nx") -> dict[str, SearchNode]:
    known, _ = search(replace(tool_chain(width=40), rate=how, rounds=1), Game(depth=3), engine=answers(rest))
    return {child.action: child for child in known.root.children}


def test_frequency_is_the_cost_without_plans() -> None:
    children = first_children(PlanCost(alpha=0.0))
    assert sum(child.copies for child in children.values()) == 40
    for child in children.values():
        assert child.cost == pytest.approx(1 - child.copies / 40)
        assert child.rating == pytest.approx(-((1 - 1 / 4) ** 0.5)), "1 of 4 turns of the imagined plan"
    assert children["a"].cost < children["b"].cost


def test_stored_plans_set_costs_and_what_is_left() -> None:
    children = first_children(PlanCost(memory=PlanMemory(plans=["bab"]), alpha=1.0, beta=1.0))
    assert {name: child.cost for name, child in children.items()} == {"a": 0, "b": 0}
    assert children["a"].rating == pytest.approx(-(1 - 2 / 3))
    assert children["b"].rating == pytest.approx(-(1 - 1 / 3))


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_of_actions_of_equal_cost_the_one_with_less_to_go_is_done(beta: float) -> None:
    """By the imagined plan, or by the stored one, `b` is nearer the end."""
    engine = talk(lambda *_: "a", lambda read: "x" if "next:\nb\n" in read else "x\nx\nx")
    cost = PlanCost(memory=PlanMemory(plans=["ab"]), alpha=1.0, beta=beta)
    known, _ = search(
        replace(tool_chain(), expand=Admissible(), rate=cost, rounds=2), Game(depth=3), engine=engine, limits=LIMITS
    )
    assert [(child.action, child.cost) for child in known.root.children] == [("a", 0), ("b", 0)]
    assert [child.action for child in known.root.children if child.at is not None] == ["b"]


def test_the_weight_of_the_cost_so_far_is_a_setting() -> None:
    for how in (tool_chain(weight=0.25), a_star(weight=0.25)):
        assert how.select == Best(by=AStarCost(weight=0.25), deepest=True)


def executed(memory: PlanMemory) -> int:
    """Number of executed actions until `bbab` is found, with a policy that prefers `a`."""
    how = tool_chain(width=24, memory=memory)
    known, tree = search(how, Game(depth=4, pays={"bbab": 1.0}), engine=answers("x"), limits=Limits(turns=4))
    assert [word(node) for node in known.nodes if node.success] == ["bbab"]
    return tree.counts.turns


def test_a_memory_leads_to_what_the_samples_disagree_with() -> None:
    with_plan, without, misled = (executed(PlanMemory(plans=plans)) for plans in (["bbab"], [], ["aaaa"]))
    assert 2 * with_plan < min(without, misled)


def turns(memory: PlanMemory, task: int) -> int:
    env = FrozenLake(size=4, min_moves=5)
    engine = talk(lambda _read, _luck: "up", lambda _read: "up")
    how = replace(tool_chain(memory=memory), expand=Admissible())
    known, tree = search(how, env, engine=engine, limits=LIMITS, task=env.tasks("train", 3, 1)[task])
    assert any(node.success for node in known.nodes)
    return tree.counts.turns


@pytest.mark.parametrize("task", range(3))
def test_a_solved_lake_is_crossed_again_by_its_plan(task: int, tmp_path: Path) -> None:
    """The trees of one search are the memory of the next."""
    env = FrozenLake(size=4, min_moves=5)
    lake = env.tasks("train", 3, 1)[task]
    plan = env.plan(env.start(lake))
    assert plan is not None
    memory = PlanMemory(plans=[[str(action) for action in plan]])
    assert turns(memory, task) < turns(PlanMemory(), task)
    how = replace(tool_chain(memory=memory), expand=Admissible())
    _, tree = search(how, env, engine=talk(lambda _read, _luck: "up", lambda _read: "up"), limits=LIMITS, task=lake)
    (tmp_path / "trees").mkdir()
    write_trees(tmp_path / "trees" / "0.safetensors", [tree])
    stored = PlanMemory(trees=str(tmp_path)).load()
    assert len(stored) == 1
    state, done = env.start(lake), False
    for action in stored[0]:
        step = env.step(state, action)
        state, done = step.state, step.success
    assert done


def test_tools_may_be_compared_without_their_arguments() -> None:
    call = Action(text="", calls=(ToolCall(name="find", arguments={"what": "tea"}),))
    assert PlanMemory(arguments=False).name(call) == "find"
    assert "tea" in PlanMemory().name(call)
    assert PlanMemory(arguments=False).name("go") == "go"


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"got no files of trees; .* search with --out"):
        PlanMemory(trees=str(tmp_path)).load()
    with pytest.raises(ValueError, match=r"PlanCost\.alpha: got 2; need a number from 0 to 1"):
        PlanCost(alpha=2)
    with pytest.raises(ValueError, match=r"PlanCost.prompt"):
        PlanCost(prompt="{plan}")


def test_one_question_for_each_action_and_none_where_positions_suffice() -> None:
    for beta, questions in ((0.5, 2), (1.0, 0)):
        how = replace(tool_chain(width=40), rate=PlanCost(beta=beta), rounds=1)
        known, tree = search(how, Game(depth=3), engine=answers("x"))
        assert len(known.root.children) == 2
        assert tree.counts.calls == 40 + questions
