"""An instruction to give another answer, shown once a task's history has been replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bough.env.env import Branching, Closing, Env, Oracle, Split, State, Step, env_gives, seats_of
from bough.env.state_value import value_of
from bough.needs import ORACLE, SELF_ITERATION, Need
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfIteration:
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

    env: Env
    improve: str = "Improve on your last answer."
    diverge: str = "Improve on your last answer by a very different approach."

    @property
    def branching(self) -> Branching:
        """The inner environment's branching."""
        return self.env.branching

    @property
    def instructions(self) -> str:
        """The inner environment's instructions."""
        return self.env.instructions

    @property
    def seats(self) -> Mapping[str, str]:
        """The inner environment's seats."""
        return seats_of(self.env)

    @property
    def gives(self) -> frozenset[Need]:
        """The inner environment's oracle, and the instructions."""
        return (env_gives(self.env) & {ORACLE}) | {SELF_ITERATION}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns the inner environment's tasks."""
        return list(self.env.tasks(split, count, seed))

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
        return (
            self.env.plan(value_of(state, IterationState, "SelfIteration").inner)
            if isinstance(self.env, Oracle)
            else None
        )

    def close(self) -> None:
        """Closes the inner environment."""
        if isinstance(self.env, Closing):
            self.env.close()

    def _outer(self, inner: State, left: int, line: str) -> State:
        return replace(inner, value=IterationState(inner=inner, left=left, line=line))
