"""A guard decides about each action between parser and environment: in rollouts, and for agent programs."""

from asyncio import CancelledError, current_task
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from bough.tree import Action, AgentAction, BadCall, Message, Observation, Tool
from bough.usercode.origin import describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """The action is executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """The action is not executed.

    Attributes:
        reason: Why, in a sentence that the agent reads.

    Raises:
        ValueError: for a reason that is empty or no text.
    """

    reason: str

    def __post_init__(self) -> None:
        given = cast("object", self.reason)
        if not isinstance(given, str) or not given.strip():
            raise ValueError(f"Deny.reason: got {given!r}; need a sentence for the agent")


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
    """The guard's decision. A guard that raises, or returns anything else, denies.

    The guard gets an action of its own, so that a change of an object in it reaches neither environment nor program.
    """
    try:
        decision: Any = await guard.check(action if isinstance(action, str) else action.copy(), history, tools)
    except (Exception, SystemExit, CancelledError) as error:
        # A task that is cancelled from outside ends; a guard that awaits something cancelled has no decision.
        if isinstance(error, CancelledError) and (task := current_task()) and task.cancelling():
            raise
        decision = Deny(reason=f"the guard {type(guard).__name__} raised {describe(error)}")
    if isinstance(decision, Allow):
        return decision
    if not isinstance(decision, Deny):
        returned = type(decision).__name__
        return Deny(reason=f"the guard {type(guard).__name__} returned {returned}; need Allow or Deny")
    # Half of a surrogate pair, which arguments of a call can contain, cannot be written.
    return Deny(reason=decision.reason.encode(errors="replace").decode())


def denied_observation(action: AgentAction, decision: Deny) -> Observation:
    """The observation after a denied action: an answer to each of its calls, or a text."""
    text = f"denied: {decision.reason}"
    calls = action.calls if isinstance(action, Action) else ()
    answers = [
        Message(role="tool", content=text, call_id="" if isinstance(each, BadCall) else each.call_id) for each in calls
    ]
    return tuple(answers) or text
