"""Values while trees grow are those that the learner sees."""

import asyncio

import numpy as np
import pytest
import torch

from bough.critics import ValueHead
from bough.learner.state_values import StateValues
from bough.policy import Tiny
from bough.policy.model import causal


async def _one(valuer: StateValues, place: tuple[int, ...]) -> float:
    (value,) = await valuer([place])
    return value


def test_values_do_not_depend_on_what_else_is_asked() -> None:
    policy = Tiny(layers=2, width=16, heads=2, vocab_tokens=260, context_tokens=64, dtype="float64").build(["a b"])
    critic = ValueHead(heads=("worth", "other")).build(16).double()
    torch.nn.init.normal_(critic.linear.weight)
    rng = np.random.default_rng(0)
    places = [tuple(rng.integers(0, 40, size).tolist()) for size in (1, 7, 3, 7, 30, 12)]
    looks: list[int] = []
    hidden = policy.hidden

    def counted(*arguments: object) -> torch.Tensor:
        looks.append(1)
        return hidden(*arguments)  # type: ignore[arg-type]

    async def ask(valuer: StateValues) -> list[float]:
        return list(await asyncio.gather(*(_one(valuer, place) for place in places)))

    expected: list[float] = []
    for place in places:
        tokens = torch.tensor(place)
        seen = hidden(tokens, torch.arange(len(place)), causal)
        expected.append(float(critic(seen)["worth"][-1].detach()))
    policy.hidden = counted  # type: ignore[method-assign]
    for most, alone, passes in ((1000, False, 1), (20, False, 4), (1000, True, 6), (5, False, 15)):
        looks.clear()
        assert asyncio.run(ask(StateValues(policy, critic, micro_tokens=most, alone=alone))) == pytest.approx(expected)
        assert len(looks) == passes, (most, alone)


def test_a_fault_reaches_everybody_who_asked() -> None:
    policy = Tiny(layers=1, width=16, heads=2, vocab_tokens=260, context_tokens=8).build(["a b"])
    valuer = StateValues(policy, ValueHead().build(16), micro_tokens=100)

    async def main() -> list[object]:
        return list(await asyncio.gather(valuer([(10**6,)]), valuer([(1, 2)]), return_exceptions=True))

    assert all(isinstance(answer, Exception) for answer in asyncio.run(main()))
