"""Several subgoals in each state, each tried by the executor."""

import random
from typing import Annotated, ClassVar

from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy


@piece
class Subgoals:
    """Experimental: Hi-Agent's exploration (arXiv 2510.14388): `width` subgoals per state, tried `tries` times each.

    In a state in which the seat `seat` acts, it writes `width` subgoals. The other seats act on each of them `tries`
    times, up to the next state of the seat. From one of the states reached, drawn at random, the path goes on; the
    other branches end there, truncated by `NOT_EXECUTED`, or with `to_end` each goes on as a path of its own. Two
    subgoals, two tries, an executor of three turns:

        planner g1   executor a a a | a a a      planner g2   executor a a a | a a a      one of four goes on

    An episode of S subgoals has width * S subgoals, where a full tree has width^S. `ForkReward` compares the subgoals
    of a state by what their tries earn, and the tries of a subgoal with each other. In an environment for one agent
    each action is a subgoal that is tried by itself.

    Written from the abstract; which state the paper goes on from, and whether a subgoal has several tries, is not
    known.

    Attributes:
        width: Subgoals of a state, G in the paper.
        tries: Attempts of the other seats at a subgoal.
        n: Number of paths that go on to the end.
        to_end: Whether the other branches go on to the end, too.
        seat: The seat that sets subgoals.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    width: Annotated[int, AtLeast(1)] = 4
    tries: Annotated[int, AtLeast(1)] = 2
    n: Annotated[int, AtLeast(1)] = 1
    to_end: bool = False
    seat: str = "planner"

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        await together(rollout, [self._path(rollout, root, number * self.width) for number in range(self.n)])

    async def _path(self, rollout: Rollout, cursor: Cursor, first: int) -> None:
        """A path from a state; the branches there begin at number `first`."""
        here: Cursor | None = cursor
        while here is not None:
            calls = [self._subgoal(rollout, here, first + number) for number in range(self.width)]
            most = [rollout.max_cost(here, attempts=1 + self.tries)] * self.width
            reached = [each for some in await together(rollout, calls, most) for each in some]
            rng = random.Random(rollout.seed("subgoal", first, *here.branches))
            here = rng.choice(reached) if reached else None
            rest = [each for each in reached if each is not here]
            if self.to_end:
                await together(rollout, [rollout.roll_out(each) for each in rest], [*map(rollout.max_cost, rest)])
            else:
                for each in rest:
                    rollout.stop(each, TruncatedBy.NOT_EXECUTED)
            first = 0

    async def _subgoal(self, rollout: Rollout, cursor: Cursor, branch: int) -> list[Cursor]:
        """The states of the seat that are reached from a subgoal; those of paths that ended are left out."""
        after = await rollout.advance(cursor, branch=branch)
        if not isinstance(after, Cursor):
            return []
        if self._decides(after):
            return [after]
        calls = [self._try(rollout, after, number) for number in range(self.tries)]
        ends = await together(rollout, calls, [rollout.max_cost(after)] * self.tries)
        return [each for each in ends if isinstance(each, Cursor)]

    async def _try(self, rollout: Rollout, cursor: Cursor, branch: int) -> Cursor | Outcome:
        """The next state of the seat, or the outcome of the path."""
        after = await rollout.advance(cursor, branch=branch)
        while isinstance(after, Cursor) and not self._decides(after):
            after = await rollout.advance(after)
        return after

    def _decides(self, cursor: Cursor) -> bool:
        """Whether the seat that sets subgoals acts; the only one, in an environment for one agent."""
        return cursor.state.seat in (self.seat, "")
