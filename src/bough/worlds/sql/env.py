"""Text-to-SQL: an agent queries a SQLite database, then answers a question with a query."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal

from bough.env.check_call import check_call
from bough.env.env import Branching, EnvFault, Split, State, Step
from bough.env.splits import content_hash
from bough.env.sqlite.query import QueryLimits, QueryResult
from bough.env.sqlite.show import find_sql, show_result
from bough.env.state_value import value_of
from bough.needs import CALLS, Need
from bough.piece import AtLeast, piece
from bough.tree import Action, AgentAction, BadCall, Message, Observation, Outcome, Task, Tool, ToolCall
from bough.worlds.sql.generated import GeneratedQuestions
from bough.worlds.sql.match import Match
from bough.worlds.sql.partial_credit import PartialCredit
from bough.worlds.sql.questions import SqlSource, normalise_sql, open_databases, orders_rows, read_schema
from bough.worlds.sql.syntax import is_part, similarity, sqlglot, sub_queries

SQL_ARGUMENT = {
    "type": "object",
    "properties": {"sql": {"type": "string"}},
    "required": ["sql"],
    "additionalProperties": False,
}
QUERY = Tool(name="query", description="Run a query.", schema=SQL_ARGUMENT)
ANSWER = Tool(name="answer", description="Give the final query.", schema=SQL_ARGUMENT)


GOLD_ROWS = 100_000
"""Maximum number of rows of a gold query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySession:
    """The value of a state of `Sql`.

    Attributes:
        task: The task.
        queries: The queries with a result, in order.
        calls: Number of calls before the answer.
        outcome: `OPEN` until the episode ends.
        solved: Whether the answer was right.
    """

    task: Task
    queries: tuple[str, ...] = ()
    calls: int = 0
    outcome: Outcome = Outcome.OPEN
    solved: bool = False


