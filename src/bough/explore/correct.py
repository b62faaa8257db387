"""Failures, put right from their first wrong step on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from bough.env import EnvFault
from bough.rollout.attempt import Attempt, insist
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome
from bough.tree.needs import FORKS, ORACLE, Need


@runtime_checkable
class Blame(Protocol):
    """Finds the step that spoiled a path: a frozen dataclass."""

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """Which action of a path that did not solve its task was the first wrong one, 0 for its first; None if none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOracleMistake:
    """The first action that was invalid, or after which the oracle knows no way; needs an oracle.

    If there is always a way, the last action is to blame: it led to the end without success. It asks the oracle once
    for each turn, at most.

    Attributes:
        invalid: Whether an invalid action is wrong. Where it only costs a turn, it may not be.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE})

    invalid: bool = True

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """The number of the step."""
        for step, action in enumerate(lost.actions):
            if self.invalid and rollout.builder.nodes[action].info.get("valid") is False:
                return step
            if step + 1 == len(lost.places) or await rollout.plan(lost.places[step + 1]) is None:
                return step
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Correct:
    """Experimental: SCOPE (arXiv 2602.24110): failures are put right from the first wrong step; needs an oracle.

    `n` chains are played. Of up to `most` of those that fail, in order, what came before the first wrong step is kept,
    and the environment's oracle goes on from there to the end, as a branch:

        a b c X d    failed, X is the first wrong step    ->    a b c t t

    The oracle's actions are marked `TEACHER`. The group is mixed: with a rule that compares paths, what led to the
    wrong step and away from it is praised for the branch that succeeds, and the rest of the failure is blamed. The
    oracle's actions have no log-probabilities; losses over samples leave them alone, and
    `demonstrations.from_trees=true` imitates them, with an objective such as `SftMix`. Two failures that are wrong in
    one place are put right once.

    Written from the abstract: a process reward model finds the step there, a stronger model goes on, and how the two
    kinds of tokens are weighed was not seen.

    Attributes:
        n: Chains.
        most: Failures that are put right.
        blame: Finds the first wrong step.
        retries: How often a chain that fails by a fault is tried again.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS, ORACLE})

    n: int = 8
    most: int = 2
    blame: Blame = FirstOracleMistake()
    retries: int = 2

    def __post_init__(self) -> None:
        if self.n < 1 or self.most < 0 or self.retries < 0:
            raise ValueError(
                f"Correct: got n={self.n}, most={self.most}, retries={self.retries}; need n >= 1 and the others >= 0"
            )

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        calls = [insist(rollout, root, number=number, step=self.n, retries=self.retries) for number in range(self.n)]
        lost = [each for each in await together(rollout, calls) if each is not None and each.lost]
        places = await self._places(rollout, lost)
        await together(rollout, [self._go_on(rollout, place) for place in places])

    async def _places(self, rollout: Rollout, lost: Sequence[Attempt]) -> list[Cursor]:
        """Where the oracle goes on, each once."""
        found: dict[int, Cursor] = {}
        for each in lost:
            if len(found) >= self.most:
                break
            try:
                step = await self.blame(rollout, each)
            except EnvFault:
                continue
            if step is not None:
                found.setdefault(each.places[step].node, each.places[step])
        return list(found.values())

    async def _go_on(self, rollout: Rollout, place: Cursor) -> None:
        """Let the oracle play to the end, or to where it knows no way."""
        for again in range(self.retries + 1):
            branch, here = self.n * (self.retries + 1) + again, place
            while isinstance(here, Cursor):
                try:
                    plan = await rollout.plan(here)
                except EnvFault:
                    plan = None
                if not plan:
                    return rollout.stop(here, "no way")
                here, branch = await rollout.advance(here, branch=branch, action=plan[0], ahead=plan), 0
            if here is not Outcome.FAILED:
                return None
        return None
