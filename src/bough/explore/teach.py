"""The next actions of a teacher: the environment's oracle, or the model of a role."""

from collections.abc import Sequence

from bough.needs import ORACLE, Need, roles
from bough.rollout.cursor import Cursor
from bough.rollout.role_action import role_action
from bough.rollout.rollout import Rollout
from bough.tree import AgentAction


def teacher_needs(teacher: str) -> frozenset[Need]:
    """A model for the role of a teacher; an oracle for the role ""."""
    return roles(teacher) if teacher else frozenset({ORACLE})


async def teach(rollout: Rollout, cursor: Cursor, teacher: str) -> Sequence[AgentAction] | None:
    """A teacher's next actions: the oracle's plan, or one action of a model; None without any.

    Args:
        rollout: The rollout.
        cursor: The state.
        teacher: The role of the model; "" for the oracle.

    Raises:
        BudgetExceeded: when it does not fit a budget of the tree.
        EnvFault, EngineFault: when the oracle or the engine broke.
    """
    return [await role_action(rollout, cursor, teacher)] if teacher else await rollout.plan(cursor)
