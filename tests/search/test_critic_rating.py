"""Ratings by a critic: all actions of a state in one pass."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from tests.explore.stage import runner
from tests.search.game import Game

from bough.critics import ValueHead
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.learner.state_values import StateValues
from bough.policy import Tiny
from bough.rollout import Limits
from bough.search import CriticRating
from bough.searches.q_star import q_star
from bough.tree import Kind, Task

GAME = Game(depth=3, letters="abcd", pays={"dcb": 1.0})


def test_one_pass_rates_all_actions_of_a_state() -> None:
    """A pass for each state at which actions were rated, and its values are those of a critic asked one by one."""
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=300, context_tokens=64, dtype="float64").build(["a b"])
    critic = ValueHead().build(16).double()
    torch.nn.init.normal_(critic.linear.weight)
    passes, hidden = list[int](), policy.hidden

    def counted(tokens: torch.Tensor, *rest: object) -> torch.Tensor:
        passes.append(len(tokens))
        return hidden(tokens, *rest)  # type: ignore[arg-type]

    policy.hidden = counted  # type: ignore[method-assign]
    values = StateValues(policy, critic, micro_tokens=1000, alone=True)
    texts: list[Sequence[tuple[int, ...]]] = []

    async def noted(some: Sequence[tuple[int, ...]]) -> Sequence[float]:
        texts.append(some)
        return await values(some)

    place = runner(Scripted(script=lambda _: ()), InProcessHost(env=GAME), limits=Limits(turns=3))
    place = replace(place, agent=replace(place.agent, critic=noted))
    search = replace(q_star(), rate=CriticRating(), rounds=4)
    (tree,) = asyncio.run(place.run(search, [Task(id="t")], seed=0)).trees
    assert len(passes) == len(texts) == tree.counts.calls >= 3
    assert [len(some) for some in texts] == [4] * len(texts)
    shared = len(texts[0][0]) - 1
    assert passes[0] == shared + 4, "the state is read once"
    alone = [asyncio.run(values([text]))[0] for some in texts for text in some]
    rated = tree.rating[tree.kind == Kind.ACTION]
    assert sorted(rated.tolist()) == pytest.approx(sorted(alone))


def test_a_critic_that_knows_the_turns_is_followed() -> None:
    """Values .9 ^ (turns left) of actions: only the shortest path is executed, and one call is made for a state."""

    async def knows(texts: Sequence[tuple[int, ...]]) -> list[float]:
        words = ["".join(chr(each) for each in text) for text in texts]
        done = [word.rsplit("{", 1)[1].replace("}", "").replace(".", "") for word in words]
        return [0.9 ** (3 - len(each)) if "dcb".startswith(each) else 0.0 for each in done]

    place = runner(Scripted(script=lambda _: ()), InProcessHost(env=GAME), limits=Limits(turns=3))
    place = replace(place, agent=replace(place.agent, critic=knows))
    (tree,) = asyncio.run(place.run(q_star(), [Task(id="t")], seed=0)).trees
    assert (tree.counts.turns, tree.counts.calls) == (3, 3)
    first = [float(tree.rating[node]) for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION][:4]
    assert first == pytest.approx([-65.563, -65.563, -65.563, -2], abs=0.01)


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"CriticRating.discount: got 1; need a number above 0 and below 1"):
        CriticRating(discount=1)
