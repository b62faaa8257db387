"""The states that a rollout steps: an environment that cannot branch starts again for each path from the root."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from bough.env import Branching, EnvFault, Host, State
from bough.rollout.cursor import Cursor
from bough.tree import AgentAction, Task

Result = TypeVar("Result")


class EnvCall(Protocol):
    """Awaits a call of the environment, with its deadline."""

    def __call__(self, awaitable: Awaitable[Result], call: str, branches: tuple[int, ...]) -> Awaitable[Result]:
        """Raises `EnvFault` when the environment does."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class States:
    """The states of one tree.

    With branching `NONE` a state can be stepped once, because the environment changes it in place. So each further path
    from the state of the agent's first turn starts the task again, and replays the actions before that turn.

    Attributes:
        host: Runs the environment.
        task: The task of the tree.
        call: Awaits a call of the environment.
        root: The node of the agent's first turn; None before it.
        first_actions: The actions before the agent's first turn.
        stepped: The nodes whose states were stepped.
    """

    host: Host
    task: Task
    call: EnvCall
    root: int | None = None
    first_actions: list[AgentAction] = field(default_factory=list[AgentAction])
    stepped: set[int] = field(default_factory=set[int])

    def steps(self, cursor: Cursor) -> int:
        """Maximum number of environment steps of a turn."""
        replays = self.host.branching is Branching.REPLAY or self._is_used(cursor)
        return 1 + (cursor.actions if replays else 0)

    async def take(self, cursor: Cursor, action: AgentAction) -> tuple[State, int]:
        """The state in which an action is executed, and the number of replayed steps that lead to it.

        Raises:
            EnvFault: when the state was changed by another path, or a new start differs from the first one.
        """
        if self.root is None:
            self.first_actions.append(action)
        return await self.own(cursor)

    async def own(self, cursor: Cursor) -> tuple[State, int]:
        """A cursor's state for one child, and the number of replayed steps that lead to it.

        Raises:
            EnvFault: see `take`.
        """
        if not self._is_used(cursor):
            self.stepped.add(cursor.node)
            return cursor.state, 0
        if cursor.node != self.root:
            raise EnvFault(
                f"a second action in a state after {cursor.actions} actions: got an environment of branching NONE, "
                "which changed that state; need Replay(env=...), or an explorer whose paths part at the start: Chains()"
            )
        state = await self.call(self.host.start(self.task), "start", cursor.branches)
        for each in self.first_actions:
            state = (await self.call(self.host.step(state, each), "step", cursor.branches)).state
        first = cursor.state
        if (state.observation, state.key) != (first.observation, first.key):
            raise EnvFault(
                f"a new start of task {self.task.id}: got {state.observation!r} (key {state.key!r}); need "
                f"{first.observation!r} (key {first.key!r}) as before. Draw from the task's seed alone"
            )
        return state, len(self.first_actions)

    def _is_used(self, cursor: Cursor) -> bool:
        return self.host.branching is Branching.NONE and cursor.node in self.stepped
