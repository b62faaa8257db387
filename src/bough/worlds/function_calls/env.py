"""One request, some functions: the right calls are the reference calls."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, cast

from bough.env.check_call import check_call, check_tools
from bough.env.env import Branching, Split, State, Step
from bough.env.rows import RowSource, RowTasks, place_of
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import piece
from bough.tree import Action, BadCall, Message, Outcome, Task, Tool, ToolCall, action_text
from bough.worlds.bfcl.functions import json_schema
from bough.worlds.function_calls.match_calls import Reference, match_calls

END = "</think>"
"""What closes the thinking."""


@piece
class FunctionCalls:
    """Requests that need one or several function calls, checked as in FunRL (arXiv 2508.05118).

    An episode is one action. It succeeds, and pays 1, when it has a thought that ends with `</think>` and its calls are
    the reference calls by `match_calls`; everything else pays 0. Calls are never executed. A row:

        {"prompt": "alarm at 7 30", "tools": [{"name": "alarm", "description": "...", "parameters": {...}}],
         "calls": [{"alarm": {"hour": [7], "minute": [30], "label": ["", "alarm"]}}]}

    "parameters" is a JSON schema, or BFCL's form of it; "calls" has the allowed values of each argument, with "" where
    it can be left out, as BFCL's answers do. Without calls the right action is a text.

    Every reference call must fit the schema of its function: the second stage of the paper's filter of data. The first
    stage, a model that judges each row, is the appraiser `TaskJudge`: `egpo(judge=ROLE)`.

    Attributes:
        rows: A path to JSON lines, the address of a function that returns rows, or JSON lines. `function_calls_env`
            makes them.
        thinking: Whether a thought is required.
        drop_invalid: Whether rows whose reference does not fit are left out; else they are an error. `invalid` has
            them.

    Raises:
        ValueError: when a field is of another type.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})

    rows: str | tuple[str, ...]
    thinking: bool = True
    drop_invalid: bool = False
    branching = Branching.COPY

    @property
    def instructions(self) -> str:
        """The system prompt."""
        thought = "Think first, between <think> and </think>. Then call" if self.thinking else "Call"
        return f"{thought} the functions that the request needs."

    @property
    def data_hash(self) -> str:
        """SHA-256 of the rows."""
        return _rows(self.rows).digest

    @property
    def invalid(self) -> Mapping[str, str]:
        """By the id of each task whose reference calls do not fit their schemas, what is wrong."""
        return _invalid(self.rows)

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different requests of a split.

        Raises:
            ValueError: when the split has fewer, or a row is wrong.
        """
        drawn = _rows(self.rows)
        wrong = self.invalid
        if wrong and not self.drop_invalid:
            task, problem = next(iter(wrong.items()))
            raise ValueError(
                f"FunctionCalls.rows: got {len(wrong)} rows whose reference calls do not fit, first {task}: {problem}; "
                "need calls that fit their schemas, or drop_invalid=true to leave these rows out"
            )
        left = [task for task in drawn.draw(split, len(drawn.by_split[split]), seed) if task.id not in wrong]
        if not 0 <= count <= len(left):
            raise ValueError(
                f"FunctionCalls.tasks: got count={count}; need 0 to {len(left)}, the rows of split {split!r} without "
                f"the {len(wrong)} that were dropped in all splits"
            )
        return left[:count]

    def start(self, task: Task) -> State:
        """Returns the state with the request.

        Raises:
            ValueError: when the schema of a tool is wrong.
        """
        message, tools = Message(role="user", content=str(task.data["prompt"])), _tools(task)
        check_tools(tools)
        return State(observation=(message,), key=task.id, value=task, tools=tools)

    def step(self, state: State, action: Action | str) -> Step:
        """Compares the calls with the reference, and ends the episode."""
        task = value_of(state, Task, "FunctionCalls")
        if state.key != task.id:
            return Step(state=state, outcome=Outcome.TERMINATED, valid=False, success=state.key.endswith("right"))
        given = action if isinstance(action, Action) else Action(text=action)
        before, closed, _ = given.text.partition(END)
        thought = not self.thinking or (closed and before.replace("<think>", "").strip() != "")
        right = bool(thought) and match_calls(given.calls, _references(task))
        answers = tuple(
            Message(role="tool", content="not executed", call_id="" if isinstance(call, BadCall) else call.call_id)
            for call in given.calls
        )
        key = f"{task.id} {'right' if right else 'wrong'}"
        after = State(observation=answers or "", key=key, value=task, tools=state.tools)
        return Step(
            state=after,
            reward=float(right),
            outcome=Outcome.TERMINATED,
            valid=action_text(given).strip() != "" and not any(check_call(call, state.tools) for call in given.calls),
            success=right,
        )

    def plan(self, state: State) -> tuple[Action, ...]:
        """Returns the reference calls after a thought that names their functions; () after the end."""
        task = value_of(state, Task, "FunctionCalls")
        calls = tuple(map(_call, _references(task)))
        thought = f"<think>{' '.join(call.name for call in calls) or 'none'}{END}" if self.thinking else ""
        return (Action(text=thought, calls=calls),) if state.key == task.id else ()


def function_calls_env(rows: RowSource, *, thinking: bool = True, drop_invalid: bool = False) -> FunctionCalls:
    """Make `FunctionCalls` from rows, a file of JSON lines, or a function at the top of a module that returns rows.

    Args:
        rows: The rows.
        thinking: Whether a thought is required.
        drop_invalid: Whether rows whose reference calls do not fit their schemas are left out.
    """
    return FunctionCalls(rows=place_of(rows), thinking=thinking, drop_invalid=drop_invalid)


@lru_cache(maxsize=8)
def _rows(place: str | tuple[str, ...]) -> RowTasks:
    return RowTasks("FunctionCalls", place)


@lru_cache(maxsize=8)
def _invalid(place: str | tuple[str, ...]) -> Mapping[str, str]:
    tasks = [task for several in _rows(place).by_split.values() for task in several]
    return {task.id: problem for task in tasks if (problem := reference_problem(task))}


def reference_problem(task: Task) -> str:
    """What is wrong with the tools or the reference calls of a task; "" when each allowed value fits its schema."""
    try:
        tools, references = _tools(task), _references(task)
    except ValueError as error:
        return str(error)
    except (KeyError, TypeError, AttributeError):
        return 'need "tools" with name, description and parameters, and "calls" as {name: {argument: [values]}}'
    for name, allowed in references:
        call = _call((name, allowed))
        each = [
            ToolCall(name=name, arguments={**call.arguments, key: value})
            for key, values in allowed.items()
            # The first values are those of the call.
            for value in values[1 if key in call.arguments else 0 :]
            if value != ""
        ]
        for one in (call, *each):
            if problem := check_call(one, tools):
                return problem
    return ""


def _tools(task: Task) -> tuple[Tool, ...]:
    rows = cast("Sequence[Mapping[str, Any]]", task.data["tools"])
    return tuple(
        Tool(name=row["name"], description=row.get("description", ""), schema=json_schema(row["parameters"]))
        for row in rows
    )


def _references(task: Task) -> list[Reference]:
    rows = cast("Sequence[Mapping[str, Mapping[str, Sequence[object]]]]", task.data["calls"])
    return [
        (name, {key: [*values] for key, values in allowed.items()}) for row in rows for name, allowed in row.items()
    ]


def _call(reference: Reference) -> ToolCall:
    """The call with the first allowed values, without the arguments that can be left out."""
    name, allowed = reference
    return ToolCall(name=name, arguments={key: values[0] for key, values in allowed.items() if "" not in values})
