"""Tournaments: who meets whom, what a rank is worth, and what ArenaRL makes of it."""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from tests.appraise.test_appraisers import appraised, asker, says, trees

from bough.appraise import Tournament
from bough.appraise.path_fields import path_fields
from bough.appraise.topologies import Match, Topology, quantiles, standings
from bough.appraise.two_paths import DifferentPaths
from bough.cli.find import find_run
from bough.engine import Request
from bough.engine.scripted import Reply
from bough.reward import Judged, reward_trees
from bough.tree import Kind, Tree, Verdict, leaves, path

TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
MOST = {"anchor": 7, "round_robin": 28, "single_elimination": 14, "double_elimination": 14, "swiss": 12}
"""Matches of eight players."""


def ranked(
    topology: Topology, players: int, margin: Callable[[int, int], float | None]
) -> tuple[list[float | None], list[Match]]:
    played: list[Match] = []

    async def play(matches: Sequence[Match]) -> list[float | None]:
        played.extend(matches)
        return [margin(*match) for match in matches]

    return quantiles(asyncio.run(standings(topology, players, play))), played


def correlation(one: Sequence[float | None], two: Sequence[float]) -> float:
    return float(np.corrcoef(np.asarray(one, dtype=float), np.argsort(np.argsort(two)))[0, 1])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_best_of_eight_wins_wherever_it_stands(topology: Topology) -> None:
    rng, agreement = random.Random(0), list[float]()
    for _ in range(200):
        skill = rng.sample(range(8), 8)
        found, played = ranked(topology, 8, lambda one, two, skill=skill: float(np.sign(skill[one] - skill[two])))
        assert len(played) <= MOST[topology]
        assert all(one != two for one, two in played)
        if topology != "anchor":
            best = skill.index(7)
            assert found[best] == 1
            assert sum(value == 1 for value in found) == 1
        agreement.append(correlation(found, skill) if len(set(found)) > 1 else 0)
    least = {"anchor": 0.5, "round_robin": 0.999, "single_elimination": 0.85, "double_elimination": 0.85, "swiss": 0.85}
    assert np.mean(agreement) > least[topology]


@pytest.mark.parametrize("topology", [each for each in TOPOLOGIES if each != "swiss"])
def test_the_worked_example_of_the_advantages(topology: Topology) -> None:
    """Strengths 3, 9, 5, 1: the ranks are 1/3, 1, 2/3, 0."""
    strength = (3, 9, 5, 1)
    found, _ = ranked(topology, 4, lambda one, two: (strength[one] - strength[two]) / 10)
    value = np.asarray(found, dtype=np.float64)
    advantage = (value - value.mean()) / (value.std(ddof=1) + 1e-6)
    assert advantage == pytest.approx([-0.387297, 1.161892, 0.387297, -1.161892], abs=2e-5)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("players", [2, 3, 5, 6, 7, 9, 16])
def test_any_number_of_players(topology: Topology, players: int) -> None:
    skill = random.Random(players).sample(range(players), players)
    found, _ = ranked(topology, players, lambda one, two: float(np.sign(skill[one] - skill[two])))
    assert sum(value or 0 for value in found) == pytest.approx(players / 2)
    if topology not in ("anchor", "swiss"):
        assert found[skill.index(players - 1)] == 1


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("players", [2, 3, 6, 8])
def test_ties_stay_ties(topology: Topology, players: int) -> None:
    assert ranked(topology, players, lambda _one, _two: 0.0)[0] == [0.5] * players


def test_a_path_that_a_tie_takes_out_shares_the_rank_of_its_opponent() -> None:
    """Two players are equally good and better than two others: the seeds do not invent an order."""
    skill = [0, 1, 2, 2]
    found, _ = ranked("single_elimination", 4, lambda one, two: float(np.sign(skill[one] - skill[two])))
    assert found[2] == found[3]
    assert found[2] == pytest.approx(5 / 6)


def test_the_seeds_of_three() -> None:
    """0 beats 1 and 2, 1 beats 2: the judge's order, where the release has 0, 2, 1. Two matches of the bracket."""
    found, played = ranked("single_elimination", 3, lambda one, two: float(np.sign(two - one)))
    assert found == [1, 0.5, 0]
    assert len({frozenset(match) for match in played}) == 3, "the final repeats a match of the seeding"


def test_no_two_meet_twice_in_a_swiss_tournament() -> None:
    skill = list(range(16))
    _, played = ranked("swiss", 16, lambda one, two: float(np.sign(skill[one] - skill[two])))
    assert len({frozenset(match) for match in played}) == len(played) == 32


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_undecided_match_is_no_result(topology: Topology) -> None:
    found, _ = ranked(topology, 4, lambda _one, _two: None)
    assert found == [None] * 4
    found, _ = ranked(topology, 4, lambda one, two: None if 3 in (one, two) else float(np.sign(two - one)))
    assert found[3] is None
    assert found[0] == max(value for value in found if value is not None)


