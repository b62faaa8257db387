"""Settings of explorers at values other than their defaults."""

import math

import pytest
from tests.explore.shapes import grown as grown_at
from tests.explore.shapes import place_of, written
from tests.explore.stage import World, grow, runner, scripted
from tests.explore.test_guided import grown as guided
from tests.explore.test_latr import filled, forced, told
from tests.explore.test_quality import Flat
from tests.explore.test_subgoal_groups import acts, tree_of
from tests.rollout.test_writing import play

from bough.engine import InjectedFault, Scripted
from bough.env import InProcessHost
from bough.explore import BudgetedChains, EarlyAnswerBonus, EntropyForks, Guided, Latr, Segments, Subgoals
from bough.rollout import Rollout
from bough.tree import TruncatedBy, leaves


def test_the_vocabulary_of_released_entropies() -> None:
    """Twenty coin flips over the logarithm of four tokens."""
    assert EntropyForks(as_released=True, vocab_tokens=4).entropy([math.log(2)] * 20) == pytest.approx(10.0)


@pytest.mark.parametrize("retries", [0, 3])
def test_budgeted_chains_are_retried(retries: int) -> None:
    engine = Scripted(script=lambda _: InjectedFault.FAULT)
    grow(runner(engine), BudgetedChains(budgets=(8,), n=2, retries=retries))
    assert len(engine.requests) == 2 * (1 + retries)


@pytest.mark.parametrize(("settings", "expected"), [({"weight": 0.4}, [2.3, 2.2, 2.1]), ({"turns": 2}, [2.05, 2, 2])])
def test_the_bonus_of_an_early_answer(settings: dict[str, float], expected: list[float]) -> None:
    early = EarlyAnswerBonus(quality=Flat(value=2.0), answer="a", **settings)  # type: ignore[arg-type]
    found: list[float | None] = []

    async def script(rollout: Rollout) -> None:
        place = await rollout.root()
        for _ in expected:
            found.append(await early(rollout, rollout.force_tokens(place, [ord("a"), 0], branch=1)))
            place = await rollout.advance(place)  # type: ignore[assignment]

    play(runner(scripted(lambda _: "b"), InProcessHost(env=World(length=9))), script)
    assert found == pytest.approx(expected)


def test_the_seat_that_sets_subgoals() -> None:
    """The planner's three first actions lead to states of the executor, which branch by three in each of its turns."""
    tree = tree_of(Subgoals(width=3, tries=2, seat="executor"))
    # Of the executor's four turns, two come after each plan; the second plan is tried twice for each branch.
    assert (len(acts(tree, "planner")), len(acts(tree, "executor"))) == (3 + 3 * 2, 4 * 3)


@pytest.mark.parametrize(("ahead", "hint"), [(1, "a"), (2, "a, a"), (3, "a, a, a")])
def test_a_hint_has_so_many_actions(ahead: int, hint: str) -> None:
    engine = scripted(lambda _: "b")
    guided(Guided(n=1, again=1, ahead=ahead), engine)
    read = ["".join(map(chr, request.prompt_tokens)) for request in engine.requests]
    assert read[3].endswith(f"\nDo this: {hint}}}")


@pytest.mark.parametrize(
    ("settings", "second", "branches"),
    [
        ({}, {"x": 0.5, "y": 0.3}, False),
        ({"gap": 0.25}, {"x": 0.5, "y": 0.3}, True),
        ({}, {"x": 0.3, "y": 0.2}, False),
        ({"floor": 0.1}, {"x": 0.3, "y": 0.2}, True),
    ],
    ids=str,
)
def test_a_tie(settings: dict[str, float], second: dict[str, float], branches: bool) -> None:
    explorer = Latr(paths=2, windows=(3,), **settings)  # type: ignore[arg-type]
    assert bool(forced(grown_at(place_of(told(lambda _: second, filled("x"))), explorer))) == branches


@pytest.mark.parametrize(("candidates", "expected"), [(2, ["a", "b"]), (3, ["a", "b", "c"])])
def test_the_candidates_of_a_tie(candidates: int, expected: list[str]) -> None:
    engine = told(
        lambda before: {"a": 0.34, "b": 0.32, "c": 0.3} if before.endswith("}xx") else {"x": 0.9, "y": 0.05},
        lambda begun: "x" * (9 - len(begun)),
    )
    tree = grown_at(place_of(engine), Latr(paths=4, windows=(3,), candidates=candidates, edit=None))
    assert sorted(forced(tree)) == expected


@pytest.mark.parametrize(("times", "letters"), [(2, 4), (5, 8), (9, 12)])
def test_so_many_repetitions_are_a_loop(times: int, letters: int) -> None:
    """Segments of four letters have 3, 7 and 11 pairs of equal letters."""
    explorer = Segments(width=1, divergence=1, tokens=4, loop_tokens=2, loop_times=times)
    tree = grown_at(place_of(scripted(lambda _: "a" * 40), max_tokens=40), explorer)
    (leaf,) = leaves(tree).tolist()
    assert tree.truncated_by[leaf] == TruncatedBy.REPETITION
    assert written(tree, leaf) == "a" * letters
