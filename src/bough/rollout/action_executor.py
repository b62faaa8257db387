"""Executes the actions of a rollout: the guard decides, then the environment steps."""

from dataclasses import dataclass, replace

from bough.context import conversation
from bough.env import Host, Step
from bough.guard import Deny, check_action, denied_observation
from bough.rollout.builder import TreeBuilder
from bough.rollout.cursor import PendingAction
from bough.rollout.states import EnvCall, States
from bough.rollout.writer import Writer
from bough.tree import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionExecutor:
    """Executes the actions of a rollout.

    Attributes:
        builder: The tree, which counts denied actions.
        host: Runs the environment.
        states: The states that are stepped.
        call: Awaits a call with its deadline.
    """

    builder: TreeBuilder
    host: Host
    states: States
    call: EnvCall

    async def step(self, writer: Writer, draft: PendingAction) -> tuple[Step, int]:
        """The result of an action, and the number of steps that were replayed before it.

        After a denied action the state is as before, and the observation has the reason. The actions of `Task.start`
        belong to the task, and those of scripts to the environment: no guard decides about them.

        Raises:
            EnvFault: when the environment broke.
        """
        cursor, node, guard = draft.cursor, self.builder.nodes[draft.node], writer.agent.guard
        if guard is not None and writer.script is None and node.source is not Source.REPLAYED:
            history = conversation(writer.system, cursor.past, cursor.state.observation)
            checking = check_action(guard, draft.parsed.action, history, cursor.state.tools)
            decision = await self.call(checking, "guard", draft.branches)
            if isinstance(decision, Deny):
                node.info["denied"] = decision.reason
                return await self._denied(draft, decision)
        state, replayed = await self.states.take(cursor, draft.parsed.action)
        step = await self.call(self.host.step(state, draft.parsed.action), "step", draft.branches)
        return step, replayed

    async def _denied(self, draft: PendingAction, decision: Deny) -> tuple[Step, int]:
        counts = self.builder.counts
        self.builder.counts = replace(counts, denied=counts.denied + 1)
        state, replayed = await self.states.own(draft.cursor)
        # Without a key: the observation shows more than the environment's state.
        observation = denied_observation(draft.parsed.action, decision)
        return Step(state=replace(state, observation=observation, key=""), valid=False), replayed
