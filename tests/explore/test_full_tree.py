"""Trees grown level by level: how large they are, what is kept of them, and what a fork's branches are compared by."""

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Late
from tests.explore.stage import World, grow, runner, scripted
from tests.rollout.test_builder import columns
from tests.trees import rewarded

from bough.batch import pack
from bough.credit import TreeRpo
from bough.credit.branches import place_of
from bough.engine import Engine, InjectedFault, Request, Scripted
from bough.env import InProcessHost, Replay
from bough.explore import FullTree
from bough.reward import EnvReward
from bough.rollout import Limits, PendingAction, Rollout
from bough.tree import (
    Credited,
    Kind,
    Outcome,
    Rewarded,
    Ternary,
    Tree,
    count_path_tokens,
    counted,
    leaves,
    path,
    path_view,
    temperature_in,
    turns,
)


def distinct(request: Request) -> tuple[int, ...]:
    """A letter that hardly anything else has."""
    return (0x4E00 + random.Random(request.seed).randrange(20000),)


def grown(
    explorer: FullTree, engine: Engine | None = None, *, length: int = 5, seed: int = 0, limits: Limits | None = None
) -> Tree:
    world = InProcessHost(env=World(length=length))
    place = runner(engine or scripted(lambda chance: chance.choice("ab")), world, limits=limits or Limits())
    (tree,) = grow(place, explorer, seed=seed).trees
    return tree


def actions(tree: Tree) -> int:
    return int((tree.kind == Kind.ACTION).sum())


@settings(max_examples=20)
@given(width=strategies.integers(1, 4), depth=strategies.integers(0, 3), length=strategies.integers(3, 6))
def test_the_full_tree_has_so_many_actions(width: int, depth: int, length: int) -> None:
    tree = grown(FullTree(width=width, depth=depth), length=length)
    paths = width**depth
    assert len(counted(tree)) == len(leaves(tree)) == paths
    assert set(turns(tree)[leaves(tree)].tolist()) == {length}
    assert actions(tree) == sum(width**level for level in range(1, depth + 1)) + paths * (length - depth)
    chains = paths * length
    assert actions(tree) <= chains


def test_the_example_in_words() -> None:
    tree = grown(FullTree(width=2, depth=2), length=4)
    assert np.bincount(turns(tree)[tree.kind == Kind.ACTION]).tolist() == [0, 2, 4, 4, 4]


def test_the_branches_of_a_place_are_a_group() -> None:
    tree = grown(FullTree(width=3, depth=2), length=4)
    view = path_view([Rewarded(tree=tree, channels={})])
    groups = place_of(view)
    forked = view.turn < 2
    sizes = [len(np.unique(view.node[forked & (groups == group)])) for group in np.unique(groups[forked])]
    assert sizes == [3] * (1 + 3)


def test_siblings_are_compared_by_the_mean_of_what_goes_on_from_them() -> None:
    """The golden case, on a tree that was grown: first branch 1 and 0, second 0 and 0."""
    for seed in range(200):
        tree = grown(FullTree(width=2, depth=2), length=2, seed=seed)
        rewarded = Rewarded(tree=tree, channels={"both": _both(tree)})
        if rewarded.returns().tolist() == [1, 0, 0, 0]:
            break
    (credited,) = TreeRpo()([rewarded])
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    said = [float(credited.advantage[tree.span[node]]) for node in acts]
    assert said == pytest.approx([0.7071, 0.7071, -0.7071, -0.7071, 0, 0], abs=2e-5)
    (credited,) = TreeRpo(ddof=0)([rewarded])
    assert [float(credited.advantage[tree.span[node]]) for node in acts] == pytest.approx(
        [1, 1, -1, -1, 0, 0], abs=2e-5
    )


def _both(tree: Tree) -> np.ndarray:
    """1 at the end of a path that wrote `a` twice."""
    paid = np.zeros(tree.nodes)
    for leaf in counted(tree):
        paid[tree.parent[leaf]] = tree.info[int(leaf)]["text"] == "aa"
    return paid


