"""Searches for self-training run their simulations, whatever they find."""

import itertools
from dataclasses import replace

import pytest
from tests.search.game import Game, search

from bough.cli.find import find_run
from bough.needs import CRITIC, needs_of
from bough.search import ConstantValue, Search
from bough.searches.mcts import mcts
from bough.searches.puct import puct

SOLVED = Game(depth=10, pays={"".join(word): 1.0 for word in itertools.product("ab", repeat=10)})
"""Every path succeeds, and there are more places than any of these searches visits."""


def blind(explorer: object) -> Search:
    """The search, with a constant in place of a critic."""
    assert isinstance(explorer, Search)
    return replace(explorer, evaluate=ConstantValue()) if CRITIC in needs_of(explorer.evaluate) else explorer


@pytest.mark.parametrize("how", [mcts(width=2), blind(puct(width=2))], ids=["mcts", "puct"])
def test_without_simulations_the_first_success_ends_a_search(how: Search) -> None:
    known, _ = search(how, SOLVED)
    assert sum(end.success for end in known.ends()) == 1


@pytest.mark.parametrize(
    ("recipe", "simulations"),
    [
        ("mcts_dpo", 64),
        ("tp_llama", 64),
        ("agent_q", 64),
        ("agent_r", 64),
        ("rstar", 48),
        ("rest_mcts", 50),
        ("alpha_math", 40),
        ("cpl", 200),
    ],
)
def test_a_recipe_runs_the_simulations_of_its_paper(recipe: str, simulations: int) -> None:
    run = find_run(f"{recipe}_sokoban")
    assert run.world.limits.tree_turns is run.world.limits.tree_tokens is run.world.limits.tree_calls is None
    known, tree = search(blind(run.method.explorer), SOLVED)
    assert known.root.visits == tree.visits[0] == simulations


def test_ends_that_are_not_revisited_leave_their_simulations_to_others() -> None:
    """Two actions, of which both succeed at once: each is visited once, or the first of them again and again."""
    game = Game(depth=1, pays={"a": 1.0, "b": 1.0})
    known, _ = search(mcts(width=8, simulations=20, revisit=False), game)
    assert [child.visits for child in known.root.children] == [1, 1]
    known, _ = search(mcts(width=8, simulations=20), game)
    assert sum(child.visits for child in known.root.children) == 19
