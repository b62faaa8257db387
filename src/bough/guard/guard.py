"""A guard decides about each action between parser and environment: in rollouts, and for agent programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from bough.tree import Action, AgentAction, BadCall, Message, Observation, Tool
from bough.usercode.origin import describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """The action is executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """The action is not executed.

    Attributes:
        reason: A sentence; the next observation has it.
    """

    reason: str


Decision: TypeAlias = Allow | Deny


@runtime_checkable
class Guard(Protocol):
    """Decides about actions. The environment never gets an action that was denied."""

    async def check(self, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]) -> Decision:
        """Decide about an action before it is executed.

        Args:
            action: What the parser found in the policy's text.
            history: The whole conversation before it, whatever part of it the policy's context shows.
            tools: The tools that the agent has.
        """
        ...


async def check_action(
    guard: Guard, action: AgentAction, history: Sequence[Message], tools: Sequence[Tool]
) -> Decision:
    """The guard's decision. A guard that raises, or returns anything else, denies."""
    try:
        decision: Any = await guard.check(action, history, tools)
    except Exception as error:
        return Deny(reason=f"the guard {type(guard).__name__} raised {describe(error)}")
    if isinstance(decision, Allow | Deny):
        return decision
    return Deny(reason=f"the guard {type(guard).__name__} returned {type(decision).__name__}; need Allow or Deny")


def denied_observation(action: AgentAction, decision: Deny) -> Observation:
    """The observation after a denied action: an answer to each of its calls, or a text."""
    text = f"denied: {decision.reason}"
    calls = action.calls if isinstance(action, Action) else ()
    answers = [
        Message(role="tool", content=text, call_id="" if isinstance(each, BadCall) else each.call_id) for each in calls
    ]
    return tuple(answers) or text
