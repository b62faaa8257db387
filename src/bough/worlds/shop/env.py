"""A shop as text: buy each thing on a list once, one a turn."""

import random
from dataclasses import dataclass
from functools import partial
from typing import Annotated, cast

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.env.state_value import value_of
from bough.piece import Between, piece
from bough.tree import Outcome, Task

GOODS = ("apples", "beans", "bread", "butter", "cheese", "eggs", "fish", "flour", "honey", "milk", "oil", "tea", "rice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """The things on the list, in list order, and the things in the basket, in the order of purchase."""

    wanted: tuple[str, ...]
    basket: tuple[str, ...]


@piece
class Shop:
    """A shopping list and a basket. Each thing pays an equal share of 1; the last one on the list is success.

    Any other action ends the episode: a thing not on the list, a thing already in the basket, or no thing at all.

    The content of a list decides its split, so no list of one split occurs in another.

    Attributes:
        wanted: Number of things on the list, 1 to 12 of 13.

    Raises:
        ValueError: when `wanted` is no integer, or out of its range.
    """

    wanted: Annotated[int, Between(1, len(GOODS) - 1)] = 5
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The rules."""
        return "Buy what is on the list, each thing once. Answer with one thing."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different lists of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        lists = draw_instances(
            name="Shop",
            split=split,
            count=count,
            seed=seed,
            propose=partial(_propose, wanted=self.wanted),
            content=" ".join,
            accept=bool,
        )
        return [instance_task(name="shop", content=" ".join(goods), data={"list": list(goods)}) for goods in lists]

    def start(self, task: Task) -> State:
        """Returns the state with an empty basket.

        Raises:
            ValueError: when `task.data["list"]` is not a list of different things of the shop.
        """
        found = task.data.get("list")
        goods = tuple(map(str, cast("list[object]", found))) if isinstance(found, list) else ()
        if not goods or len({*goods} & {*GOODS}) != len(goods):
            raise ValueError(f"Shop: task {task.id} got the list {found!r}; need different things out of {GOODS}")
        return _state(Purchase(wanted=goods, basket=()))

    def step(self, state: State, action: str) -> Step:
        """Buys one thing."""
        purchase = value_of(state, Purchase, "Shop")
        thing = action.strip().lower()
        if thing not in purchase.wanted or thing in purchase.basket:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=thing in GOODS)
        after = Purchase(wanted=purchase.wanted, basket=(*purchase.basket, thing))
        done = len(after.basket) == len(after.wanted)
        return Step(
            state=_state(after),
            reward=1 / len(after.wanted),
            outcome=Outcome.TERMINATED if done else Outcome.OPEN,
            success=done,
        )

    def plan(self, state: State) -> tuple[str, ...]:
        """Returns the missing things, in the order of the list."""
        purchase = value_of(state, Purchase, "Shop")
        return tuple(thing for thing in purchase.wanted if thing not in purchase.basket)


def _state(purchase: Purchase) -> State:
    text = f"list: {' '.join(purchase.wanted)}\nbasket: {' '.join(purchase.basket)}"
    return State(observation=text, key=text, value=purchase, admissible=GOODS)


def _propose(rng: random.Random, *, wanted: int) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(GOODS, wanted)))
