"""Chains, and rounds of forks of each chain's own tree; a chain is forked while others still grow."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from bough.rollout.budget import Usage
from bough.rollout.cursor import Cursor, PendingAction
from bough.rollout.rollout import Rollout
from bough.rollout.together import together

Found = TypeVar("Found")

Positions: TypeAlias = Callable[[int, int, Sequence[Found]], Sequence[Cursor | PendingAction]]
"""Selects where a chain's tree forks, from its index, the number of the round, and what its paths found so far."""

PathFrom: TypeAlias = Callable[[Cursor | PendingAction, int], Awaitable[Sequence[Found]]]
"""Samples the path of a number from a position to its end; returns what it found."""


async def grow_chain_trees(
    rollout: Rollout,
    root: Cursor,
    *,
    chains: int,
    forks: int,
    rounds: int,
    attempts: int,
    positions: Positions[Found],
    path: PathFrom[Found],
) -> None:
    """Sample `chains` chains, and in each round `forks` paths from positions in the tree of each chain.

    A round of a chain begins when the paths of its tree have ended, whatever the other chains do. Under a budget of the
    tree the order is that of the rounds. When it is spent, no more rounds begin.

    Args:
        rollout: The rollout.
        root: Where the chains start.
        chains: Number of chains; they are the paths 0 to `chains` - 1.
        forks: Number of paths of a chain in a round; the paths of round r are numbered after those before, by chain.
        rounds: Number of rounds.
        attempts: How often a path may be sampled, where it fails.
        positions: Selects `forks` positions.
        path: Samples a path.
    """
    count = chains * (1 + forks * rounds)
    found = [asyncio.get_running_loop().create_future() for _ in range(count)]
    selected: dict[tuple[int, int], Sequence[Cursor | PendingAction]] = {}
    begun = set[int]()
    turn = Usage(turns=1, tokens=rollout.sampling.max_tokens, calls=1)

    async def start(number: int) -> Cursor | PendingAction | None:
        if number < chains:
            return root
        round_number, rest = divmod(number - chains, chains * forks)
        chain, place = divmod(rest, forks)
        first = [chains + (earlier * chains + chain) * forks for earlier in range(round_number)]
        tree = [chain, *(begin + fork for begin in first for fork in range(forks))]
        known = [each for one in tree for each in await found[one]]
        if await rollout.budget.fits(turn):
            begun.add(round_number)
        elif round_number not in begun:
            return None
        if (chain, round_number) not in selected:
            selected[chain, round_number] = positions(chain, round_number, known)
        return selected[chain, round_number][place]

    async def grow(number: int) -> None:
        at = await start(number)
        found[number].set_result([] if at is None else await path(at, number))

    most = [rollout.max_cost(root, attempts=attempts)] * count
    await together(rollout, (grow(number) for number in range(count)), most)