LIMITS = [Limits(), Limits(tree_turns=17), Limits(tree_tokens=60), Limits(tree_calls=11)]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: str(limits)[:60])
@pytest.mark.parametrize(
    "explorer", [FullTree(width=3, depth=2), FullTree(width=4, depth=3, keep=3, merge=True)], ids=str
)
def test_the_order_of_arrival_does_not_show(explorer: FullTree, limits: Limits) -> None:
    plain = scripted(lambda chance: chance.choice("abc"))
    expected = columns(grown(explorer, plain, limits=limits))

    @settings(max_examples=8)
    @given(chance=strategies.integers(0, 2**32 - 1).map(random.Random))
    def late(chance: random.Random) -> None:
        assert columns(grown(explorer, Late(plain, chance), limits=limits)) == expected

    late()


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_so_many_of_a_level_live_on(keep: int) -> None:
    tree = grown(FullTree(width=4, depth=3, keep=keep), Scripted(script=distinct), length=5)
    done = np.flatnonzero(tree.valid != Ternary.UNKNOWN).tolist()
    assert np.bincount(turns(tree)[done]).tolist() == [0, *[min(keep, 4)], keep, keep, keep, keep]
    assert len(counted(tree)) == keep
    surplus = [int(leaf) for leaf in leaves(tree) if tree.outcome[leaf] == Outcome.OPEN]
    first = min(keep, 4)
    assert len(surplus) == (4 - first) + (4 * first - keep) + (4 * keep - keep)
    assert all(tree.kind[leaf] == Kind.ACTION for leaf in surplus)


def test_the_best_live_on_and_the_others_count_nowhere() -> None:
    tree = grown(
        FullTree(width=6, depth=2, keep=2), scripted(lambda chance: chance.choice(["a", "b", "much too long"]))
    )
    judged = tree.rating[~np.isnan(tree.rating)].tolist()
    assert set(judged) == {1.0, 2.0}
    for leaf in counted(tree):
        forked = [int(node) for node in path(tree, int(leaf)) if not np.isnan(tree.rating[node])]
        assert [tree.rating[node] for node in forked] == [2.0, 2.0]
    (credited,) = TreeRpo()([Rewarded(tree=tree, channels=EnvReward()([tree])[0])])
    trained = {int(token) for token in pack([credited]).origin}
    unread = [node for node in leaves(tree) if tree.outcome[node] == Outcome.OPEN]
    assert unread
    assert not trained & {token for node in unread for token in range(tree.span[node], tree.span[node + 1])}


def test_ties_are_spread_over_the_places() -> None:
    tree = grown(FullTree(width=3, depth=2, keep=3), scripted(lambda _: "a"))
    done = np.flatnonzero(tree.valid != Ternary.UNKNOWN).tolist()
    second = [n for n in done if turns(tree)[n] == 2]
    assert len({int(tree.parent[n]) for n in second}) == 3, "one below each place, not three below the first"


def test_an_action_is_done_once_in_a_place() -> None:
    tree = grown(FullTree(width=6, depth=2, merge=True))
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    forked = acts[turns(tree)[acts] <= 2]
    done = [int(node) for node in forked if tree.valid[node] != Ternary.UNKNOWN]
    assert len(forked) == 6 + 2 * 6
    assert len(done) == 2 + 2 * 2
    assert len({(int(tree.parent[node]), str(tree.info[node]["text"])) for node in done}) == len(done)
    assert len(counted(tree)) == 4
    assert np.sum(tree.valid == Ternary.YES) == 2 + 4 + 4 * 3, "and the environment is stepped once"


def faulty(request: Request) -> object:
    return InjectedFault.FAULT if random.Random(request.seed).random() < 0.2 else (ord("a"),)


def test_what_fails_is_tried_again_from_its_last_fork() -> None:
    for seed in range(5):
        tree = grown(FullTree(width=2, depth=2, retries=50), Scripted(script=faulty), seed=seed)  # type: ignore[arg-type]
        ends = leaves(tree)
        assert len(counted(tree)) == 4
        assert set(tree.outcome[ends].tolist()) <= {Outcome.TERMINATED, Outcome.FAILED}


def test_an_environment_that_breaks_is_tried_again() -> None:
    wild = scripted(lambda chance: chance.choice(["a", "raise"]))
    for seed in range(5):
        tree = grown(FullTree(width=2, depth=2, retries=50), wild, seed=seed)
        assert len(counted(tree)) == 4
        assert (tree.outcome == Outcome.FAILED).any()


def test_when_everything_fails_it_ends() -> None:
    tree = grown(FullTree(width=3, depth=2, retries=1), Scripted(script=lambda _: InjectedFault.FAULT))
    assert tree.outcome[leaves(tree)].tolist() == [Outcome.FAILED] * 6


