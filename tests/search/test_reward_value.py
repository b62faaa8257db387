"""A learned reward in searches: best of n by its steps, a beam by its values, ratings, and Tree-PLV's trees."""

import asyncio
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.explore.stage import runner
from tests.search.game import Game, answer, search
from tests.trees import rewarded

from bough.critics import RewardModel
from bough.critics.reward_model.labels import steps_of
from bough.critics.reward_model.train import train_on
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.rollout import Explorer
from bough.search import (
    Best,
    BestOf,
    RatedValue,
    RewardModelRating,
    RewardModelValue,
    RolloutValue,
    Sample,
    Search,
    SearchNode,
    SearchTree,
)
from bough.search.reward_value import step_texts
from bough.searches.beam import beam
from bough.searches.best_of_n import best_of_n
from bough.searches.prorag import prorag
from bough.searches.tree_plv import tree_plv
from bough.tree import PathScore, Task, Tree, path_view

GAME = Game(depth=2, pays={"aa": 1.0, "ab": 0.0, "ba": 0.0, "bb": 0.0})
MODEL = RewardModel(layers=1, width=16, heads=2, context_tokens=64, epochs=30, batch=8, learning_rate=1e-2)


def grow(how: Explorer, letters: str, *, tasks: int = 1) -> list[Tree]:
    """Trees of the game in which the policy writes the letters in turn, again and again."""
    count = iter(range(10**6))
    engine = Scripted(script=lambda _: (ord(letters[next(count) % len(letters)]),))
    place = replace(runner(engine, InProcessHost(env=GAME)), max_concurrent=1)
    return list(asyncio.run(place.run(how, [Task(id=f"t{at}") for at in range(tasks)], seed=0)).trees)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A reward model of the game's steps, from trees of Tree-PLV."""
    trees = grow(tree_plv(width=4, completions=4), "aabbabba", tasks=4)
    place = tmp_path_factory.mktemp("prm")
    decode = runner(Scripted(script=lambda _: ()), InProcessHost(env=GAME)).agent.renderer.text
    train_on(trees, MODEL, decode=decode, vocab_tokens=256).save(place)
    return str(place)


def test_tree_plv_labels_a_step_by_its_look_ahead_completions() -> None:
    (tree,) = grow(tree_plv(width=4, completions=4), "aabbabba")
    steps = steps_of([tree], replace(MODEL, labels="pairs", estimate="score", gap=0.2))
    view = path_view([rewarded(tree)])
    first = {str(tree.info[node]["text"]) for node in view.node[view.turn == 0].tolist()}
    assert {"a", "b"} <= first
    known = [(text, label) for text, label in zip(steps.text, steps.label.tolist(), strict=True) if label == label]
    shortest = min(len(text) for text, _ in known)
    root = {chr(max(text[-2:])): label for text, label in known if len(text) == shortest}
    assert root.keys() == {"a", "b"}
    assert root["a"] > root["b"] == 0
    assert len(steps.better)


def test_only_the_best_step_is_expanded() -> None:
    """Below `b`, which never succeeds, there are completions but no node of the search with a value."""
    (tree,) = grow(tree_plv(width=4, completions=4), "aabbabba")
    view = path_view([rewarded(tree)])
    texts = {}
    for path in range(view.paths):
        nodes = view.node[view.start[path] : view.start[path + 1]].tolist()
        texts["".join(str(tree.info[node]["text"]) for node in nodes)] = [tree.visits[node] > 0 for node in nodes]
    assert texts["aa"] == [True, True]
    assert texts["ba"] == texts["bb"] == [True, False]


@pytest.mark.parametrize("by", ["mean", "min", "last", "product"])
def test_best_of_n_takes_the_path_of_the_best_steps(folder: str, by: PathScore) -> None:
    how = best_of_n(folder, n=4, by=by, max_concurrent=1)
    (tree,) = grow(how, "bbabaaba")  # bb, ab, aa, ba
    assert answer(tree) == ["a", "a"]
    assert isinstance(how.judge, RewardModelValue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """A judge that keeps the texts of the steps of each completion."""

    seen: list[list[str]]

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        assert node.draft is not None
        decode = tree.rollout.writer().agent.renderer.text
        self.seen.append([decode(text.tolist()) for text in step_texts(tree, node.draft)])
        return 0.0


def test_every_step_of_a_completion_is_scored() -> None:
    """A completion is one node of the search; its steps are in the tree that the rollout builds."""
    judge = Texts(seen=[])
    grow(BestOf(n=1, judge=judge), "ba")
    ((first, second),) = judge.seen
    assert first.endswith("b")
    assert second.startswith(first)
    assert second.endswith("a")


def test_a_beam_and_a_rating_follow_the_model(folder: str) -> None:
    searched = replace(beam(width=1, samples=4), evaluate=RewardModelValue(folder=folder), success_value=None)
    (tree,) = grow(searched, "baba")
    assert answer(tree) == ["a", "a"]
    rated = Search(
        select=Best(by=RatedValue()), expand=Sample(width=2), rate=RewardModelRating(folder=folder), rounds=3
    )
    (tree,) = grow(rated, "ba")
    ratings = {str(tree.info[node]["text"]): tree.rating[node] for node in np.flatnonzero(~np.isnan(tree.rating))}
    assert ratings["a"] > ratings["b"]


def test_a_missing_folder_is_explained() -> None:
    with pytest.raises(FileNotFoundError, match="need one that `bough train-reward RUN --out nowhere` writes"):
        grow(best_of_n("nowhere"), "ab")


@pytest.mark.parametrize(("c", "visits"), [(2.5, {"a": 2, "b": 0}), (10.0, {"a": 1, "b": 1})])
def test_prorag_discounts_success_by_turn_and_tries_other_steps_by_the_weight_of_the_prior(
    c: float, visits: dict[str, int]
) -> None:
    """Completed with success, `a` has the value 1. Then 1 + .884 and 1.768 for `a` and `b`, or 4.54 and 7.07."""
    letters = iter("abab" + 20 * "a")
    engine = Scripted(script=lambda _: (ord(next(letters)),))
    known, _ = search(prorag(simulations=3, width=2, c=c), GAME, engine=engine)
    assert {child.action: child.visits for child in known.root.children} == visits
    assert known.root.children[0].q == pytest.approx((1 + 0.99) / 2 if visits["a"] == 2 else 1.0)


def test_prorag_values_siblings() -> None:
    how = prorag(simulations=12, width=2)
    assert isinstance(how, Search)
    assert isinstance(how.evaluate, RolloutValue)
    (tree,) = grow(how, "abba")
    steps = steps_of([tree], replace(MODEL, labels="pairs", estimate="value", gap=0.1))
    assert len(steps.better)
    assert 0 < np.nanmax(steps.label) <= 1
