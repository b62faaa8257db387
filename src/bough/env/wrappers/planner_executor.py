"""Planner and executor: one agent sets subgoals, another acts on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bough.env.env import State, Step
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import AtLeast, piece
from bough.tree import AgentAction, Outcome, Task, action_text, add_line

PLANNER, EXECUTOR = "planner", "executor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The value of a state of `PlannerExecutor`.

    Attributes:
        inner: The inner environment's state.
        subgoal: The planner's subgoal; "" while the planner acts.
        left: The number of the executor's actions until the planner acts again.
    """

    inner: State
    subgoal: str = ""
    left: int = 0


@piece
class PlannerExecutor(Wrapper):
    """Divides an environment between two seats: "planner" writes a subgoal, "executor" then acts up to `turns` times.

    Both read the inner environment's observation; the executor's ends with the subgoal. Both get its reward. An episode
    of five actions with `turns=3`:

        planner subgoal   executor act act act   planner subgoal   executor act act

    The oracle's subgoal is the last of its next `turns` actions, so a demonstration shows the planner what to reach,
    and the executor how.

    Attributes:
        env: The inner environment.
        turns: The executor's actions per subgoal.
    """

    turns: Annotated[int, AtLeast(1)] = 3

    seats: ClassVar[Mapping[str, str]] = {
        PLANNER: "Plan. Answer with the next subgoal, one action to be reached in a few turns.",
        EXECUTOR: "Act toward the subgoal. Answer with one action.",
    }

    def start(self, task: Task) -> State:
        """Returns the first state, in which the planner acts."""
        return _planning(self.env.start(task))

    def step(self, state: State, action: AgentAction) -> Step:
        """Sets a subgoal, or executes an action; a subgoal without text is not valid."""
        plan = value_of(state, Plan, "PlannerExecutor")
        if state.seat == PLANNER:
            # Observations are without lone surrogates, which a subgoal can contain.
            subgoal = " ".join(action_text(action).encode(errors="replace").decode().split())
            after = replace(plan, subgoal=subgoal, left=self.turns)
            return Step(state=_acting(after), valid=bool(subgoal))
        step = self.env.step(plan.inner, action)
        after = replace(plan, inner=step.state, left=plan.left - 1)
        goes_on = after.left > 0 and step.outcome is Outcome.OPEN
        return replace(step, state=_acting(after) if goes_on else _planning(step.state))

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the next action of the seat that acts, and the inner oracle's actions after it."""
        actions = self.inner_plan(value_of(state, Plan, "PlannerExecutor").inner)
        if not actions or state.seat == EXECUTOR:
            return actions
        return action_text(actions[min(self.turns, len(actions)) - 1]), *actions


def _planning(inner: State) -> State:
    """The state in which the planner reads an inner state."""
    key = f"planner {inner.key}" if inner.key else ""
    return State(observation=inner.observation, key=key, value=Plan(inner=inner), seat=PLANNER)


def _acting(plan: Plan) -> State:
    """The state in which the executor reads an inner state and the subgoal."""
    inner = plan.inner
    return State(
        observation=add_line(inner.observation, f"subgoal: {plan.subgoal}"),
        key=f"executor {plan.subgoal} {inner.key}" if inner.key else "",
        value=plan,
        admissible=inner.admissible,
        tools=inner.tools,
        seat=EXECUTOR,
    )
