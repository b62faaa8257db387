"""A symbolic memory: what an agent observed, in a database that it queries with SQL."""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeAlias, cast

from bough.env.check_call import check_call
from bough.env.env import State, Step
from bough.env.splits import content_hash
from bough.env.sqlite.query import QueryLimits
from bough.env.sqlite.read_only import ReadOnlyDatabase
from bough.env.sqlite.show import show_result
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import AtLeast, piece
from bough.tree import Action, AgentAction, Message, Observation, Task, Tool, ToolCall, action_text
from bough.tree import messages as messages_of

Cell: TypeAlias = str | int | float | None
Fact: TypeAlias = tuple[int, int, str, Cell]
"""The turn, the item, the name and the value."""

RECALL = Tool(
    name="recall",
    description="Query what was observed so far, with SQL.",
    schema={
        "type": "object",
        "properties": {"sql": {"type": "string"}},
        "required": ["sql"],
        "additionalProperties": False,
    },
)
SCHEMA = (
    "create table observed (turn integer, action text, observation text);"
    "create table facts (turn integer, item integer, name text, value);"
)
CELL_CHARACTERS, ANSWER_CHARACTERS = 200, 2000
"""Longest value, and longest answer of a query, for the model."""
TEXT = re.compile(r"\s*recall:\s*(.*)", re.DOTALL)
LINE = re.compile(r"\s*([\w][\w .-]{0,40}?)\s*[:=]\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlMemoryState:
    """The value of a state of `SqlMemory`.

    Attributes:
        inner: The inner environment's state.
        rows: The action and the observation of each turn; the first has no action.
        recalled: The result of the last query; "" when the last action was not a query.
    """

    inner: State
    rows: tuple[tuple[str, str], ...]
    recalled: str = ""


@piece
class SqlMemory(Wrapper):
    """DoraemonGPT's symbolic memory (arXiv 2401.08392): the agent's observations as tables, with SQL as a tool.

    Every observation of the inner environment is stored in two tables:

        observed(turn, action, observation)     the texts; turn 0 is the task
        facts(turn, item, name, value)          the values in an observation that is JSON, or has lines "name: value"

    With the observation `[{"good": "tea", "price": 3}]` after turn 1 the facts are (1, 0, good, tea), (1, 0, price, 3).

    The tool `recall(sql)` answers a query that reads, with the limits of `QueryLimits`; without tools the action is the
    text "recall: select ...". A query does not step the inner environment and has no reward, but it is a turn. Other
    calls of the same action are executed by the inner environment, before the queries.

    The paper fills a table of the objects in a video and one of its times, with vision models; here the tables have
    what the tools return, in order of time.

    Attributes:
        env: The inner environment.
        rows: Maximum number of rows in an answer.
        limits: The limits of a query.
    """

    rows: Annotated[int, AtLeast(1)] = 20
    limits: QueryLimits = field(default_factory=QueryLimits)

    @property
    def instructions(self) -> str:
        """The inner environment's instructions, and the tables."""
        return (
            f"{self.env.instructions}\nWhat you observed is in the tables observed(turn, action, observation) and "
            "facts(turn, item, name, value). Query them with recall: select ..."
        ).strip()

    def start(self, task: Task) -> State:
        """Returns the first state of a task."""
        inner = self.env.start(task)
        return _outer(SqlMemoryState(inner=inner, rows=(("", _text(inner.observation)),)))

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes the calls of the inner environment, then the queries."""
        before = value_of(state, SqlMemoryState, "SqlMemory")
        queries, rest = _split(action)
        step, after = Step(state=before.inner), replace(before, recalled="")
        if rest is not None:
            # The inner environment takes actions of its own type.
            step = self.env.step(before.inner, cast("str", rest))
            row = action_text(rest), _text(step.state.observation)
            after = replace(after, inner=step.state, rows=(*before.rows, row))
        if not queries:
            return replace(step, state=_outer(after))
        answers = [self._answer(after, query) for query in queries]
        shown: Observation = answers[0][0].content
        if isinstance(action, Action):
            inner = () if rest is None else messages_of(step.state.observation)
            shown = (*inner, *(message for message, _ in answers))
        after = replace(after, recalled=_text(shown))
        valid = step.valid and all(understood for _, understood in answers)
        return replace(step, state=replace(_outer(after), observation=shown), valid=valid)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's plan; None too when the inner environment is no `Oracle`."""
        return self.inner_plan(value_of(state, SqlMemoryState, "SqlMemory").inner)

    def _answer(self, memory: SqlMemoryState, query: ToolCall | str) -> tuple[Message, bool]:
        """The answer to a query, and whether the query was understood."""
        call_id = "" if isinstance(query, str) else query.call_id
        if not isinstance(query, str):
            if wrong := check_call(query, (RECALL,)):
                return Message(role="tool", content=f"error: {wrong}", call_id=call_id), False
            query = cast("Mapping[str, str]", query.arguments)["sql"]
        database = ReadOnlyDatabase(_tables(memory.rows))
        try:
            result = database.run(query, self.limits)
        finally:
            database.close()
        text = show_result(result, rows=self.rows, cell_characters=CELL_CHARACTERS, characters=ANSWER_CHARACTERS)
        return Message(role="tool", content=text, call_id=call_id), not result.error


def facts_in(turn: int, observation: str) -> Iterator[Fact]:
    """The values in an observation: of JSON, else of lines "name: value" or "name = value"."""
    try:
        found: object = json.loads(observation)
    except ValueError:
        lines = (LINE.fullmatch(line) for line in observation.splitlines())
        yield from ((turn, item, each[1], _number(each[2])) for item, each in enumerate(lines) if each is not None)
        return
    items = cast("list[object]", found) if isinstance(found, list) else [found]
    for item, each in enumerate(items):
        yield from ((turn, item, name, value) for name, value in _leaves("", each))


def _leaves(name: str, value: object) -> Iterator[tuple[str, Cell]]:
    """The names and values of a JSON value; names of inner values are joined by dots."""
    if isinstance(value, dict | list):
        parts = cast("dict[str, object] | list[object]", value)
        for key, each in parts.items() if isinstance(parts, dict) else enumerate(parts):
            yield from _leaves(f"{name}.{key}".lstrip("."), each)
    else:
        yield name or "value", value if isinstance(value, str | int | float) or value is None else str(value)


def _number(text: str) -> Cell:
    return (float(text) if "." in text else int(text)) if re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", text) else text


def _tables(rows: tuple[tuple[str, str], ...]) -> bytes:
    """The database of a memory, serialized."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(SCHEMA)
        clean = [tuple(text.encode(errors="replace").decode() for text in row) for row in rows]
        numbered = [(turn, action, observation) for turn, (action, observation) in enumerate(clean)]
        connection.executemany("insert into observed values (?, ?, ?)", numbered)
        facts = [fact for turn, _, observation in numbered for fact in facts_in(turn, observation)]
        connection.executemany("insert into facts values (?, ?, ?, ?)", facts)
        return connection.serialize()
    finally:
        connection.close()


def _split(action: AgentAction) -> tuple[list[ToolCall | str], AgentAction | None]:
    """The queries of an action, and the action of the inner environment; None without one."""
    if isinstance(action, str):
        found = TEXT.fullmatch(action)
        return ([], action) if found is None else ([found[1]], None)
    queries: list[ToolCall | str] = [
        each for each in action.calls if isinstance(each, ToolCall) and each.name == RECALL.name
    ]
    others = tuple(each for each in action.calls if each not in queries)
    if not queries:
        return [], action
    return queries, Action(text=action.text, calls=others) if others else None


def _text(observation: Observation) -> str:
    return "\n".join(each.content for each in messages_of(observation))


def _outer(memory: SqlMemoryState) -> State:
    """The state of the agent: the inner observation, and the tool beside the inner tools."""
    inner = memory.inner
    key = content_hash(f"{inner.key}\n{memory.rows}\n{memory.recalled}") if inner.key else ""
    tools = (*inner.tools, RECALL) if inner.tools else ()
    return replace(inner, key=key, value=memory, tools=tools)
