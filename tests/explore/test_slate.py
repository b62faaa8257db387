"""One path with several candidates for every turn: what is taken, what it costs, and what is learned from it."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tests.engines import Late
from tests.explore.stage import World, grow, runner, scripted
from tests.rollout.test_builder import columns

from bough.batch import pack
from bough.credit import SlateCredit as Credit
from bough.credit import dr_grpo
from bough.engine import Engine, InjectedFault, Request, Scripted
from bough.env import InProcessHost
from bough.explore import Chains, FormatScore, Slate
from bough.reward import EnvReward
from bough.rollout import Limits, PendingAction, Rollout
from bough.train.summary import summarize
from bough.tree import Kind, Outcome, Rewarded, Ternary, Tree, TruncatedBy, counted, leaves, turns

SCORES = {"a": 2.0, "b": 1.0, "c": 0.0, "d": -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A letter is worth what `SCORES` says; nobody can say what `z` is worth."""

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        del rollout
        return SCORES.get(draft.parsed.action)


def grown(
    explorer: Slate, engine: Engine | None = None, *, length: int = 4, seed: int = 0, limits: Limits | None = None
) -> Tree:
    place = runner(
        engine or scripted(lambda chance: chance.choice("abcd")),
        InProcessHost(env=World(length=length)),
        limits=limits or Limits(),
    )
    (tree,) = grow(place, explorer, seed=seed).trees
    return tree


def rewarded(tree: Tree) -> Rewarded:
    return Rewarded(tree=tree, channels=EnvReward()([tree])[0])


def test_the_golden_case() -> None:
    expected = [0.6793, 0.194, 0.0554, 0.0554, 0.0158]
    assert Slate(quality=Letter()).chances([2.0, 1.0, 0.0, 0.0, -1.0]) == pytest.approx(expected, abs=6e-5)
    assert Slate(quality=Letter()).chances([7.0]) == [1.0]
    assert Slate(quality=Letter()).chances([3.0, 3.0]) == [0.5, 0.5]
    # The z-score hides by how much one is better.
    assert Slate(quality=Letter()).chances([1.0, 0.0]) == pytest.approx(
        Slate(quality=Letter()).chances([9.0, 0.0]), abs=1e-5
    )


@settings(max_examples=15)
@given(candidates=strategies.integers(1, 6), length=strategies.integers(1, 6))
def test_so_many_actions_and_so_few_steps(candidates: int, length: int) -> None:
    tree = grown(Slate(quality=Letter(), candidates=candidates), length=length)
    acts = tree.kind == Kind.ACTION
    assert acts.sum() == candidates * length
    assert np.sum(tree.valid != Ternary.UNKNOWN) == length
    assert len(counted(tree)) == (candidates - 1) * length + 1
    assert np.bincount(turns(tree)[acts])[1:].tolist() == [candidates] * length


def test_every_candidate_is_taught_by_what_it_was_judged() -> None:
    tree = grown(Slate(quality=Letter()), seed=3)
    (credited,) = Credit()([rewarded(tree)])
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    for place in np.unique(tree.parent[acts]):
        here = [int(node) for node in acts if tree.parent[node] == place]
        score = np.asarray([tree.rating[node] for node in here], dtype=np.float64)
        expected = (score - score.mean()) / (score.std(ddof=1) + 1e-6)
        assert [credited.advantage[tree.span[node]] for node in here] == pytest.approx(expected.tolist(), abs=2e-5)
    batch = pack([credited])
    assert len(batch.at) == tree.sampled.sum(), "all that was sampled is in the batch"


def test_the_credit_of_the_golden_case() -> None:
    said = iter("abccd")
    tree = grown(Slate(quality=Letter()), scripted(lambda _: next(said)), length=1)
    (credited,) = Credit()([rewarded(tree)])
    acts = np.flatnonzero(tree.kind == Kind.ACTION)
    found = {str(tree.info[int(node)]["text"]): credited.advantage[tree.span[node]] for node in acts}
    expected = {"a": 1.4033, "b": 0.5262, "c": -0.3508, "d": -1.2279}
    assert found == pytest.approx(expected, abs=6e-5)
    picks = {str(tree.info[int(node)]["text"]): tree.info[int(node)]["pick"] for node in acts}
    assert picks == pytest.approx({"a": 0.6793, "b": 0.194, "c": 0.0554, "d": 0.0158}, abs=6e-5)


def test_one_candidate_and_equal_ones_get_zero() -> None:
    """Defect of released code: nan."""
    for explorer, letters in ((Slate(quality=Letter(), candidates=1), "abcd"), (Slate(quality=Letter()), "a")):
        tree = grown(explorer, scripted(lambda chance, letters=letters: chance.choice(letters)))
        (credited,) = Credit()([rewarded(tree)])
        assert not credited.advantage.any()


def test_better_ones_are_taken_more_often_and_the_chance_is_written_down() -> None:
    taken, expected = 0, 0.0
    for seed in range(200):
        tree = grown(Slate(quality=Letter(), candidates=3), length=1, seed=seed)
        acts = [node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]
        best = max(float(tree.rating[node]) for node in acts)
        good = [node for node in acts if tree.rating[node] == best]
        expected += sum(float(tree.info[node]["pick"]) for node in good)  # type: ignore[arg-type]
        taken += any(tree.valid[node] != Ternary.UNKNOWN for node in good)
        assert sum(float(tree.info[node]["pick"]) for node in acts) == pytest.approx(1.0)  # type: ignore[arg-type]
    assert taken == pytest.approx(expected, abs=3.3 * np.sqrt(50))
    assert taken > 120


