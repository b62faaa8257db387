"""The base class of wrappers: it forwards to the inner environment what a wrapper does not change."""

from collections.abc import Sequence

from bough.env.env import Branching, Closable, Env, Oracle, Split, State, env_gives
from bough.needs import ORACLE, Need
from bough.piece import piece
from bough.tree import AgentAction, Task


@piece
class Wrapper:
    """An environment around another one; branching, instructions, tasks, oracle and `close` are the inner one's.

    Attributes:
        env: The inner environment.
    """

    env: Env

    @property
    def branching(self) -> Branching:
        """The inner environment's `branching`."""
        return self.env.branching

    @property
    def instructions(self) -> str:
        """The inner environment's instructions."""
        return self.env.instructions

    @property
    def gives(self) -> frozenset[Need]:
        """`ORACLE`, when the inner environment gives it."""
        return env_gives(self.env) & {ORACLE}

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:
        """Returns `count` tasks of the inner environment."""
        return list(self.env.tasks(split, count, seed))

    def close(self) -> None:
        """Closes the inner environment, when it is `Closable`."""
        if isinstance(self.env, Closable):
            self.env.close()

    def inner_plan(self, inner: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's plan for an inner state; None without a plan or without an oracle."""
        return self.env.plan(inner) if isinstance(self.env, Oracle) else None
