"""Plans that are merged and decided between."""

import pytest
from tests.explore.stage import grow, runner
from tests.search.game import Game, answer
from tests.search.talk import questions, talk

from bough.env import Env, InProcessHost, Replay
from bough.rollout import Limits
from bough.search import TreePlanner
from bough.search.tree_planner import merged
from bough.tree import Kind, RolloutCounts, Tree


def test_a_trie_has_each_beginning_once() -> None:
    trie = merged(["xyz", "xyw", "xqw"])
    assert trie.size() == 9
    assert trie.choices() == ["x"]
    assert trie.next["x"].choices() == ["y", "q"], "those of most plans first"
    assert trie.next["x"].next["y"].next["z"].choices() == [None]


def plan(plans: list[str], decide: str, game: Env, *, limits: Limits | None = None) -> tuple[Tree, list[str]]:
    """The tree, and the questions at forks."""
    left = list(plans)

    def say(read: str) -> str:
        return "\n".join(left.pop(0)) if "whole plan" in read else decide

    engine = talk(lambda _read, _luck: "a", say)
    place = runner(engine, InProcessHost(env=game), limits=limits or Limits(), max_tokens=50)
    (tree,) = grow(place, TreePlanner(plans=len(plans))).trees
    return tree, [text for text in questions(engine) if "What is to be done next?" in text]


def test_a_plan_has_room_for_the_actions_of_a_whole_path() -> None:
    engine = talk(lambda _read, _luck: "a", lambda _read: "x")
    grow(runner(engine, InProcessHost(env=LETTERS), limits=Limits(turns=7), max_tokens=50), TreePlanner(plans=1))
    assert engine.requests[0].sampling.max_tokens == 7 * 50
    own = TreePlanner(plans=1, plan_tokens=9)
    grow(runner(engine, InProcessHost(env=LETTERS), limits=Limits(turns=7), max_tokens=50), own)
    assert engine.requests[-1].sampling.max_tokens == 9


LETTERS = Game(depth=9, letters="xyzqw", pays={"xqw": 1.0, "xyz": 0.2})


def test_it_asks_at_forks_alone_and_does_what_is_said() -> None:
    tree, asked = plan(["xyz", "xyw", "xqw"], "2", LETTERS)
    assert answer(tree) == ["x", "q", "w"]
    assert len(asked) == 1
    assert "1. y\n2. q" in asked[0]
    assert tree.counts == RolloutCounts(turns=3, tokens=tree.counts.tokens, calls=4)


def test_what_failed_is_not_tried_again_and_the_state_is_what_it_was() -> None:
    """x y z ends without success; then x y w is over with nothing done; the third plan is not come to."""
    tree, asked = plan(["xyz", "xyw", "xqw"], "1", Replay(env=LETTERS))
    assert answer(tree) == ["x", "y", "w"]
    assert len(asked) == 2
    assert "1. z\n2. w" in asked[1]
    # After z failed w is all that is left there, so nobody is asked.
    assert tree.counts.replayed_turns == 2


def test_it_goes_back_to_the_nearest_fork_where_something_is_left() -> None:
    game = Game(depth=9, letters="xyzqw", pays={"xqw": 1.0, "xyz": 0.2, "xyw": 0.2})
    tree, asked = plan(["xyz", "xyw", "xqw"], "1", game)
    assert answer(tree) == ["x", "q", "w"]
    assert len(asked) == 2


def test_what_the_environment_does_not_understand_is_told() -> None:
    game = Game(depth=9, letters="xyzqw", pays={"xqw": 1.0})
    tree, asked = plan(["x!", "xqw", "xyw"], "1", game)
    assert "This was tried and failed: !. x!\n" in asked[1]
    assert answer(tree) == ["x", "q", "w"]


@pytest.mark.parametrize("turns", range(1, 6))
def test_a_budget_ends_it_where_it_stands(turns: int) -> None:
    tree, _ = plan(["xyzw", "xyzq"], "1", Game(depth=9, letters="xyzqw"), limits=Limits(tree_turns=turns))
    assert answer(tree) == list("xyzw")[:turns]
    assert sum(tree.kind == Kind.ACTION) <= turns + 1


def test_the_vote_of_most_decides() -> None:
    words = iter(["2", "?", "?", "1", "2"])

    def say(read: str) -> str:
        return ("x" if "0" not in read else "y") if "whole plan" in read else next(words)

    plans = iter(["x", "y"])
    engine = talk(lambda _read, _luck: "a", lambda read: next(plans) if "whole plan" in read else say(read))
    place = runner(engine, InProcessHost(env=Game(depth=1, letters="xy", pays={"y": 1.0})), max_tokens=50)
    (tree,) = grow(place, TreePlanner(plans=2, votes=3)).trees
    assert answer(tree) == ["y"]
