import asyncio
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Front, Late
from tests.explore.stage import World, grow, runner, scripted
from tests.rollout.test_builder import columns

from bough.credit import TreeGrpo
from bough.credit.branches import trunk_of
from bough.engine import Completion, InjectedFault, Request, Scripted
from bough.env import InProcessHost
from bough.explore import EpTree, Forks
from bough.reward import EnvReward
from bough.rollout import Deadlines, Explorer, Limits, Rollout, TreeBuilder
from bough.tree import Kind, Outcome, Rewarded, Task, Tree, TruncatedBy, counted, leaves, path, path_view, turns


def grown(explorer: Forks, *, length: int = 5, seed: int = 0, limits: Limits | None = None) -> Tree:
    world = InProcessHost(env=World(length=length))
    place = runner(scripted(lambda chance: chance.choice("ab")), world, limits=limits or Limits())
    (tree,) = grow(place, explorer, seed=seed).trees
    return tree


def trunks(tree: Tree) -> list[object]:
    """For each counted path, which chain it says it was grown from."""
    return [int(tree.chain[path(tree, int(leaf))[1]]) for leaf in counted(tree)]


@pytest.mark.parametrize("explorer", [Forks(), Forks(chains=3, draws=1, rounds=4), Forks(chains=1, draws=5)], ids=str)
def test_so_many_paths_each_to_the_end(explorer: Forks) -> None:
    for seed in range(5):
        tree = grown(explorer, seed=seed)
        ends = leaves(tree)
        assert len(ends) == explorer.paths
        assert set(tree.outcome[ends].tolist()) == {Outcome.TERMINATED}
        assert set(turns(tree)[ends].tolist()) == {5}
        assert sorted(trunks(tree)) == sorted(list(range(explorer.chains)) * (explorer.paths // explorer.chains))


def test_forks_share_what_was_before_them() -> None:
    shared = [int((tree.kind == Kind.ACTION).sum()) for tree in (grown(Forks(), seed=seed) for seed in range(20))]
    assert max(shared) <= 8 * 5
    # Of 5 places, drawn uniformly, the mean fork has 3 turns to go: 2 chains of 5 and 6 forks of 3.
    assert np.mean(shared) == pytest.approx(2 * 5 + 6 * 3, abs=2.5)


@pytest.mark.parametrize(
    ("explorer", "length", "share", "alone"),
    [(Forks(chains=2, draws=2), 3, 14, 18), (Forks(chains=4, draws=5), 10, 150, 240)],
)
def test_sharing_what_was_before_saves_turns(explorer: Forks, length: int, share: int, alone: int) -> None:
    """A path that forks has as many turns to go as the mean place of a chain, (T + 1) / 2 of T."""
    assert explorer.paths * length == alone
    forks = explorer.paths - explorer.chains
    assert explorer.chains * length + forks * (length + 1) / 2 == share
    sizes = [int((grown(explorer, length=length, seed=seed).kind == Kind.ACTION).sum()) for seed in range(12)]
    spread = np.sqrt(forks * (length**2 - 1) / 12 / len(sizes))
    assert np.mean(sizes) == pytest.approx(share, abs=3.3 * spread)


def test_every_place_of_a_chain_is_drawn_equally_often() -> None:
    """With replacement, the prompt among them: so many turns does a fork share with the chain."""
    depth = np.zeros(5)
    for seed in range(150):
        tree = grown(Forks(chains=1, draws=1), seed=seed)
        one, other = (path(tree, int(leaf)) for leaf in leaves(tree))
        common = np.intersect1d(one, other)
        depth[int((tree.kind[common] == Kind.ACTION).sum())] += 1
    expected = 150 / 5
    # Chi-squared with 4 degrees of freedom stays below this with a chance of 0.999.
    assert ((depth - expected) ** 2 / expected).sum() < 18.5


def test_later_rounds_fork_forks() -> None:
    tree = grown(Forks(chains=1, draws=2, rounds=8), seed=1, length=8)
    below = np.bincount(tree.parent[1:][tree.kind[1:] == Kind.ACTION], minlength=tree.nodes)
    forks = np.flatnonzero(below > 1)
    assert any(set(forks.tolist()) & set(path(tree, int(fork))[:-1].tolist()) - {0} for fork in forks)


def test_the_seed_decides_and_the_order_of_arrival_does_not() -> None:
    plain = scripted(lambda chance: chance.choice("ab"))

    def all_of(engine: object, seed: int) -> list[dict[str, bytes]]:
        place = runner(engine, InProcessHost(env=World(length=5)))  # type: ignore[arg-type]
        return [columns(tree) for tree in grow(place, Forks(rounds=2), "x", "y", "x", seed=seed).trees]

    expected = all_of(plain, 3)
    assert all_of(plain, 4) != expected

    @settings(max_examples=15)
    @given(chance=strategies.integers(0, 2**32 - 1).map(random.Random))
    def late(chance: random.Random) -> None:
        assert all_of(Late(plain, chance), 3) == expected

    late()


def test_every_draw_has_a_seed_of_its_own() -> None:
    engine = scripted(lambda chance: chance.choice("ab"))
    grow(runner(engine, InProcessHost(env=World(length=5))), Forks(rounds=3), "x", "y", "x", seed=3)
    seeds = [request.seed for request in engine.requests]
    assert len(set(seeds)) == len(seeds)


def test_what_fails_is_tried_again_from_where_it_forked() -> None:
    calls = 0

    def reply(request: Request) -> object:
        nonlocal calls
        calls += 1
        return InjectedFault.FAULT if random.Random(request.seed).random() < 0.2 else (ord("a"),)

    for seed in range(10):
        (tree,) = grow(
            runner(Scripted(script=reply), InProcessHost(env=World(length=4))),  # type: ignore[arg-type]
            Forks(retries=50),
            seed=seed,
        ).trees
        failed = leaves(tree)[tree.outcome[leaves(tree)] == Outcome.FAILED]
        assert len(counted(tree)) == 8
        assert len(failed) == len(leaves(tree)) - 8
        # Nothing forks from an attempt that failed: what leads to its end alone is one stretch.
        good = {int(node) for leaf in counted(tree) for node in path(tree, int(leaf))}
        for leaf in failed:
            alone = [int(node) for node in path(tree, int(leaf)) if int(node) not in good]
            children = np.bincount(tree.parent[1:], minlength=tree.nodes)
            assert all(children[node] <= 1 for node in alone)
        assert len(trunks(tree)) == 8
        assert [trunks(tree).count(chain) for chain in (0, 1)] == [4, 4]


def test_when_everything_fails_it_ends() -> None:
    def reply(_: object) -> InjectedFault:
        return InjectedFault.FAULT

    (tree,) = grow(runner(Scripted(script=reply)), Forks(chains=2, draws=1, retries=1)).trees
    assert tree.outcome[leaves(tree)].tolist() == [Outcome.FAILED] * 8


@pytest.mark.parametrize(
    ("limits", "spent"), [(Limits(tree_turns=12), "tree_turns"), (Limits(tree_tokens=30), "tree_tokens")]
)
def test_no_fork_begins_when_a_budget_of_the_tree_is_spent(limits: Limits, spent: str) -> None:
    # Two chains of 5 turns leave room for two turns; a turn is 2 tokens, but may be 8. Six forks are drawn at once.
    tree = grown(Forks(draws=3, rounds=50), limits=limits)
    assert {TruncatedBy(each).name.lower() for each in tree.truncated_by.tolist()} == {"nothing", spent}
    assert (tree.kind == Kind.ACTION).sum() == 12
    # When the chains alone spend it, there is none.
    short = Limits(tree_turns=10) if spent == "tree_turns" else Limits(tree_tokens=26)
    assert len(leaves(grown(Forks(), limits=short))) == 2


def test_limits_of_a_path_hold_for_forks() -> None:
    tree = grown(Forks(), length=100, limits=Limits(turns=6))
    assert turns(tree)[leaves(tree)].tolist() == [6] * 8
    assert set(tree.outcome[leaves(tree)].tolist()) == {Outcome.TRUNCATED}


def test_chains_that_end_at_once_are_drawn_from_the_prompt() -> None:
    tree = grown(Forks(), length=1)
    assert turns(tree)[leaves(tree)].tolist() == [1] * 8
    assert sorted(trunks(tree)) == [0] * 4 + [1] * 4


def test_a_path_drawn_from_the_prompt_is_compared_within_its_tree() -> None:
    """One turn each: no path shares anything, and still there are two trees."""
    tree = grown(Forks(), length=1)
    rewarded = Rewarded(tree=tree, channels=EnvReward()([tree])[0])
    groups = trunk_of(path_view([rewarded]))
    assert sorted(np.bincount(groups).tolist()) == [4, 4]
    assert len(set(zip(trunks(tree), groups.tolist(), strict=True))) == 2
    assert np.isfinite(TreeGrpo()([rewarded])[0].advantage).all()


def test_seeds_for_choices_are_not_those_of_completions() -> None:
    place = runner(scripted(lambda _: "a"))

    def rollout(seed: int) -> Rollout:
        builder = TreeBuilder(Task(id="t"))
        return Rollout(
            builder, place.agent, place.host, instructions="", limits=Limits(), seed=seed, deadlines=Deadlines()
        )

    assert rollout(0).seed("forks", 0, 1) == rollout(0).seed("forks", 0, 1)
    assert len({rollout(0).seed("forks", 0, 1), rollout(0).seed("forks", 1, 0), rollout(1).seed("forks", 0, 1)}) == 3
    asyncio.run(place.host.close())


def test_ranges() -> None:
    for field in ({"chains": 0}, {"draws": -1}, {"rounds": -1}, {"retries": -1}):
        with pytest.raises(ValueError, match=f"Forks.{next(iter(field))}: got .*; need at least"):
            Forks(**field)
    assert Forks(draws=0).paths == 2
    assert len(leaves(grown(Forks(draws=0)))) == 2


class Held(Front):
    """Holds the second completion back until a third is asked for."""

    asked = 0

    async def generate(self, request: Request) -> Completion:
        self.asked += 1
        if self.asked == 2:
            async with asyncio.timeout(60):
                while self.asked < 3:
                    await asyncio.sleep(0)
        return await super().generate(request)


@pytest.mark.parametrize("limits", [Limits(), Limits(tree_tokens=10**6)], ids=["free", "limited"])
@pytest.mark.parametrize("explorer", [Forks(chains=2, draws=1), EpTree(chains=2, spots=1, forks_each=1)], ids=str)
def test_a_chain_that_has_ended_is_forked_while_others_grow(explorer: Explorer, limits: Limits) -> None:
    held = Held(scripted(lambda _: "aaa"))
    tree = grow(runner(held, limits=limits), explorer).trees[0]
    assert held.asked == len(counted(tree)) == 4
