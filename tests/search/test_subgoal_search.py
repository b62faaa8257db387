# ruff: noqa: ARG001
"""A planner over searches: subgoals in order, new plans after failures, and states that the searches share."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest
from tests.explore.stage import World, runner
from tests.search.game import Game
from tests.search.talk import ACTS, answer, questions, search, talk

from bough.engine import Scripted
from bough.env import InProcessHost
from bough.rollout import Limits
from bough.search import Best, KnownActions, Sample, Search, ShareStates, SubgoalHint, SubgoalSearch
from bough.search.subgoal import REACHED, SubgoalValue
from bough.search.tree import SearchTree
from bough.searches.bfs_prover_v2 import bfs_prover_v2
from bough.searches.web_pilot import web_pilot
from bough.tree import Kind, Ternary, Tree, path, plain_text
from bough.worlds.frozenlake import FrozenLake


def act(read: str, luck: random.Random) -> str:
    """The last letter of the subgoal in the hint; without a hint b, which leads nowhere."""
    return read.rpartition("subgoal: ")[2][0] if "subgoal: " in read else "b"


def planner(*plans: str) -> Any:
    """Lists of subgoals in order; a subgoal "x 2" is reached by two actions x in a row."""
    left = list(plans)

    def answered(read: str) -> str:
        if "up to" in read:
            return left.pop(0)
        if "say in two sentences" in read.casefold():
            return "b is wrong"
        letter, _, count = read.partition("present subgoal: ")[2].splitlines()[0].partition(" ")
        acts = [line[2:] for line in read.splitlines() if line.startswith("> ")]
        return "yes" if acts[-int(count or 1) :] == [letter] * int(count or 1) else "no"

    return answered


def reads(engine: Scripted) -> list[str]:
    texts = ["".join(chr(token) for token in each.prompt_tokens if token) for each in engine.requests]
    return [text for text in texts if text.startswith(ACTS)]


def texts(tree: Tree) -> list[str]:
    """The actions that were executed, by node."""
    executed = {int(parent) for parent, kind in zip(tree.parent, tree.kind, strict=True) if kind != Kind.ACTION}
    return [str(tree.info[node]["text"]) for node in sorted(executed - {-1}) if tree.kind[node] == Kind.ACTION]


def game(*, wins: str = "aacc", **fields: Any) -> Any:
    return InProcessHost(env=Game(depth=len(wins), letters="abc", pays={wins: 1.0}, **fields))


def small(**fields: Any) -> SubgoalSearch:
    how = Search(
        select=Best(),
        expand=KnownActions(expand=Sample(width=1, hint=SubgoalHint())),
        evaluate=SubgoalValue(),
        prune=(ShareStates(),),
        eager=True,
        success_value=REACHED,
        stop_value=REACHED,
        answer_at_any_node=True,
        rounds=2,
    )
    return SubgoalSearch(search=how, **fields)


def test_each_subgoal_has_a_search_that_begins_where_the_last_one_ended() -> None:
    engine = talk(act, planner("1. a 2\n2. c 2"))
    tree = search(engine, small(), host=game(), limits=Limits(turns=4))
    assert answer(tree) == "aacc"
    assert [read.rpartition("subgoal: ")[2] for read in reads(engine)] == ["a 2}", "a 2}", "c 2}", "c 2}"]
    alone = search(talk(act, planner()), small().search, host=game(), limits=Limits(turns=4))
    assert set(answer(alone)) == {"b"}, "without a plan"


def test_a_failed_search_makes_a_new_plan_from_the_present_state() -> None:
    """b 3 takes more than two rounds; the planner reads what was reached, and the old plan."""
    engine = talk(act, planner("a 2\nb 3", "c 2"))
    tree = search(engine, small(), host=game(), limits=Limits(turns=4))
    assert answer(tree) == "aacc"
    (revision,) = [each for each in questions(engine) if "did not reach the first" in each]
    assert "Reached so far:\n- a 2\nThe plan was:\n- b 3" in revision
    assert "easier ones, or replace it.\nb is wrong" in revision
    assert "subgoal: c 2\nb is wrong" in reads(engine)[-2], "the first search after the revision has the reflection"
    none = search(talk(act, planner("a 2\nb 3")), small(revisions=0), host=game(), limits=Limits(turns=4))
    assert not none.success[none.answer].any() or answer(none) != "aacc"


def test_with_reflect_the_planner_revises_after_each_reached_subgoal() -> None:
    engine = talk(act, planner("a 2\nb 2", "c 2"))
    tree = search(engine, small(reflect=True, revisions=0), host=game(), limits=Limits(turns=4))
    assert answer(tree) == "aacc"
    assert sum("requires it" in each for each in questions(engine)) == 1


def test_a_second_attempt_repeats_what_the_first_one_found_without_sampling() -> None:
    """The first plan leads to a lost end; the second has the same first subgoal, whose solution is known."""
    engine = talk(act, planner("a 2\nb 2", "a 2\nc 2"))
    tree = search(engine, small(attempts=2, revisions=0), host=game(), limits=Limits(turns=4))
    assert answer(tree) == "aacc"
    sampled = [read.rpartition("subgoal: ")[2] for read in reads(engine)]
    assert sampled == ["a 2}", "a 2}", "b 2}", "b 2}", "c 2}", "c 2}"]


def test_equal_states_are_expanded_once_and_states_tried_in_vain_never_again() -> None:
    """The order of letters does not matter, so ab and ba are one state."""

    def sort(word: str) -> str:
        return "".join(sorted(word))

    counts: dict[bool, int] = {}
    for shared in (True, False):
        engine = talk(lambda _, luck: luck.choice("ab"), lambda read: "a 9" if "up to" in read else "no")
        rule = (ShareStates(),) if shared else ()
        how = Search(
            select=Best(),
            expand=Sample(width=6, hint=SubgoalHint()),
            evaluate=SubgoalValue(),
            prune=rule,
            eager=True,
            success_value=REACHED,
            stop_value=REACHED,
            answer_at_any_node=True,
        )
        host = game(wins="ccccc", keys=sort)
        tree = search(engine, SubgoalSearch(search=how, revisions=1), host=host, limits=Limits(turns=3))
        counts[shared] = len(texts(tree))
    # One search of 3 turns: 2 + 4 + 6 steps, with shared states; the second search of the subgoal prunes at once.
    assert counts == {True: 2 + 4 + 6 + 2, False: 2 * (2 + 4 + 8)}


def test_provers_expand_several_nodes_by_the_likelihood_of_their_actions() -> None:
    engine = talk(act, planner("a 2\nc 2"))
    tree = search(engine, bfs_prover_v2(provers=2, width=2), host=game(), limits=Limits(turns=4))
    assert answer(tree) == "aacc"
    acts = [node for node in range(len(tree.kind)) if "prior" in tree.info[node]]
    assert all(tree.rating[node] < 0 for node in acts), "mean log-probability"


@pytest.mark.parametrize("provers", [1, 2])
def test_a_round_expands_the_likeliest_actions_one_for_each_prover(provers: int) -> None:
    engine = talk(lambda _, luck: luck.choice("abc"), lambda _: "")
    how = bfs_prover_v2(provers=provers, width=9, expansions=2 * provers, attempts=1)
    tree = search(engine, how, host=game(wins="cccccc"), limits=Limits(turns=9))
    acts = tree.kind == Kind.ACTION
    after = {int(tree.parent[node]): node for node in np.flatnonzero(~acts).tolist() if node}
    first = [act for act in after if tree.parent[act] == 0]
    assert len(first) == 3
    expanded = [act for act in first if acts[tree.parent == after[act]].any()]
    assert sorted(expanded) == sorted(sorted(first, key=lambda act: -tree.rating[act])[:provers])


def test_web_pilot_plans_reflects_and_shows_what_earlier_actions_led_to() -> None:
    """Three actions at a node, one after another; the plan is revised after the subtask that is reached."""

    def tried(read: str, luck: random.Random) -> str:
        state, wanted = read.rpartition("{")[2].splitlines()[0], read.rpartition("subgoal: ")[2][0]
        return wanted if f"- c -> {state.strip('.')}c" in read else "c" if wanted == "a" else "a"

    answered = planner("a 1\nb 1", "c 1")
    say = lambda read: "7" if "0 to 10" in read else "so" if "two sentences" in read else answered(read)  # noqa: E731
    engine = talk(tried, say)
    tree = search(engine, web_pilot(rounds=3), host=game(wins="aa"), limits=Limits(turns=2))
    read = reads(engine)
    assert read[0].endswith("{.\nYour present subgoal: a 1}")
    assert "You have tried this here before:\n- c -> c" in read[1]
    assert [each for each in questions(engine) if "Change the plan" in each]
    assert "Your present subgoal: c 1\nso" in read[2], "the revised plan, and a reflection on the last action"
    assert answer(tree) == "aa"


def test_a_budget_ends_everything_and_settings_are_checked() -> None:
    for calls in (1, 2, 3, 5, 8):
        engine = talk(act, lambda _: "yes")
        tree = search(engine, small(), host=InProcessHost(env=World(length=9)), limits=Limits(tree_calls=calls))
        assert len(engine.requests) <= calls
        assert tree.answer.sum() == 1
    with pytest.raises(ValueError, match=r"SubgoalSearch\.search: got stop_value=1\.0, answer_at_any_node=False"):
        SubgoalSearch(search=Search(select=Best()))
    with pytest.raises(ValueError, match=r"SubgoalSearch\.max_subgoals: got 0"):
        SubgoalSearch(max_subgoals=0)
    with pytest.raises(ValueError, match=r"SubgoalHint\.text: got the placeholders \['goal'\]"):
        SubgoalHint(text="{goal}")
    assert SearchTree.restart.__doc__


def test_the_path_across_a_lake_passes_the_waypoints_of_the_plan() -> None:
    """FrozenLake, a policy of random moves, and a plan of two waypoints, in order, on the way to the goal."""
    env: Any = FrozenLake(size=5, max_steps=30)
    task = max(env.tasks("train", 40, 0), key=lambda task: len(env.plan(env.start(task))))
    places = [env.start(task)]
    for action in env.plan(places[0]):
        places.append(env.step(places[-1], action).state)
    boards = [plain_text(place.observation).replace("\n", "/") for place in places]
    waypoints = "\n".join((boards[len(boards) // 3], boards[2 * len(boards) // 3]))

    def answered(read: str) -> str:
        if "up to" in read:
            return waypoints
        wanted = read.partition("present subgoal: ")[2].splitlines()[0]
        here = read.partition("\n\nThe present")[0].rpartition("> ")[2].partition("\n")[2]
        return "yes" if here.replace("\n", "/") == wanted else "no"

    def moves(read: str, luck: random.Random) -> str:
        return luck.choice(["up", "down", "left", "right"])

    place = runner(
        talk(moves, answered), InProcessHost(env=env), limits=Limits(turns=30, tree_turns=400), max_tokens=400
    )
    how = bfs_prover_v2(provers=2, width=16, alpha=0.0)
    (tree,) = asyncio.run(place.run(how, [task], seed=0)).trees
    (node,) = np.flatnonzero(tree.answer).tolist()
    assert tree.success[node] == Ternary.YES
    passed = [str(tree.info[step].get("text")).replace("\n", "/") for step in path(tree, node)]
    assert [board for board in passed if board in waypoints.split("\n")] == waypoints.split("\n")
