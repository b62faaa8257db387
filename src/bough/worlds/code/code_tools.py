"""Programming tasks by tools: the agent tries programs, and submits one."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar, cast

from bough.env.check_call import check_call
from bough.env.env import Branching, Split, State, Step
from bough.env.splits import content_hash
from bough.env.state_value import value_of
from bough.env.tools.function_tool import function_tool
from bough.env.tools.python_tool import run_python
from bough.needs import CALLS, Need
from bough.piece import AtLeast, piece
from bough.tree import Action, BadCall, Message, Observation, Outcome, Task, ToolCall
from bough.worlds.code.env import CodeState, CodeTasks, ending_of, feedback_of, prompt_of
from bough.worlds.code.problem import Problem


def run(code: str) -> str:
    """Run a Python program and read its output. The value of a last expression is printed.

    Args:
        code: The program.
    """
    return code


def test(code: str) -> str:
    """Run the visible tests of the task on a solution.

    Args:
        code: The whole solution.
    """
    return code


def submit(code: str) -> str:
    """Submit a solution. It ends the task.

    Args:
        code: The whole solution.
    """
    return code


TOOLS = tuple(function_tool(each, takes_state=False).tool for each in (run, test, submit))
RUN, TEST, SUBMIT = (each.name for each in TOOLS)


@piece
class CodeTools:
    """The programs of `CodeTasks` by three tools: `run` a program, `test` a solution, `submit` a solution.

    The calls of an action are executed in order, up to the submission, which ends the episode. The hidden tests decide
    the reward, as in `CodeTasks`. An action without a call ends the episode without a reward, and so do more calls than
    `max_calls`. A call that does not fit its schema is not executed, and the action is not valid.

    Attributes:
        tasks_of: The tasks, the reward and the limits of the sandbox; its `attempts` has no effect.
        max_calls: Maximum number of calls.

    Raises:
        ValueError: when `max_calls` is below 1.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})
    waits: ClassVar[bool] = True

    tasks_of: CodeTasks = field(default_factory=CodeTasks)
    max_calls: Annotated[int, AtLeast(1)] = 8
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The system prompt: how to use the tools."""
        return "Write Python. Try programs with run, check a solution with test, and submit the whole solution."

    @property
    def data_hash(self) -> str:
        """SHA-256 of the tasks of the file; "" for generated tasks."""
        return self.tasks_of.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns the tasks of `CodeTasks.tasks`.

        Raises:
            ValueError: as there.
        """
        return self.tasks_of.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        """Returns the state with the task.

        Raises:
            ValueError: when `task.data` is not a programming task.
        """
        state = self.tasks_of.start(task)
        return _state(
            value_of(state, CodeState, "CodeTools"),
            (Message(role="user", content=prompt_of(value_of(state, CodeState, "CodeTools").problem)),),
        )

    def step(self, state: State, action: Action) -> Step:
        """Executes the calls of an action.

        Raises:
            SandboxError: when the machine cannot run a sandbox.
        """
        current = value_of(state, CodeState, "CodeTools")
        if current.outcome is not Outcome.OPEN:
            return Step(state=state, outcome=current.outcome, valid=False)
        answers: list[Message] = []
        valid, reward, success, over = True, 0.0, False, Outcome.OPEN if action.calls else Outcome.TERMINATED
        for call in action.calls:
            text, understood = "error: not executed, the task is over", True
            if over is Outcome.OPEN and current.attempts >= self.max_calls:
                text, over = f"error: not executed, the limit is {self.max_calls} calls", Outcome.TRUNCATED
            elif over is Outcome.OPEN:
                current = replace(current, attempts=current.attempts + 1)
                text, understood = self._answer(current.problem, call)
                if understood and isinstance(call, ToolCall) and call.name == SUBMIT:
                    report = self.tasks_of.report(current.problem, _code(call), current.problem.hidden)
                    success, over = report.share == 1, Outcome.TERMINATED
                    reward = report.share if self.tasks_of.reward == "share" else float(success)
            valid = valid and understood
            answers.append(
                Message(role="tool", content=text, call_id="" if isinstance(call, BadCall) else call.call_id)
            )
        after = replace(current, outcome=over, feedback="\n".join(each.content for each in answers))
        return Step(
            state=_state(after, tuple(answers)),
            reward=reward,
            outcome=over,
            valid=valid and bool(action.calls),
            success=success,
        )

    def plan(self, state: State) -> tuple[Action, ...] | None:
        """Returns a test and the submission of the reference answer; None without one, or after the end."""
        current = value_of(state, CodeState, "CodeTools")
        answer, left = current.problem.answer, self.max_calls - current.attempts
        if current.outcome is not Outcome.OPEN or not answer or not left:
            return None
        code = {"code": current.problem.program(answer) if current.problem.continues else answer}
        names = (TEST, SUBMIT) if left > 1 and current.problem.visible and not current.attempts else (SUBMIT,)
        return tuple(Action(calls=(ToolCall(name=name, arguments=code),)) for name in names)

    def _answer(self, problem: Problem, call: ToolCall | BadCall) -> tuple[str, bool]:
        """The text of a call's result, and whether the call was understood."""
        wrong = check_call(call, TOOLS)
        if wrong or isinstance(call, BadCall):
            return f"error: {wrong}".encode(errors="backslashreplace").decode(), False
        if call.name == RUN:
            return run_python(_code(call), self.tasks_of.sandbox), True
        if call.name == TEST:
            return feedback_of(problem.visible, self.tasks_of.report(problem, _code(call), problem.visible)), True
        return "submitted", True


def _code(call: ToolCall) -> str:
    return cast("Mapping[str, str]", call.arguments)["code"]


def _state(current: CodeState, observation: Observation) -> State:
    key = content_hash(f"{current.problem.prompt}\n{current.feedback}{ending_of(current)}")
    return State(observation=observation, key=key, value=current, tools=TOOLS)
