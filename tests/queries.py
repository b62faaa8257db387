"""Text-to-SQL on a small stage: a scripted engine writes queries, and `=` before a text makes it the answer."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.explore.stage import Letters, runner

from bough.context import ToolCalls
from bough.engine import Request, Scripted
from bough.env import InProcessHost
from bough.rollout import Explorer, Limits
from bough.tree import Action, Task, Tool, ToolCall, Tree
from bough.worlds.sql import GeneratedQuestions, Sql

ENV = Sql(questions=GeneratedQuestions(databases=40), max_queries=4)
TASK = next(task for task in ENV.tasks("train", 40, 0) if task.data["template"] == "filter_category")
GOLD = str(TASK.data["sql"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries(Letters):
    """`=select 1` is an answer, `select 1` a query."""

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        del tools
        text = self.text(tokens)
        name, sql = ("answer", text[1:]) if text.startswith("=") else ("query", text)
        return Action(calls=(ToolCall(name=name, arguments={"sql": sql}),))


def called(sql: str) -> Action:
    """A query, or an answer with `=` before it."""
    return Queries().parse([*map(ord, sql)])


def grow(
    explorer: Explorer,
    write: Callable[[int, random.Random], str],
    *,
    env: Sql = ENV,
    task: Task = TASK,
    limits: Limits | None = None,
) -> Tree:
    """The tree of a task where `write` writes each turn, by the number of observations so far and a draw."""

    def script(request: Request) -> tuple[int, ...]:
        read = "".join(map(chr, request.prompt_tokens))
        return tuple(map(ord, write(read.count("}") - 2, random.Random(request.seed))))

    place = runner(Scripted(script=script), InProcessHost(env=env), limits=limits or Limits(turns=5), max_tokens=200)
    agent = replace(place.agent, renderer=Queries(), parser=ToolCalls())
    (tree,) = asyncio.run(replace(place, agent=agent).run(explorer, [task], seed=0)).trees
    return tree
