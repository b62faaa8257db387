"""An instruction to give another answer, shown once a task's history has been replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bough.env.env import State, Step, seats_of
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.needs import SELF_ITERATION, Need
from bough.piece import piece
from bough.tree import AgentAction, Outcome, Task, TaskMark, add_line

ITERATION = TaskMark("iteration")
"""The step "improve" or "diverge" of a task with a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationState:
    """The value of a state of `SelfIteration`.

    Attributes:
        inner: The inner environment's state.
        left: Number of actions of the history that are still to be replayed; 0 without a history.
        line: The instruction.
    """

    inner: State
    left: int = 0
    line: str = ""


@piece
class SelfIteration(Wrapper):
    """Asks for a better answer, or for a different one, after the history with which a task begins (ExIt).

    For environments in which each action is a whole answer that the next may replace. A task with a history
    (`Task.start`) and a step in its data (`ITERATION`) shows, below the observation after the history, the
    instruction of this step. The policy reads it and is trained with it. Other tasks are those of the inner
    environment:

        start ("x", "y"), step "diverge"     .. x .. y .., and a line "Improve on your last answer by a very ..."

    Attributes:
        env: The inner environment.
        improve: The instruction of a step "improve".
        diverge: The instruction of a step "diverge".
    """

    improve: str = "Improve on your last answer."
    diverge: str = "Improve on your last answer by a very different approach."

    @property
    def seats(self) -> Mapping[str, str]:
        """The inner environment's seats."""
        return seats_of(self.env)

    @property
    def gives(self) -> frozenset[Need]:
        """The inner environment's oracle, and the instructions."""
        return super().gives | {SELF_ITERATION}

    def start(self, task: Task) -> State:
        """Returns the first state of a task.

        Raises:
            ValueError: when the task has another step than "improve" and "diverge".
        """
        step = ITERATION.of(task)
        lines: dict[object, str] = {None: "", "improve": self.improve, "diverge": self.diverge}
        if step not in lines:
            raise ValueError(f"SelfIteration: got a task with {ITERATION.name}={step!r}; need one of {list(lines)}")
        inner = self.env.start(ITERATION.hide(task))
        return self._outer(inner, len(task.start), lines[step])

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes an action; the instruction stands below the observation after the last action of the history."""
        value = value_of(state, IterationState, "SelfIteration")
        step = self.env.step(value.inner, action)
        left = value.left - 1
        after = self._outer(step.state, max(0, left), value.line if left > 0 else "")
        if left == 0 and value.line and step.outcome is Outcome.OPEN:
            after = replace(after, observation=add_line(after.observation, value.line))
        return replace(step, state=after)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's plan; None without one."""
        return self.inner_plan(value_of(state, IterationState, "SelfIteration").inner)

    def _outer(self, inner: State, left: int, line: str) -> State:
        return replace(inner, value=IterationState(inner=inner, left=left, line=line))
