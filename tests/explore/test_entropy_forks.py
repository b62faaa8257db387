import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.explore.shapes import Told, ends, grown, model_grove, place_of, scores, spelling
from tests.rollout.test_builder import columns

from bough.engine import InjectedFault, Request, Scripted
from bough.explore import EntropyForks
from bough.rollout import Explorer
from bough.tree import Kind, Outcome, Source, Tree, counted, leaves, turns

SURE = EntropyForks(paths=8, chains=2, base=1.0, weight=0.0)


def fork_turns(tree: Tree) -> list[int]:
    """After how many turns each fork stands, the prompt left out."""
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    below = np.bincount(tree.parent[acts], minlength=tree.nodes)
    return [int(turns(tree)[node]) for node in np.flatnonzero(below > 1).tolist() if node]


def by_turn(heights: list[float]) -> Callable[[str], float]:
    """The same entropy for all tokens of a turn, by its number."""
    return lambda before: heights[before.count("}") - 2]


@pytest.mark.parametrize(("rise", "chance"), [(-1.0, 0.3), (0.0, 0.5), (0.5, 0.6), (1.0, 0.7), (-9.0, 0.0), (9.0, 1.0)])
def test_the_gate_of_the_card(rise: float, chance: float) -> None:
    assert EntropyForks().chance(rise) == pytest.approx(chance, abs=2e-5)


def test_the_penalty_falls_with_every_fork_just_before() -> None:
    explorer = EntropyForks(penalty=0.25)
    assert [explorer.chance(0.5, streak) for streak in range(6)] == pytest.approx([0.6, 0.45, 0.3, 0.15, 0, 0])


def test_the_entropy_of_the_card() -> None:
    """Twenty coin flips are 1.1619 in the released code, which sums them; they are a coin flip here, however many."""
    flips = [math.log(2)] * 20
    assert EntropyForks(as_released=True).entropy(flips) == pytest.approx(1.1619, abs=2e-5)
    assert EntropyForks(as_released=True).entropy(flips[:5]) == pytest.approx(1.1619 / 4, abs=2e-5)
    for count in (1, 5, 20):
        assert EntropyForks().entropy(flips[:count]) == pytest.approx(math.log(2))
    assert EntropyForks().entropy([*flips, 99.0]) == pytest.approx(math.log(2)), "only the first twenty"
    assert EntropyForks().entropy([]) == 0


def test_every_turn_after_an_observation_forks_while_there_is_room() -> None:
    """Two chains of four turns: 4 after the first observation, 8 after the second; the prompt is no observation."""
    assert isinstance(SURE, Explorer)
    tree = grown(place_of(Told(script=spelling(1), entropy=lambda _: 1.0), turns=4), SURE)
    assert ends(tree) == [Outcome.TERMINATED] * 8
    assert fork_turns(tree) == [1, 2, 2, 1, 2, 2]
    assert turns(tree)[leaves(tree)].tolist() == [4] * 8
    # Two first turns, four second, and eight of either later turn.
    assert (tree.kind == Kind.ACTION).sum() == 2 + 4 + 8 + 8


def test_it_forks_at_the_observation_where_entropy_rose() -> None:
    """The third turn is unsure: the fork is at the second observation, and shares two turns with its path."""
    place = place_of(Told(script=spelling(1), entropy=by_turn([1.0, 1.0, 4.0, 1.0])), turns=4)
    tree = grown(place, EntropyForks(paths=2, chains=1, base=0.0, weight=1.0))
    assert fork_turns(tree) == [2]
    # As released it is the turn before the observation that decides: one later.
    tree = grown(place, EntropyForks(paths=2, chains=1, base=0.0, weight=99.0, as_released=True))
    assert fork_turns(tree) == [3]


def test_a_fall_never_forks_and_what_is_left_are_chains() -> None:
    place = place_of(Told(script=spelling(1), entropy=by_turn([4.0, 1.0, 1.0, 1.0])), turns=4)
    tree = grown(place, EntropyForks(paths=5, chains=2, base=0.0, weight=1.0))
    assert fork_turns(tree) == []
    assert len(counted(tree)) == 5
    assert (tree.kind == Kind.ACTION).sum() == 20


def test_the_frequency_of_forks_is_the_gates() -> None:
    """With one chance to fork: rise 0.5 gives 0.6."""
    place = place_of(Told(script=spelling(1), entropy=by_turn([1.0, 1.5])), turns=2)
    explorer = EntropyForks(paths=2, chains=1)
    forked = sum(len(fork_turns(grown(place, explorer, seed=seed))) for seed in range(400))
    # Four standard deviations of a binomial.
    assert abs(forked / 400 - 0.6) < 4 * math.sqrt(0.6 * 0.4 / 400)


def test_nothing_is_remembered_from_tree_to_tree() -> None:
    """The released code's baselines are those of whatever task had the same row before; ours are the path's own."""
    explorer = EntropyForks(paths=6, chains=3, base=0.0, weight=1.0)
    high = place_of(Told(script=spelling(1), entropy=lambda _: 9.0), turns=3)
    low = place_of(Told(script=spelling(1), entropy=lambda _: 1.0), turns=3)
    before = columns(grown(high, explorer))
    grown(low, explorer)
    assert columns(grown(high, explorer)) == before
    # Against the baseline of the other task, a rise of 8 would fork everywhere.
    assert fork_turns(grown(high, explorer)) == []


