"""Demonstrations: the environment's oracle acts, and its actions become nodes of a tree, as the policy's do."""

from dataclasses import dataclass
from random import Random

from bough.env import EnvFault
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.tree import Outcome, fault_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One path of the environment's oracle, whose actions are marked `TEACHER`.

    The oracle plans before every turn, so the plan may depend on the observations. The path ends without success at a
    state where the oracle has no plan.

    Attributes:
        shortcuts: Probability in [0, 1], at each turn, of taking the last action of the plan in place of the next
            one: an answer before its lookups, or an early end. Most of these paths fail.
    """

    shortcuts: float = 0.0

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the path.

        Raises:
            EnvFault: when the environment breaks at any turn; the whole demonstration is then retried.
            ValueError: when the oracle has no plan at the start; it is then no oracle for this task.
        """
        cursor = await rollout.root()
        plan = await rollout.plan(cursor)
        if not plan:
            raise ValueError(
                f"task {rollout.builder.task.id}: got no plan from the environment; need an environment with a method "
                "`plan(state)` that solves it, or a run without a warm-up (warmup.demonstrations=0)"
            )
        rng = Random(rollout.seed("shortcuts"))
        while isinstance(cursor, Cursor) and plan:
            ahead = plan[-1:] if rng.random() < self.shortcuts else plan
            cursor = await rollout.advance(cursor, action=ahead[0], ahead=ahead)
            if isinstance(cursor, Cursor):
                plan = await rollout.plan(cursor)
        if cursor is Outcome.FAILED:
            raise EnvFault(fault_in(rollout.builder.nodes[-1].info) or "")
