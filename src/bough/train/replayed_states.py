"""The environment's states along a grown tree, by replaying its actions."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bough.env import EnvFault, Host, State
from bough.rollout import Deadlines
from bough.rollout.builder import hash_key
from bough.tree import AgentAction, Kind, Tree, action_in, text_in, turn_start

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedStates:
    """Replays the actions of trees.

    Attributes:
        host: Runs the environment.
        calls: Whether actions are `Action`s with calls, rather than texts.
        deadlines: The run's register of pending awaits.
        deadline_s: Maximum duration of one call of the environment, in seconds.
    """

    host: Host
    calls: bool
    deadlines: Deadlines
    deadline_s: float

    async def states(self, tree: Tree) -> dict[int, State]:
        """The states of nodes that are no actions, by node.

        A node whose `Tree.state_key` is that of another state, and the nodes after it, are missing; so are those after
        a step in which the environment broke.
        """
        try:
            found = {0: await self._call(self.host.start(tree.task), "start")}
        except EnvFault:
            return {}
        if not _same(tree, 0, found[0]):
            return {}
        start, after = turn_start(tree), dict[int, State | None]()
        for node in range(1, tree.nodes):
            parent = int(tree.parent[node])
            if tree.kind[node] == Kind.ACTION:
                continue
            if tree.kind[parent] == Kind.ACTION:
                if parent not in after:
                    after[parent] = await self._step(found.get(int(tree.parent[start[parent]])), tree, parent)
                state = after[parent]
            else:
                state = found.get(parent)
            if state is not None and _same(tree, node, state):
                found[node] = state
        return found

    async def _step(self, state: State | None, tree: Tree, node: int) -> State | None:
        """The state after the action of a node; None where it is unknown."""
        text = text_in(tree.info[node])
        action: AgentAction | None = action_in(tree.info[node]) if self.calls else text
        if state is None or action is None:
            return None
        try:
            return (await self._call(self.host.step(state, action), "step")).state
        except EnvFault:
            return None

    async def plan(self, state: State) -> Sequence[AgentAction] | None:
        """The oracle's actions from a state to success; None where there are none, or the environment broke."""
        try:
            return await self._call(self.host.plan(state), "plan")
        except EnvFault:
            return None

    async def _call(self, awaitable: Awaitable[Result], call: str) -> Result:
        thing = f"environment {call}"
        return await self.deadlines.until(awaitable, owner="appraiser", thing=thing, deadline_s=self.deadline_s)


def _same(tree: Tree, node: int, state: State) -> bool:
    """Whether a node may show a state: their keys are equal, or one has none."""
    key = int(tree.state_key[node])
    return key == 0 or not state.key or key == hash_key(state.key)
