"""Every reward declares what it pays, and a random policy is paid within it on real worlds."""

import asyncio
import inspect
import random
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache

import numpy as np
import pytest
from tests.explore.stage import runner, scripted
from tests.trees import dressed

from bough import hooks, reward
from bough.env import Env, InProcessHost
from bough.explore import Chains
from bough.hooks import HookRecipe
from bough.hooks.hook import HookSetup, PolicyAccess
from bough.needs import needs_of
from bough.screen import pointing_in
from bough.tree import Floats, HasRewardRanges, Rewarded, RewardRange, Tree, path_view
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.screens import Screens

REWARDS = {
    name: piece
    for name in reward.__all__
    if inspect.isclass(piece := getattr(reward, name))
    and is_dataclass(piece)
    # Stages are parts of a reward.
    and piece.__module__ != "bough.reward.stages"
}
HOOKS = {
    name: piece
    for name in hooks.__all__
    if is_dataclass(piece := getattr(hooks, name)) and isinstance(piece, HookRecipe)
}


@cache
def grown() -> tuple[Tree, ...]:
    """Random moves on a lake; random clicks, boxes and words on screens."""
    lake = FrozenLake(size=3, max_steps=6)
    return (
        *played(lake, lambda rng: rng.choice(("up", "down", "left", "right", "jump"))),
        *played(Screens(), click),
    )


def played(env: Env, choose: Callable[[random.Random], str]) -> list[Tree]:
    place = runner(scripted(choose), InProcessHost(env=env), max_tokens=32)

    async def main() -> list[Tree]:
        try:
            rollouts = await place.run(Chains(n=8), env.tasks("test", 3, 0), seed=0)
            return list(rollouts.trees)
        finally:
            await place.host.close()

    return asyncio.run(main())


def click(rng: random.Random) -> str:
    numbers = [rng.randrange(0, 400) for _ in range(4)]
    points = " ".join(map(str, numbers))
    return rng.choice([f"click {numbers[0]} {numbers[1]}", f"box {points}", f"points {points}", "back", "hm"])


def ready(needs: object) -> list[Rewarded]:
    """The trees with random columns and annotations for a piece."""
    rng = np.random.default_rng(0)
    return [dressed(tree, rng, needs_of(needs)) for tree in grown()]


def check(channels: dict[str, Floats], tree: Tree, piece: object) -> None:
    """Every path or turn is paid within the declared range."""
    assert isinstance(piece, HasRewardRanges), f"{type(piece).__name__}: declare `reward_ranges` of its channels"
    for name, column in channels.items():
        declared = piece.reward_ranges[name]
        view = path_view([Rewarded(tree=tree, channels={name: column})])
        paid = view.returns if declared.per == "path" else view.reward
        assert ((paid >= declared.low - 1e-9) & (paid <= declared.high + 1e-9)).all(), (name, str(declared), paid)


@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_pays_what_it_declares(name: str) -> None:
    piece = REWARDS[name]()
    trees = [each.tree for each in ready(piece)]
    for tree, channels in zip(trees, piece(trees), strict=True):
        check(dict(channels), tree, piece)
        assert isinstance(piece, HasRewardRanges)
        assert set(channels) == set(piece.reward_ranges)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_pays_what_it_declares(name: str) -> None:
    recipe: HookRecipe = HOOKS[name]()
    given = ready(recipe)
    if isinstance(recipe, hooks.ImplicitReward):
        # It pays by a copy of a policy.
        return
    access = PolicyAccess(
        attention=lambda texts: [np.ones((len(each), len(each)), dtype=np.float32) for each in texts],
        text=lambda tokens: "".join(map(chr, tokens)),
    )
    state = recipe.build(HookSetup(vocab_tokens=300, policy=access))
    for _ in range(2):
        for before, after in zip(given, state.transform(given, 0), strict=False):
            added = {key: value for key, value in after.channels.items() if key not in before.channels}
            if added:
                check(added, after.tree, recipe)


def test_ranges_have_some_use() -> None:
    """Not every piece may say "any number": the bounded ones are as narrow as what is paid."""
    assert RewardRange.of(0, 2, weight=-0.5) == RewardRange(low=-1, high=0)
    assert RewardRange.of(-np.inf, 1, weight=0) == RewardRange(low=0, high=0)
    screens = [info for tree in grown() for info in tree.info if pointing_in(info) is not None]
    assert any(pointing_in(info).points for info in screens), "a click of the random policy has a point"  # type: ignore[union-attr]
    bounded = [name for name, piece in REWARDS.items() if "any number" not in map(str, piece().reward_ranges.values())]
    assert {"BoxScore", "Format", "InvalidAction", "PointInBox", "RankedPoints", "Success"} <= set(bounded)
    with pytest.raises(ValueError, match=r"RewardRange: got low=1, high=0; need low <= high"):
        RewardRange(low=1, high=0)
