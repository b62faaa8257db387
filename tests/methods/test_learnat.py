"""LearNAT: sub-queries by their syntax trees, pruning, and margin-aware DPO."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.objective.preference_pairs import P, T, lay
from tests.queries import ENV, GOLD, TASK, called, grow

from bough.cli.find import find_run, find_world
from bough.objective import MarginDpo
from bough.rollout import Limits
from bough.search import Search
from bough.searches.learnat import learnat
from bough.tree import Kind, Tree
from bough.worlds.sql import Sql
from bough.worlds.sql.schema import Column, Schema, Table
from bough.worlds.sql.syntax import is_part

PETS = Schema(tables=(Table(name="pets", columns=tuple(Column(name=name) for name in ("name", "age", "color"))),))
TABLE, COLUMN = GOLD.split()[3], GOLD.split()[5]
SYNTAX = replace(ENV, compares_syntax=True)
PART, STRANGE = f"select * from {TABLE}", f"select * from {TABLE} where name = 'nobody'"


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("select * from pets", True),
        ("SELECT DISTINCT p.age FROM pets AS p", True),
        ("select * from pets where age > 3", True),
        ("select name from pets where 3 = age or age > 3", False),
        ("select name from pets where age > 4", False),
        ("select color from pets where age > 3", False),
        ("select name from pets where age > 3 order by name", True),
        ("select name from pets where age > 3 order by age desc", False),
        ("no query", False),
    ],
)
def test_a_step_is_made_of_parts_of_the_gold_query(sql: str, part: bool) -> None:
    assert is_part(sql, "select name from pets where age > 3 order by name", PETS) == part


def test_the_environment_compares_queries_and_answers() -> None:
    start = SYNTAX.start(TASK)
    near, far, right = (SYNTAX.step(start, called(sql)).info for sql in (PART, "select 1", f"={GOLD}"))
    assert right["similarity"] == 1
    assert 1 > near["similarity"] > far["similarity"]  # type: ignore[operator]
    assert (near["part"], SYNTAX.step(start, called(STRANGE)).info["part"], right["part"]) == (True, False, True)
    assert not SYNTAX.step(start, called("select nothing from nowhere")).info
    assert "similarity" not in ENV.step(start, called(PART)).info


def _grown(explorer: Search) -> Tree:
    options = [PART, STRANGE, f"={GOLD}", "=select 1"]
    return grow(explorer, lambda _, luck: luck.choice(options), env=SYNTAX, limits=Limits(turns=4))


def _below(tree: Tree, sql: str) -> list[int]:
    """Number of actions after each query `sql` at the root."""
    acts = [
        n
        for n in np.flatnonzero(tree.kind == Kind.ACTION)
        if tree.parent[n] == 0 and f'"{sql}"' in str(tree.info[n]["text"])
    ]
    after = [int(np.flatnonzero(tree.parent == act)[0]) for act in acts if (tree.parent == act).any()]
    return [int((tree.parent == node).sum()) for node in after]


def test_a_step_that_is_no_part_is_never_expanded() -> None:
    tree = _grown(learnat(width=12, simulations=20))
    assert sum(_below(tree, PART)) > 0
    assert sum(_below(tree, STRANGE)) == 0
    assert sum(_below(_grown(replace(learnat(width=12, simulations=20), prune=())), STRANGE)) > 0


def test_values_are_similarities_and_a_right_answer_is_worth_one() -> None:
    tree = _grown(learnat(width=12, simulations=20))
    acts = [tree.info[node] for node in np.flatnonzero(tree.kind == Kind.ACTION)]
    scores = {str(info["text"]): info["score"] for info in acts if "score" in info}
    (right,) = [score for text, score in scores.items() if GOLD in text]
    (wrong,) = [score for text, score in scores.items() if "select 1" in text]
    assert right == 1
    assert wrong == SYNTAX.step(SYNTAX.start(TASK), called("=select 1")).info["similarity"]


def test_the_margin_of_a_pair() -> None:
    """Worked example: gaps of 1 and .25 have losses .6931 and .2231, and gradients -.5 and -.2."""
    for gap, loss, slope in ((1.0, 0.6931, -0.5), (0.25, 0.2231, -0.2), (2.0, 0.6931, -0.5)):
        paths = [
            P(turns=[T(logprob=[-1.0], reference=[-1.0])], advantage=worth) for worth in (0.5 + gap / 2, 0.5 - gap / 2)
        ]
        columns = lay(paths)
        logprob = columns.logprob.clone().requires_grad_()
        value = MarginDpo(beta=1.0)(replace(columns, logprob=logprob)).value
        (gradient,) = torch.autograd.grad(value, logprob)
        assert value.item() == pytest.approx(loss, abs=1e-4)
        assert gradient.tolist() == pytest.approx([slope, -slope], abs=1e-4)
    for wrong in ({"beta": 0.0}, {"alpha": -1.0}):
        with pytest.raises(ValueError, match="MarginDpo"):
            MarginDpo(**wrong)


def test_the_method_decomposes_questions() -> None:
    run = find_run("learnat(steps=5)", find_world("sql").replace(env=ENV))
    env = run.world.env
    assert isinstance(env, Sql)
    assert (env.max_queries, env.compares_syntax, run.world.limits.turns) == (5, True, 6)
    plan = env.plan(env.start(TASK)) or ()
    assert len(plan) >= 4, "sub-queries before the answer"
    parts = [env.step(env.start(TASK), each).info["part"] for each in plan]
    assert all(parts), "every step of the oracle is one that the search keeps"