def test_success_is_that_of_the_path_that_was_done() -> None:
    tree = grown(Slate(quality=Letter()), scripted(lambda _: "a"))
    assert summarize([rewarded(tree)], unstarted=0, dropped={})["train/success"] == 1.0
    stubs = [leaf for leaf in leaves(tree) if tree.truncated_by[leaf] == TruncatedBy.NOT_EXECUTED]
    assert len(stubs) == 4 * 4
    assert set(tree.outcome[stubs].tolist()) == {Outcome.TRUNCATED}


LIMITS = [Limits(), Limits(tree_turns=2), Limits(tree_tokens=35), Limits(tree_calls=12), Limits(turns=2)]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: str(limits)[:60])
def test_the_order_of_arrival_does_not_show_and_budgets_hold(limits: Limits) -> None:
    plain = scripted(lambda chance: chance.choice("abcdz"))
    expected = grown(Slate(quality=Letter()), plain, limits=limits)
    assert len(counted(expected))
    acts = int((expected.kind == Kind.ACTION).sum())
    assert acts <= (limits.tree_calls or 20)
    assert expected.sampled.sum() <= (limits.tree_tokens or 1000)
    assert np.sum(expected.valid != Ternary.UNKNOWN) <= (limits.tree_turns or 4)

    @settings(max_examples=8)
    @given(chance=strategies.integers(0, 2**32 - 1).map(random.Random))
    def late(chance: random.Random) -> None:
        assert columns(grown(Slate(quality=Letter()), Late(plain, chance), limits=limits)) == columns(expected)

    late()


def test_what_nobody_can_judge_takes_no_part() -> None:
    tree = grown(Slate(quality=Letter(), candidates=8), scripted(lambda chance: chance.choice("az")))
    unknown = [node for node in np.flatnonzero(tree.kind == Kind.ACTION) if tree.info[node]["text"] == "z"]
    assert unknown
    assert np.all(np.isnan(tree.rating[unknown]))
    assert all("pick" not in tree.info[node] for node in unknown)
    assert tree.outcome[leaves(tree)].tolist().count(Outcome.OPEN) == len(unknown)


def test_faults_are_tried_again() -> None:
    def reply(request: Request) -> object:
        luck = random.Random(request.seed)
        return InjectedFault.FAULT if luck.random() < 0.3 else tuple(map(ord, luck.choice(["a", "raise"])))

    for seed in range(5):
        explorer = Slate(quality=FormatScore(), candidates=2, retries=60)
        tree = grown(explorer, Scripted(script=reply), seed=seed)  # type: ignore[arg-type]
        assert (tree.outcome == Outcome.FAILED).any()
        ends = [leaf for leaf in counted(tree) if tree.truncated_by[leaf] != TruncatedBy.NOT_EXECUTED]
        assert tree.outcome[ends].tolist() == [Outcome.TERMINATED]
    nothing = grown(
        Slate(quality=FormatScore(), candidates=2, retries=1), Scripted(script=lambda _: InjectedFault.FAULT)
    )
    assert nothing.outcome[leaves(nothing)].tolist() == [Outcome.FAILED] * 4


@pytest.mark.parametrize("length", [2, 4])
def test_truncated_sampling_has_a_fraction_of_the_variance(length: int) -> None:
    """With independent rewards of turns, centred returns have T times the variance of centred turns."""
    whole, short = [], []
    for seed in range(60):
        slate = grown(Slate(quality=Letter(), candidates=4), length=length, seed=seed)
        short += _taught(Credit(scale=False)([rewarded(slate)])[0])
        place = runner(scripted(lambda chance: chance.choice("abcd")), InProcessHost(env=World(length=length)))
        (tree,) = grow(place, Chains(n=4), seed=seed).trees
        paid = [
            SCORES[str(info["text"])] if kind == Kind.ACTION else 0.0
            for info, kind in zip(tree.info, tree.kind, strict=True)
        ]
        (credited,) = dr_grpo()([Rewarded(tree=tree, channels={"letters": np.asarray(paid)})])
        whole += _taught(credited)
    assert np.var(whole) / np.var(short) == pytest.approx(length, rel=0.2)


def _taught(credited: object) -> list[float]:
    """The advantage of each action."""
    tree: Tree = credited.tree  # type: ignore[attr-defined]
    return [float(credited.advantage[tree.span[n]]) for n in np.flatnonzero(tree.kind == Kind.ACTION)]  # type: ignore[attr-defined]


def test_what_nobody_judged_has_no_credit() -> None:
    (tree,) = grow(runner(scripted(lambda _: "a")), Chains(n=2)).trees
    assert not Credit()([rewarded(tree)])[0].advantage.any()
    assert Credit()([]) == []


@pytest.mark.parametrize("fields", [{"candidates": 0}, {"retries": -1}, {"temperature": 0.0}])
def test_ranges(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"Slate.*: got .*; need"):
        Slate(quality=Letter(), **fields)  # type: ignore[arg-type]