@pytest.mark.parametrize("limits", LIMITS[1:], ids=lambda limits: str(limits)[:60])
@pytest.mark.parametrize(
    "host", [InProcessHost(env=World(length=5)), InProcessHost(env=Replay(env=World(length=5), keep=1))], ids=str
)
def test_no_budget_is_overdrawn(limits: Limits, host: InProcessHost) -> None:
    spent: list[tuple[int, int, int]] = []

    explorer = FullTree(width=3, depth=2)

    async def watch(rollout: Rollout) -> None:
        await explorer(rollout)
        cost = rollout.budget.spent
        spent.append((cost.turns, cost.tokens, cost.calls))

    (tree,) = grow(runner(scripted(lambda c: c.choice("ab")), host, limits=limits), watch).trees  # type: ignore[arg-type]
    ((of_turns, of_tokens, of_calls),) = spent
    assert of_turns <= (limits.tree_turns or of_turns)
    assert of_tokens <= (limits.tree_tokens or of_tokens)
    assert of_calls <= (limits.tree_calls or of_calls)
    assert actions(tree) > 3
    assert len(counted(tree))


def test_quality_may_be_anything() -> None:
    class Last:
        async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
            del rollout
            return float(ord(draft.parsed.action[0]))

    letters = scripted(lambda chance: chance.choice("abcdefgh"))
    tree = grown(FullTree(width=8, depth=1, keep=1, quality=Last()), letters)
    first = [str(info["text"]) for info, parent in zip(tree.info, tree.parent, strict=True) if parent == 0]
    (leaf,) = counted(tree)
    assert tree.info[int(path(tree, int(leaf))[1])]["text"] == max(first)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"width": 0}, "FullTree.width: got 0; need at least 1"),
        ({"depth": -1}, "FullTree.depth: got -1; need at least 0"),
        ({"retries": -1}, "FullTree.retries: got -1; need at least 0"),
        ({"keep": 0}, "FullTree.keep: got 0; need at least 1, or None"),
    ],
)
def test_ranges(fields: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FullTree(**fields)  # type: ignore[arg-type]


def temperatures(explorer: FullTree, *, seed: int = 0) -> tuple[Tree, list[tuple[int, float]]]:
    """The tree, and for each sampled turn its number and temperature."""
    engine = Scripted(script=distinct)
    tree = grown(explorer, engine, length=6, seed=seed)
    return tree, [(each.prompt_tokens.count(ord("{")), each.sampling.temperature) for each in engine.requests]


def test_deeper_levels_are_hotter() -> None:
    """1 + heat * level / depth, and after the last level the agent's own again."""
    tree, asked = temperatures(FullTree(width=2, depth=3, heat=0.5))
    by_turn = {turn: {heat for at, heat in asked if at == turn} for turn, _ in asked}
    first = min(by_turn)
    shown = [sorted(by_turn[first + level]) for level in range(4)]
    assert [len(each) for each in shown] == [1, 1, 1, 1]
    assert [each[0] for each in shown] == pytest.approx([1.0, 1 + 0.5 / 3, 1 + 1 / 3, 1.0])
    assert len(leaves(tree)) == 8
    assert {heat for _, heat in temperatures(FullTree(width=2, depth=3))[1]} == {1.0}
    stored = [temperature_in(tree.info[node]) for node in np.flatnonzero(tree.kind == Kind.ACTION)]
    assert {each for _, each in asked} - {1.0} == {each for each in stored if each is not None}
    own = np.asarray([each is None for each in stored])
    batch = pack([Credited(rewarded=rewarded(tree), path_advantage=np.ones(count_path_tokens(tree)))])
    at_own = np.repeat(own, np.diff(tree.span)[tree.kind == Kind.ACTION])
    assert batch.on_policy[batch.origin.argsort()].tolist() == at_own.tolist(), (
        "only these are compared with the learner"
    )


def test_the_window_begins_after_a_trunk_drawn_for_each_tree() -> None:
    """A trunk of 0 to 3 turns without a fork, then binary forks at two turns."""
    starts = set()
    for seed in range(24):
        tree = grown(FullTree(width=2, depth=2, trunk=3), Scripted(script=distinct), length=6, seed=seed)
        acts = np.flatnonzero(tree.kind == Kind.ACTION)
        depth = np.asarray([int((tree.kind[path(tree, int(node))] == Kind.ACTION).sum()) for node in acts])
        width = np.bincount(depth)[1:].tolist()
        start = width.index(2)
        assert width == [1] * start + [2] + [4] * (5 - start)
        starts.add(start)
    assert starts == {0, 1, 2, 3}


def test_a_path_that_ends_before_the_window_is_a_tree() -> None:
    for seed in range(8):
        tree = grown(FullTree(width=2, depth=2, trunk=9), Scripted(script=distinct), length=2, seed=seed)
        assert (tree.outcome[leaves(tree)] != Outcome.FAILED).all()
        assert len(leaves(tree)) in (1, 2, 4)


def test_heat_and_trunk_are_not_negative() -> None:
    for field in ("heat", "trunk"):
        with pytest.raises(ValueError, match=rf"FullTree.{field}: got -1; need at least 0"):
            FullTree(**{field: -1})  # type: ignore[arg-type]
