"""Failed paths, corrected from their first wrong step on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from bough.engine import EngineFault
from bough.env import EnvFault
from bough.explore.teach import teach, teacher_needs
from bough.needs import FORKS, ORACLE, Need
from bough.piece import AtLeast, piece
from bough.rollout.attempt import Attempt, attempt_with_retries
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy


@runtime_checkable
class Blame(Protocol):
    """Finds the first wrong step of a path: a frozen dataclass."""

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """Index of the first wrong action of a path that did not solve its task, from 0; None without one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOracleMistake:
    """The first action that was invalid, or after which the oracle has no plan; needs an oracle.

    If the oracle always has a plan, the last action is the wrong one: it led to the end without success. The oracle is
    called at most once per turn.

    Attributes:
        invalid: Whether an invalid action is wrong. Where it only costs a turn, it may not be.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE})

    invalid: bool = True

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """The index of the step."""
        for step, action in enumerate(lost.actions):
            if self.invalid and rollout.builder.nodes[action].valid is False:
                return step
            if step + 1 == len(lost.cursors) or await rollout.plan(lost.cursors[step + 1]) is None:
                return step
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstInvalid:
    """The first invalid action; without one the last action, which led to the end without success."""

    async def __call__(self, rollout: Rollout, lost: Attempt) -> int | None:
        """The index of the step."""
        valid = [rollout.builder.nodes[action].valid for action in lost.actions]
        return valid.index(False) if False in valid else len(valid) - 1 if valid else None


@piece
class Correct:
    """Experimental: SCOPE (arXiv 2602.24110): a teacher corrects failures from the first wrong step.

    `n` chains are sampled. Up to `max_corrected` of the failed ones are corrected, in order. The part before the first
    wrong step is kept, and the teacher continues from there to the end, as a branch. The teacher is the environment's
    oracle, or the model of a role:

        a b c X d    failed, X is the first wrong step    ->    a b c t t

    The teacher's actions are marked `TEACHER`. The group is mixed. With an advantage rule that compares paths, the
    steps up to the branch get credit for the branch that succeeds. The rest of the failure gets a negative advantage.
    The teacher's actions have no log-probabilities, so losses over samples skip them; `demonstrations.from_trees=true`
    imitates them, with an objective such as `SftMix`. Two failures with the same wrong state are corrected once.

    Written from the abstract: there a process reward model finds the step (`blame=FirstPoorAction(...)`) and a stronger
    model continues (`teacher="teacher"`).

    Attributes:
        n: Number of chains.
        max_corrected: Maximum number of corrected failures.
        blame: Finds the first wrong step.
        teacher: The role whose model continues; "" for the oracle.
        retries: How often a chain that fails by a fault is retried.
    """

    n: Annotated[int, AtLeast(1)] = 8
    max_corrected: Annotated[int, AtLeast(0)] = 2
    blame: Blame = FirstOracleMistake()
    teacher: str = ""
    retries: Annotated[int, AtLeast(0)] = 2

    @property
    def needs(self) -> frozenset[Need]:
        """Forks, and the teacher."""
        return frozenset({FORKS}) | teacher_needs(self.teacher)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        calls = [
            attempt_with_retries(rollout, root, number=number, step=self.n, retries=self.retries)
            for number in range(self.n)
        ]
        most = [rollout.max_cost(root, attempts=self.retries + 1)] * self.n
        lost = [each for each in await together(rollout, calls, most) if each is not None and each.unsolved]
        places = await self._places(rollout, lost)
        # A teacher's action costs at most what the policy's does.
        most = [rollout.max_cost(cursor, attempts=self.retries + 1) for cursor in places]
        await together(rollout, [self._continue(rollout, cursor) for cursor in places], most)

    async def _places(self, rollout: Rollout, lost: Sequence[Attempt]) -> list[Cursor]:
        """The cursors from which the teacher continues, each once."""
        found: dict[int, Cursor] = {}
        for each in lost:
            if len(found) >= self.max_corrected:
                break
            try:
                step = await self.blame(rollout, each)
            except EnvFault:
                continue
            if step is not None:
                found.setdefault(each.cursors[step].node, each.cursors[step])
        return list(found.values())

    async def _continue(self, rollout: Rollout, cursor: Cursor) -> None:
        """Execute the teacher's actions to the end, or to a state in which it has none."""
        for again in range(self.retries + 1):
            branch, here = self.n * (self.retries + 1) + again, cursor
            while isinstance(here, Cursor):
                try:
                    plan = await teach(rollout, here, self.teacher)
                except BudgetExceeded as short:
                    return rollout.stop(here, short.budget)
                except (EnvFault, EngineFault):
                    plan = None
                if not plan:
                    return rollout.stop(here, TruncatedBy.NO_PLAN)
                here, branch = await rollout.advance(here, branch=branch, action=plan[0], ahead=plan), 0
            if here is not Outcome.FAILED:
                return None
        return None
