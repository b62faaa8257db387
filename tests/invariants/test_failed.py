"""Invariants 3 and 4: what failed is retried and counted; it moves no baseline, and nothing is learned from it."""

import random
from pathlib import Path

import numpy as np
import pytest
from tests.explore.stage import grow, runner, says

from bough.batch import pack
from bough.credit import Grpo
from bough.engine import InjectedFault, Request, Scripted
from bough.engine.scripted import Reply
from bough.env import Workers
from bough.explore import Chains
from bough.reward import EnvReward, reward_trees
from bough.rollout import Rollouts
from bough.train import NoLearningSignal
from bough.train.health import check_paths
from bough.train.summary import summarize
from bough.tree import Outcome, Source, Tree, counted, leaves, path
from bough.usercode import load_module

stage = load_module(Path(__file__).parents[1] / "explore" / "stage.py")


def check(grown: Rollouts, chains: int, faults: tuple[str, ...]) -> None:
    """Nothing that failed counts; everything that counts is as if nothing had failed."""
    credited = Grpo()(reward_trees(grown.trees, (EnvReward(),)))
    failures = 0
    for one in credited:
        tree = one.tree
        failed = [leaf for leaf in leaves(tree).tolist() if tree.outcome[leaf] == Outcome.FAILED]
        failures += len(failed)
        assert all(any(fault in str(tree.info[leaf]["fault"]) for fault in faults) for leaf in failed)
        assert len(counted(tree)) == chains, "every chain came to its end on a fresh environment"
        returns = np.array([sum(tree.env_reward[path(tree, leaf)]) for leaf in counted(tree).tolist()])
        spread = returns.std(ddof=1)
        for leaf, value in zip(counted(tree).tolist(), (returns - returns.mean()) / (spread + 1e-6), strict=True):
            for node in path(tree, leaf).tolist():
                if tree.source[node] == Source.SAMPLED:
                    np.testing.assert_allclose(one.advantage[tree.span[node] : tree.span[node + 1]], value, atol=1e-5)
        for leaf in failed:
            assert not one.advantage[tree.span[leaf] : tree.span[leaf + 1]].any()
    assert failures > 0
    told = summarize([each.rewarded for each in credited], unstarted=len(grown.unstarted), dropped={})
    assert told["paths/failed"] == failures
    assert told["train/paths"] == chains * len(grown.trees)
    assert len(pack(credited).at) == sum(_sampled_on_counted(tree) for tree in grown.trees)


def _sampled_on_counted(tree: Tree) -> int:
    nodes = {node for leaf in counted(tree).tolist() for node in path(tree, leaf).tolist()}
    return sum(int(tree.span[node + 1] - tree.span[node]) for node in nodes if tree.source[node] == Source.SAMPLED)


def sometimes(*faults: str) -> object:
    """`a` or `b`; one time in nine, a fault."""
    return says(lambda chance: chance.choice("ab") if chance.random() < 8 / 9 else chance.choice(faults))


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("die", "died"),
        ("hang", "no answer"),
        ("raise", "World.step raised KeyError"),
        ("wrong", "got 'wrong'"),
    ],
)
def test_an_environment_that_fails(fault: str, told: str) -> None:
    host = Workers(env=stage.World(), count=2, deadline_s=0.5)
    place = runner(Scripted(script=sometimes(fault)), host)  # type: ignore[arg-type]
    check(grow(place, Chains(n=4, retries=4), "x", "y", seed=5), 4, (told,))
    assert (host.replaced > 0) == (fault in ("die", "hang"))


def test_an_engine_that_fails() -> None:
    def script(request: Request) -> Reply:
        chance = random.Random(request.seed)
        if chance.random() < 1 / 6:
            return chance.choice((InjectedFault.FAULT, InjectedFault.ABORTED))
        return (ord(chance.choice("ab")),)

    grown = grow(runner(Scripted(script=script)), Chains(n=6, retries=9), "x", "y", "z")
    check(grown, 6, ("the script asked for a fault", "the engine aborted the completion"))


def test_a_chain_that_fails_for_good_is_missing_and_the_others_are_not() -> None:
    def script(request: Request) -> Reply:
        return (ord("a"),) if request.seed % 3 else InjectedFault.FAULT

    grown = grow(runner(Scripted(script=script)), Chains(n=12, retries=0))
    (tree,) = grown.trees
    assert 0 < len(counted(tree)) < 12
    (credited,) = Grpo()(reward_trees(grown.trees, (EnvReward(),)))
    assert not credited.advantage.any(), "all that count earn the same"


def test_a_batch_in_which_everything_failed() -> None:
    grown = grow(runner(Scripted(script=lambda _: InjectedFault.FAULT)), Chains(n=2, retries=1), "x", "never")
    with pytest.raises(
        NoLearningSignal, match=r"none of 5 paths came to a regular end.*The last fault: the script asked"
    ):
        check_paths(grown.trees, grown.unstarted)
