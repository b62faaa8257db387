"""A judge of tasks: a model decides whether a task and its reference answer are right, before anything is learned."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.path_fields import path_fields
from bough.ask import VoteSettings
from bough.ask.answer import mean_entry
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders
from bough.needs import Need, appraised, roles, task_field
from bough.piece import piece
from bough.tree import Entry, Tree

TASK = (
    "A task for an agent:\n{instructions}\n{observation}\n\nIts data, with the reference answer:\n{data}\n\n"
    "Does the reference follow from the task, is it complete, and is the task clear? Answer yes or no."
)


@piece
class TaskJudge(VoteSettings):
    """FunRL's first stage of filtering data (arXiv 2508.05118): a model judges each task and its reference answer.

    The value is the mean of the votes, 1 for yes and 0 for no, at the root of each tree; no question contains text of
    the policy. A task is judged once in a run. The filter `AcceptedTasks` drops the tasks that it refuses. The
    second stage, whether reference calls fit their schemas, is a part of `FunctionCalls`.

    The paper filters its data before training, with several models. Its prompts could not be seen: these are Bough's.

    Try: `bough train 'egpo(judge=judge)' --on function_calls
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Attributes:
        column: Name of the column.
        prompt: The question, with the placeholders {instructions}, {observation}, the first one, and {data}.
        fields: The fields of the task's data that are shown, as JSON; () for all.
        system: The system prompt.
        read: Converts an answer to a value.
    """

    column: str = "task"
    prompt: Annotated[str, Placeholders("data")] = TASK
    fields: tuple[str, ...] = ()
    system: str = "You check the tasks of a data set."
    read: AnswerParser[float] = LabelParser(scores={"yes": 1.0, "no": 0.0})

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's, and the named fields of the tasks."""
        return roles(self.role) | {task_field(name) for name in self.fields}

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of the task, at the root of each tree; its questions count at the first.

        Raises:
            ValueError: when the task has no field named in `fields`.
        """
        if not trees:
            return {self.column: []}
        first = trees[0]
        query = self.query(self._text(first), self.read, system=self.system, n=self.n)
        entry = mean_entry(await ask(query))
        again = Entry(value=entry.value, verdict=entry.verdict, votes=entry.votes)
        return {self.column: [{0: entry}, *({0: again} for _ in trees[1:])]}

    def _text(self, tree: Tree) -> str:
        """The question about the task of a tree."""
        data: Mapping[str, object] = tree.task.data
        if missing := [name for name in self.fields if name not in data]:
            raise ValueError(f"TaskJudge.fields: got {missing[0]!r}; task {tree.task.id} has the fields {sorted(data)}")
        shown = {name: data[name] for name in self.fields or data}
        text = json.dumps(shown, ensure_ascii=False, default=str)
        return self.prompt.format_map({**path_fields(tree, 0), "data": text})