@piece
class Sql:
    """Questions about databases, answered by a SQL query.

    The first observation is the schema and the question. The tool `query(sql)` executes a query and returns the first
    rows of its result; `answer(sql)` ends the episode with the final query. A text without calls ends it too, by the
    SQL in the text. The answer is a success with the reward 1 when its result equals that of the gold query. The
    results must be equal on the database that the agent reads and on its variants (`SqlSource.contents`). The info of
    an answer has its "sql", its "error", and a hash of its "result".

    Queries read only, and have limits of work, time, rows and bytes: see `ReadOnlyDatabase`. A query that is denied, is
    wrong or exceeds a limit returns an error to the agent, and the action is not valid. More calls than `max_queries`
    truncate the episode.

    A state is a value: it has the queries, not the database. Each process opens a database once, from its bytes.

    Attributes:
        questions: The source of questions and databases: `GeneratedQuestions`, `SpiderFolder` or `BirdFolder`.
        single_turn: Whether the agent answers at once, without tools; the answer is a text with SQL in it.
        max_queries: Maximum number of calls before the answer.
        limits: The limits of one query.
        match: The comparison of results; None for that of the source.
        partial: Partial credit of wrong answers; None for none.
        oracle: The oracle's queries before the answer. "lookups": how values are stored. "query": these and the gold
            query. "components": these and the sub-queries of the gold query, which need the package sqlglot.
        compares_syntax: Whether the info of a step has the "similarity" of its query's syntax tree to the gold query's,
            in 0 to 1, and whether it is made of "part"s of it (`is_part`). Needs the package sqlglot.
        show_types: Whether the schema has the types of columns.
        rows_shown: Maximum number of rows of a result in an observation.
        cell_characters: Maximum length of a value in an observation; longer ones are cut.
        result_characters: Maximum length of an observation; longer ones are cut.

    Raises:
        ValueError: when a field is out of its range.
        ImportError: when a field needs sqlglot and it is not installed.
    """

    questions: SqlSource = GeneratedQuestions()
    single_turn: bool = False
    max_queries: Annotated[int, AtLeast(0, "0 or more")] = 6
    limits: QueryLimits = QueryLimits()
    match: Match | None = None
    partial: PartialCredit | None = None
    oracle: Literal["lookups", "query", "components"] = "query"
    compares_syntax: bool = False
    show_types: bool = True
    rows_shown: Annotated[int, AtLeast(1)] = 10
    cell_characters: Annotated[int, AtLeast(1)] = 200
    result_characters: Annotated[int, AtLeast(1)] = 2000
    branching = Branching.COPY

    def __post_init__(self) -> None:
        if (
            self.oracle == "components"
            or self.compares_syntax
            or (self.partial is not None and self.partial.needs_syntax)
        ):
            sqlglot()

    @property
    def needs(self) -> frozenset[Need]:
        """Calls of tools, unless the agent answers at once."""
        return frozenset() if self.single_turn else frozenset({CALLS})

    @property
    def instructions(self) -> str:
        """The system prompt."""
        if self.single_turn:
            return "Answer the question with one SQLite query."
        return "Query the SQLite database, then answer with one query."

    @property
    def data_hash(self) -> str:
        """A hash of the questions."""
        return self.questions.data_hash

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different questions of a split.

        Raises:
            ValueError: when the split has fewer.
        """
        return self.questions.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        """Returns the state with the schema and the question.

        Raises:
            ValueError: when the task has no question, gold query or database of this source.
        """
        for name in ("database", "question", "sql"):
            if not isinstance(task.data.get(name), str):
                raise ValueError(f"Sql: task {task.id} got {name}={task.data.get(name)!r}; need a text")
        lines = [
            read_schema(self.questions, str(task.data["database"])).describe(types=self.show_types),
            *([f"hint: {task.data['hint']}"] if task.data.get("hint") else []),
            str(task.data["question"]),
        ]
        return self._state(QuerySession(task=task), "\n".join(lines))

    def step(self, state: State, action: AgentAction) -> Step:
        """Executes the calls of an action, or ends the episode with its text."""
        session = value_of(state, QuerySession, "Sql")
        if session.outcome != Outcome.OPEN:
            return Step(state=state, outcome=session.outcome, valid=False, success=session.solved)
        if isinstance(action, str) or not action.calls:
            sql = find_sql(action if isinstance(action, str) else action.text)
            return self._answer(session, sql, "")
        return self._call(session, action)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the queries of `oracle` that are not executed yet, as far as calls are left, and the answer.

        After a right answer the empty plan; None after any other end.
        """
        session = value_of(state, QuerySession, "Sql")
        if session.outcome != Outcome.OPEN:
            return () if session.solved else None
        gold = str(session.task.data["sql"])
        if self.single_turn:
            return (gold,)
        done = {*map(normalise_sql, session.queries)}
        left = [each for each in self._intermediate(session.task) if normalise_sql(each) not in done]
        left = left[: self.max_queries - session.calls]
        return (*(_calling(QUERY, each) for each in left), _calling(ANSWER, gold))

    def _intermediate(self, task: Task) -> list[str]:
        lookups, gold = task.data.get("lookups"), str(task.data["sql"])
        found = [str(each) for each in lookups] if isinstance(lookups, list | tuple) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if self.oracle == "query":
            found.append(gold)
        elif self.oracle == "components":
            found += [each for each in sub_queries(gold) if not self._run(task, each).error]
        return found

    def _call(self, session: QuerySession, action: Action) -> Step:
        """Executes the calls in order, up to the answer."""
        begun, texts, answer, valid = session, list[str](), "", True
        for call in action.calls:
            problem = check_call(call, (QUERY, ANSWER))
            if session.outcome != Outcome.OPEN:
                texts.append("error: not executed, the episode is over")
                continue
            if isinstance(call, BadCall) or problem:
                text, fine = f"error: {problem}", False
                session = replace(session, calls=session.calls + 1)
            elif call.name == ANSWER.name:
                answer, text, fine = str(call.arguments["sql"]), "done", True
                session = replace(session, outcome=Outcome.TERMINATED)
            elif session.calls < self.max_queries:
                session, text, fine = self._query(session, str(call.arguments["sql"]))
            else:
                session = replace(session, calls=session.calls + 1)
                text, fine = f"error: not executed, the limit is {self.max_queries} queries", False
            if session.calls > self.max_queries:
                session = replace(session, outcome=Outcome.TRUNCATED)
            texts.append(text)
            valid = valid and fine
        messages = tuple(
            Message(role="tool", content=_clean(text), call_id="" if isinstance(call, BadCall) else call.call_id)
            for call, text in zip(action.calls, texts, strict=True)
        )
        paid = self._paid(session) - self._paid(begun)
        if session.outcome == Outcome.TERMINATED:
            step = self._answer(session, answer, messages)
            return replace(step, reward=step.reward + paid, valid=step.valid and valid)
        info = self._compared(session.task, session.queries[-1]) if len(session.queries) > len(begun.queries) else {}
        return Step(state=self._state(session, messages), reward=paid, outcome=session.outcome, valid=valid, info=info)

    def _query(self, session: QuerySession, sql: str) -> tuple[QuerySession, str, bool]:
        """The session after a query, the text of its result, and whether it has one."""
        result = self._run(session.task, sql)
        queries = session.queries if result.error else (*session.queries, sql)
        text = show_result(
            result, rows=self.rows_shown, cell_characters=self.cell_characters, characters=self.result_characters
        )
        return replace(session, queries=queries, calls=session.calls + 1), text, not result.error

    def _answer(self, session: QuerySession, sql: str, observation: Observation) -> Step:
        """Ends the episode with a query."""
        task, match = session.task, self.match or self.questions.match
        gold_sql, name = str(task.data["sql"]), str(task.data["database"])
        ordered = orders_rows(gold_sql)
        golds = _gold(self.questions, name, gold_sql, self.limits)
        if golds[0].error:
            raise EnvFault(
                f"Sql: task {task.id} got a gold query without a result ({golds[0].message}); need one: leave the task "
                "out, or raise limits"
            )
        results = [
            database.run(sql, replace(self.limits, rows=max(self.limits.rows, len(gold.rows) + 1)))
            for database, gold in zip(open_databases(self.questions, name), golds, strict=True)
        ]
        solved = all(match.equal(gold, each, ordered=ordered) for gold, each in zip(golds, results, strict=True))
        reward = float(solved)
        if not solved and self.partial is not None:
            schema = read_schema(self.questions, name)
            reward = self.partial.of_answer(sql, results[0], gold_sql, golds[0], match=match, schema=schema)
        after = replace(session, outcome=Outcome.TERMINATED, solved=solved)
        return Step(
            state=self._state(after, observation),
            reward=reward,
            outcome=Outcome.TERMINATED,
            valid=not results[0].error,
            success=solved,
            info={"sql": _clean(sql), "error": results[0].error.value, "result": results[0].digest}
            | self._compared(task, sql),
        )

    def _compared(self, task: Task, sql: str) -> dict[str, object]:
        """The comparison of a query's syntax tree with the gold query's."""
        if not self.compares_syntax:
            return {}
        gold, schema = str(task.data["sql"]), read_schema(self.questions, str(task.data["database"]))
        return {"similarity": similarity(sql, gold, schema), "part": is_part(sql, gold, schema)}

    def _paid(self, session: QuerySession) -> float:
        """The sum of the rewards of the queries so far."""
        if self.partial is None:
            return 0.0
        schema = read_schema(self.questions, str(session.task.data["database"]))
        return self.partial.of_queries(session.queries, str(session.task.data["sql"]), schema)

    def _run(self, task: Task, sql: str) -> QueryResult:
        return open_databases(self.questions, str(task.data["database"]))[0].run(sql, self.limits)

    def _state(self, session: QuerySession, observation: Observation) -> State:
        data = session.task.data
        parts = [data["database"], data["question"], *sorted({*map(normalise_sql, session.queries)})]
        ending = f"{session.outcome} {session.solved}" if session.outcome != Outcome.OPEN else ""
        key = content_hash("\n".join(map(str, (*parts, ending))).encode(errors="replace").decode())
        tools = () if self.single_turn else (QUERY, ANSWER)
        return State(observation=observation, key=key, value=session, tools=tools)


@lru_cache(maxsize=256)
def _gold(questions: SqlSource, database: str, sql: str, limits: QueryLimits) -> tuple[QueryResult, ...]:
    """The results of a gold query, with larger limits than those of the agent."""
    wide = replace(
        limits,
        rows=GOLD_ROWS,
        instructions=10 * limits.instructions,
        seconds=10 * limits.seconds,
        memory_bytes=10 * limits.memory_bytes,
    )
    return tuple(each.run(sql, wide) for each in open_databases(questions, database))


def _calling(tool: Tool, sql: str) -> Action:
    return Action(calls=(ToolCall(name=tool.name, arguments={"sql": sql}),))


def _clean(text: str) -> str:
    """A text without lone surrogates, which a call can contain."""
    return text.encode(errors="replace").decode()