def test_paths_have_baselines_of_their_own() -> None:
    """Both are at 3 in the second turn; one comes from 1, and forks, the other from 3, and does not."""

    def height(before: str) -> float:
        said = before.split("}", 2)[2]
        return 3.0 if "}" in said or said.startswith("b") else 1.0

    begun = iter("ab")

    def reply(request: Request) -> tuple[int, ...]:
        said = "".join(map(chr, request.prompt_tokens)).split("}", 2)[2]
        return tuple(map(ord, "ac" if said else next(begun) + "c"))

    tree = grown(
        place_of(Told(script=reply, entropy=height), turns=4),
        EntropyForks(paths=3, chains=2, base=0.0, weight=1.0),
    )
    (fork,) = [n for n in range(1, tree.nodes) if (tree.parent[tree.kind == Kind.ACTION] == n).sum() > 1]
    assert chr(tree.tokens_of(int(tree.parent[fork]))[0]) == "a"


def test_a_fork_is_measured_against_the_turn_from_the_prompt() -> None:
    """Rises of 1 against the first turn at all later turns, so that a path forked once is forked again."""
    place = place_of(Told(script=spelling(1), entropy=by_turn([1.0, 2.0, 2.0])), turns=3)
    tree = grown(place, EntropyForks(paths=4, chains=1, base=0.0, weight=1.0))
    assert fork_turns(tree) == [1, 2, 2]
    # As released, the baseline of a fork is its own first turn, and there is no rise after it.
    again = EntropyForks(paths=4, chains=1, base=0.0, weight=99.0, as_released=True)
    assert fork_turns(grown(place, again)) == [2]


def test_the_penalty_holds_back_paths_that_were_just_forked() -> None:
    place = place_of(Told(script=spelling(1), entropy=lambda _: 1.0), turns=5)
    every = EntropyForks(paths=16, chains=1, base=1.0, weight=0.0)
    assert fork_turns(grown(place, every)) == [1, 2, 3, 4, 4, 3, 4, 4, 2, 3, 4, 4, 3, 4, 4]
    assert set(fork_turns(grown(place, EntropyForks(paths=4, chains=1, base=1.0, weight=0.0, penalty=1.0)))) == {1, 3}


@pytest.mark.parametrize(("gap", "chains"), [(0.5, 10), (-0.5, 6), (0.0, 8), (99.0, 16), (-99.0, 1)])
def test_the_split_of_the_budget(gap: float, chains: int) -> None:
    """AEPO's m = k sigmoid(beta gap): 9.96 and 6.04 of 16. A chain that is played first is one of them."""
    place = place_of(Told(script=spelling(1), entropy=by_turn([100 + gap, 100.0, 100.0])), turns=3)
    tree = grown(place, EntropyForks(balance=1.0, base=1.0, weight=0.0))
    assert len(counted(tree)) == 16
    forks = fork_turns(tree)
    from_prompt = int((tree.parent[tree.kind == Kind.ACTION] == 0).sum())
    assert from_prompt == (chains if chains > 1 else 16)
    assert bool(forks) == (1 < chains < 16)


def test_episodes_of_one_turn_are_chains() -> None:
    place = place_of(Told(script=spelling(1), entropy=lambda _: 1.0), turns=1)
    for explorer in (SURE, EntropyForks(paths=8, balance=1.0)):
        tree = grown(place, explorer)
        assert (tree.parent[tree.kind == Kind.ACTION] == 0).sum() == 8


def test_what_fails_is_tried_again() -> None:
    def reply(request: Request) -> object:
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.3 else spelling(1)(request)

    for seed in range(5):
        place = place_of(Scripted(script=reply), turns=4)  # type: ignore[arg-type]
        tree = grown(place, EntropyForks(retries=40), seed=seed)
        assert len(counted(tree)) == 16
        assert Outcome.FAILED in ends(tree)
    for explorer in (EntropyForks(paths=4, chains=2, retries=0), EntropyForks(paths=4, balance=1.0, retries=0)):
        dead = grown(place_of(Scripted(script=lambda _: InjectedFault.FAULT)), explorer)
        assert ends(dead) == [Outcome.FAILED] * 4


def test_entropies_are_needed() -> None:
    class Silent(Scripted):
        async def generate(self, request: Request):  # type: ignore[no-untyped-def]
            return replace(await super().generate(request), entropies=None)

    with pytest.raises(ValueError, match="EntropyForks: got a turn without entropies; need"):
        grown(place_of(Silent(script=spelling(1))), SURE)


def test_a_model_reads_what_the_tree_says() -> None:
    place = model_grove(turns=5, max_tokens=3)
    tree = grown(place, EntropyForks(paths=8, chains=2, base=0.9))
    assert len(counted(tree)) == 8
    assert fork_turns(tree)
    assert set(tree.source[tree.kind == Kind.ACTION].tolist()) == {Source.SAMPLED}
    np.testing.assert_allclose(*zip(*scores(place, tree), strict=True), atol=1e-6)


def test_ranges() -> None:
    for field in (
        {"chains": 0},
        {"chains": 17},
        {"base": 1.5},
        {"penalty": -0.1},
        {"vocab_tokens": 1},
        {"retries": -1},
    ):
        with pytest.raises(ValueError, match=r"EntropyForks.*: got .*; need"):
            EntropyForks(**field)  # type: ignore[arg-type]