def test_the_worked_example_of_quantiles() -> None:
    assert quantiles([(3.0,), (1.0,), (1.0,), (0.0,)]) == [1, 0.5, 0.5, 0]
    assert quantiles([(3.0,), None, (1.0,)]) == [1, None, 0]
    assert quantiles([(3.0,)]) == [0.5]


def more_a(request: Request) -> Reply:
    """Prefers the path with more letters `a`."""
    first, second = "".join(map(chr, request.prompt_tokens)).rsplit("The second:", 1)
    one, two = (text.count("> a") for text in (first, second))
    return says("tie" if one == two else "1" if one > two else "2")


def letters(tree: Tree, leaf: int) -> int:
    return path_fields(tree, leaf)["turns"].count("> a")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_bias_for_the_first_cancels(topology: Topology, tmp_path: Path) -> None:
    ask, engine = asker(lambda _: says("1"), tmp_path)
    (tree,) = appraised(trees(n=8), ask, Tournament(role="judge", topology=topology))
    assert set(tree.appraisals["rank"].value[leaves(tree)].tolist()) == {0.5}
    assert engine.requests


def test_equal_paths_are_one_path_and_each_question_counts_once(tmp_path: Path) -> None:
    ask, engine = asker(more_a, tmp_path)
    (tree,) = appraised(trees(n=24), ask, Tournament(role="judge", topology="round_robin"))
    ends, column = leaves(tree), tree.appraisals["rank"]
    assert len(DifferentPaths.of([tree]).texts) < 24
    assert column.questions.sum() == len(engine.requests)
    by_text: dict[int, set[float]] = {}
    for leaf in ends.tolist():
        by_text.setdefault(letters(tree, leaf), set()).add(float(column.value[leaf]))
    assert all(len(values) == 1 for values in by_text.values()), "as many letters, as much worth"
    worth = [values.pop() for _, values in sorted(by_text.items())]
    assert worth == sorted(worth)
    alone, _ = asker(more_a, tmp_path / "..")
    (one,) = appraised(trees(n=1), alone, Tournament(role="judge"))
    assert one.appraisals["rank"].value[leaves(one)].tolist() == [0.5]


def test_a_match_that_is_repeated_asks_nothing(tmp_path: Path) -> None:
    """The bracket repeats matches of its seeding."""
    ask, engine = asker(more_a, tmp_path)
    (tree,) = appraised(trees(n=8), ask, Tournament(role="judge"))
    assert tree.appraisals["rank"].questions.sum() == len(engine.requests)


def test_without_an_answer_in_both_orders_there_is_no_rank(tmp_path: Path) -> None:
    def half(request: Request) -> Reply:
        first, _ = "".join(map(chr, request.prompt_tokens)).rsplit("The second:", 1)
        return says("1") if first.count("> a") > 1 else says("hm")

    ask, _ = asker(half, tmp_path)
    (tree,) = appraised(trees(n=8), ask, Tournament(role="judge"), required=("rank",))
    verdicts = set(tree.appraisals["rank"].verdict[leaves(tree)].tolist())
    assert Verdict.UNPARSED in verdicts


def test_arena_rl_pays_ranks_and_compares_them(tmp_path: Path) -> None:
    run = find_run("arena_rl(judge=judge)", "frozenlake")
    (tournament,) = run.world.appraisers
    ask, _ = asker(more_a, tmp_path)
    (tree,) = appraised(trees(n=8), ask, tournament, required=("rank",))
    paid = [reward for reward in run.world.rewards if isinstance(reward, Judged)]
    rewarded = reward_trees([tree], paid)
    (credited,) = run.method.credit(rewarded)
    value = tree.appraisals["rank"].value[leaves(tree)]
    assert len(set(value.tolist())) > 1
    advantage = [float((credited.positive + credited.negative)[tree.span[leaf]]) for leaf in ends_of(tree)]
    expected = (value - value.mean()) / (value.std(ddof=1) + 1e-6)
    assert np.allclose(sorted(advantage), sorted(expected), atol=1e-5)


def ends_of(tree: Tree) -> list[int]:
    """The last action of each path."""
    return [
        max(node for node in path(tree, leaf).tolist() if tree.kind[node] == Kind.ACTION)
        for leaf in leaves(tree).tolist()
    ]


def test_an_unknown_topology_is_refused() -> None:
    with pytest.raises(ValueError, match="topology: got 'knockout'; need 'anchor', 'round_robin'"):
        Tournament(topology="knockout")  # type: ignore[arg-type]
