"""ReEx-SQL: the parts of its reward, forks after executions, and the vote by results."""

from dataclasses import replace

import numpy as np
import pytest
from tests.queries import ENV, GOLD, TASK, called, grow

from bough.cli.find import find_run, find_world
from bough.explore import Chains
from bough.reward import Format, reward_trees
from bough.rollout import Limits
from bough.search import BestOf, ForkAfterValid, Vote
from bough.searches.reex_sql import reex_sql
from bough.tree import Kind, Ternary, Tree, leaves
from bough.worlds.sql import Sql

TABLE, COLUMN = GOLD.split()[3], GOLD.split()[5]
COUNT, NAMES, LOOKUP = "select count(*) from", "select name from", "select distinct"


def paid(*actions: str) -> float:
    """The return of one path in the environment of the method."""
    world = find_run("reex_sql", find_world("sql").replace(env=ENV)).world
    assert isinstance(world.env, Sql)
    assert world.env.rows_shown == 3
    state, total = world.env.start(TASK), 0.0
    for action in actions:
        step = world.env.step(state, called(action))
        state, total = step.state, total + step.reward
    return total


def test_each_part_of_the_reward_counts() -> None:
    """An answer that executes, one that looks like the gold query, queries with its parts, and the right answer."""
    fails, executes, near = "=select nothing from nowhere", "=select 1", f"={NAMES} {TABLE}"
    explores, wanders = f"select * from {TABLE}", "select 1"
    assert paid(fails) == 0
    assert 0.1 <= paid(executes) < paid(near)
    assert paid(wanders, executes) == paid(executes)
    assert paid(explores, executes) > paid(executes)
    assert paid(f"={GOLD}") == 1
    assert paid(explores, f"={GOLD}") > 1
    assert paid(GOLD, fails) == pytest.approx(0.2), "all components, whatever the answer"


def test_the_method_blames_the_path_that_does_not_explore() -> None:
    """GRPO on two paths with one wrong answer: the one that looked first has the positive advantage."""
    run = find_run("reex_sql", find_world("sql").replace(env=ENV))
    look = [f"select * from {TABLE}", "=select 1"]
    assert isinstance(run.world.env, Sql)
    tree = grow(Chains(n=8), lambda turn, luck: look[turn] if luck.random() < 0.5 else look[1], env=run.world.env)
    (credited,) = run.method.credit(reward_trees([tree], run.world.rewards))
    ends = leaves(tree)
    depth = [_turns(tree, int(end)) for end in ends]
    by_turns = {turns: _advantage(credited, tree, int(end)) for turns, end in zip(depth, ends, strict=True)}
    assert by_turns[2] > 0 > by_turns[1]


def test_malformed_texts_cost() -> None:
    assert Format(penalty=0.1) in find_run("reex_sql", "sql").world.rewards
    assert Format(penalty=0.3) in find_run("reex_sql(malformed=0.3)", "frozenlake").world.rewards


def test_paths_fork_after_executions_only() -> None:
    """Two queries, the first an error or not, then an answer: forks after a result, none after an error."""
    explorer = reex_sql(start=1, width=2, forks=1)

    def with_first(query: str) -> Tree:
        return grow(explorer, lambda turn, luck: [query, f"select {luck.random()}", f"=select {luck.random()}"][turn])

    assert len(leaves(with_first("select 1"))) == 2
    after_error = with_first("select nothing from nowhere")
    assert _children(after_error, int(np.flatnonzero(after_error.kind == Kind.ACTION)[0])) == 1
    assert len(leaves(after_error)) == 2, "the fork is after the second query"
    assert len(leaves(grow(reex_sql(start=3, width=2, forks=2), _three_turns))) == 3 * 4
    assert len(leaves(grow(reex_sql(start=1, width=1, forks=2), _three_turns))) == 1


def test_the_answer_is_that_of_most_results() -> None:
    """Texts that differ vote together where their results are equal; a lonely right answer loses."""
    answers = ["=select 1, 2", "=select 1 , 2", "=select 2 - 1, 2", f"={GOLD}", f"={GOLD}", "=select oops from none"]
    drawn: list[str] = []

    def write(*_: object) -> str:
        drawn.append(answers[len(drawn) % len(answers)])
        return drawn[-1]

    by_result = grow(reex_sql(start=6), write)
    assert _answer(by_result).startswith("select")
    assert "oops" not in _answer(by_result)
    assert GOLD not in _answer(by_result)
    drawn.clear()
    by_text = grow(replace(reex_sql(start=6), by=""), write)
    assert _answer(by_text) == GOLD, "the only text that occurs twice"
    drawn.clear()
    verified = grow(BestOf(n=6, stop_value=None), write)
    assert bool(np.any(verified.success[verified.answer] == Ternary.YES))


def test_an_answer_of_a_truncated_path_has_no_vote() -> None:
    tree = grow(reex_sql(start=2), lambda _, luck: f"select {luck.random()}", limits=Limits(turns=2))
    assert not np.any(np.nan_to_num(tree.value[leaves(tree)]) > 0)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"ForkAfterValid.start: got 0; need at least 1"):
        ForkAfterValid(start=0)
    assert Vote().by == ""


def _three_turns(turn: int, luck: object) -> str:
    number = luck.random()  # type: ignore[attr-defined]
    return [f"select {number}", f"select {number} + 1", f"=select {number}"][turn]


def _turns(tree: Tree, node: int) -> int:
    turns = 0
    while node >= 0:
        turns += tree.kind[node] == Kind.ACTION
        node = int(tree.parent[node])
    return int(turns)


def _advantage(credited: object, tree: Tree, leaf: int) -> float:
    node = leaf if tree.kind[leaf] == Kind.ACTION else int(tree.parent[leaf])
    token = int(tree.span[node])
    return float(credited.positive[token] + credited.negative[token])  # type: ignore[attr-defined]


def _children(tree: Tree, action: int) -> int:
    after = np.flatnonzero(tree.parent == action)
    return int((tree.parent == after[0]).sum())


def _answer(tree: Tree) -> str:
    """The query of the answer."""
    (node,) = np.flatnonzero(tree.answer).tolist()
    return str(tree.info[node]["env"]["sql"])  # type: ignore[index]
