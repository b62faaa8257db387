"""Checklists: a model names the items that each turn satisfies, with the words that show it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.path_fields import acts, path_fields
from bough.ask import Answer, VoteSettings
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, Lines, Placeholders, numbered
from bough.needs import Need, appraised
from bough.piece import AtLeast, piece
from bough.tree import Entry, Tree, Verdict, path

WRITE = (
    "An agent gets this task:\n{instructions}\n{observation}\n\nWrite a checklist of what a good agent does, one item "
    "a line. Each item is one observable act, which a single step of the agent shows or not."
)
CHECK = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nIt then did this:\n{action}\n\n"
    "Checklist:\n{items}\n\nFor each item that this step satisfies, write a line with its number, a colon, and the "
    "words of the step that show it. Write none if it satisfies no item."
)

Items = Sequence[tuple[str, float]]
"""Texts and weights, which add up to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Satisfied:
    """Parses lines with the number of an item, a colon, and a quote; or the word none."""

    def __call__(self, text: str) -> Mapping[int, str] | None:
        """The quote of each item; None without a line of this form and without the word none."""
        found = {int(number): quote for number, quote in re.findall(r"(?m)^\W*(\d{1,9})\s*[.:)]\s*(\S.*)$", text)}
        return found or ({} if re.search(r"\bnone\b", text, re.IGNORECASE) else None)


@piece
class Checklist(VoteSettings):
    """CM2's checklist (arXiv 2602.12268): the value of a turn is the weight of the items that it satisfies first.

    Items are the field `field` of the task's data, texts or mappings with "item" and "weight"; a task without it gets
    a checklist that a model writes once. A model reads each turn, names the items that the action satisfies, and quotes
    it: an item whose quote is not in the action is not satisfied. More than half of the votes decide. Each item counts
    once on a path, at the first turn that satisfies it; weights add up to 1. Three items on a path of three turns:

        satisfied   {1}    {1, 3}   {2, 3}
        value       1/3    1/3      1/3

    A turn without a readable vote has no value, so that its path leaves the group. A turn that paths share is judged
    once. Cost: `n` questions for each turn, and one for each task without items.

    The paper's items were written before training, from a reference dialogue, for each turn of the user.

    Attributes:
        column: Name of the column.
        field: The field of `Task.data` with the items.
        evidence: Whether an item needs a quote of the action.
        max_items: Maximum number of items that a model writes.
        write: The question for items, with the placeholders {instructions} and {observation}.
        prompt: The question about a turn, with {instructions}, {turns}, {observation}, {action} and {items}.
        system: The system prompt.
        read: Parses the satisfied items, by number from 1, and their quotes.
        n: Number of votes on a turn.
    """

    column: str = "checklist"
    field: str = "checklist"
    evidence: bool = True
    max_items: Annotated[int, AtLeast(1)] = 8
    write: Annotated[str, Placeholders()] = WRITE
    prompt: Annotated[str, Placeholders("action", "answer", required=("items",))] = CHECK
    system: str = "You judge the work of an agent."
    read: AnswerParser[Mapping[int, str]] = Satisfied()

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The weight of the new items of each turn, at its action.

        Raises:
            ValueError: when the task's items are of another form.
        """
        every = [acts(tree) for tree in trees]
        first = next(((tree, nodes[0]) for tree, nodes in zip(trees, every, strict=True) if nodes), None)
        if first is None:
            return {self.column: [{} for _ in trees]}
        items = self._of_task(trees[0].task.id, trees[0].task.data.get(self.field))
        answer = None if items is not None else await self._written(*first, ask)
        if answer is not None and answer.value is not None:
            items = [(item, 1 / len(answer.value)) for item in answer.value]
        columns = [
            await self._tree(tree, nodes, items, ask) if items is not None else _without_items(nodes, answer)
            for tree, nodes in zip(trees, every, strict=True)
        ]
        if answer is not None:
            _add_cost(columns, answer)
        return {self.column: columns}

    def _of_task(self, task: str, found: object) -> Items | None:
        """The items in the data of a task; None without the field."""
        if found is None:
            return None
        rows = list(cast("Sequence[object]", found)) if isinstance(found, list | tuple) else []
        items = [_item(row) for row in rows]
        total = sum(weight for _, weight in items)
        if not items or not 0 < total < math.inf or any(not text or not weight >= 0 for text, weight in items):
            raise ValueError(
                f"Checklist.field: got {found!r} in data[{self.field!r}] of task {task}; need a list of texts, or of "
                "mappings with 'item' and a finite 'weight' of 0 or more"
            )
        return [(text, weight / total) for text, weight in items]

    async def _written(self, tree: Tree, node: int, ask: AskModels) -> Answer[tuple[str, ...]]:
        text = self.write.format_map(path_fields(tree, node))
        return await ask(self.query(text, Lines(max_items=self.max_items), system=self.system))

    async def _tree(self, tree: Tree, nodes: Sequence[int], items: Items, ask: AskModels) -> dict[int, Entry]:
        shown = numbered(text for text, _ in items)
        found = await each(self._turn(tree, node, shown, len(items), ask) for node in nodes)
        answers = dict(zip(nodes, found, strict=True))
        passed = {node: _majority(answer.values) for node, answer in answers.items()}
        entries: dict[int, Entry] = {}
        for node, answer in answers.items():
            before = {number for at in path(tree, node).tolist() if at != node for number in passed.get(at) or ()}
            own = passed[node]
            entries[node] = Entry(
                value=math.nan if own is None else sum(items[number - 1][1] for number in sorted(own - before)),
                verdict=answer.verdict,
                votes=len(answer.values),
                questions=self.n,
                tokens=answer.tokens,
                texts=answer.texts,
            )
        return entries

    async def _turn(self, tree: Tree, node: int, items: str, count: int, ask: AskModels) -> Answer[set[int]]:
        """The items that each vote finds in a turn."""
        fields = path_fields(tree, node)

        def read(text: str) -> set[int] | None:
            return self._passed(text, fields["action"], count)

        text = self.prompt.format_map(fields | {"items": items})
        return await ask(self.query(text, read, system=self.system, n=self.n))

    def _passed(self, text: str, action: str, count: int) -> set[int] | None:
        """The items that an answer names with evidence; None for an unreadable one, or one with an unknown item."""
        found = self.read(text)
        if found is None or not set(found) <= set(range(1, count + 1)):
            return None
        return {number for number, quote in found.items() if not self.evidence or _quoted(quote, action)}


def _item(row: object) -> tuple[str, float]:
    if isinstance(row, Mapping):
        data = cast("Mapping[str, object]", row)
        weight = data.get("weight", 1.0)
        return str(data.get("item") or ""), float(weight) if isinstance(weight, int | float) else -1.0
    return row if isinstance(row, str) else "", 1.0


def _quoted(quote: str, action: str) -> bool:
    """Whether a quote is in an action, whatever their case, quotation marks and spaces."""
    words, inside = (" ".join(text.strip().strip("\"'`").casefold().split()) for text in (quote, action))
    return bool(words) and words in inside


def _majority(votes: Sequence[set[int]]) -> set[int] | None:
    """The items of more than half of the votes; None without one."""
    if not votes:
        return None
    return {number for number in set[int]().union(*votes) if 2 * sum(number in vote for vote in votes) > len(votes)}


def _without_items(nodes: Sequence[int], answer: Answer[tuple[str, ...]] | None) -> dict[int, Entry]:
    verdict = Verdict.UNPARSED if answer is None else answer.verdict
    return {node: Entry(verdict=verdict) for node in nodes}


def _add_cost(columns: Sequence[dict[int, Entry]], answer: Answer[tuple[str, ...]]) -> None:
    """Count the question for the items at the first turn."""
    rows = next(rows for rows in columns if rows)
    node = min(rows)
    rows[node] = replace(rows[node], questions=rows[node].questions + 1, tokens=rows[node].tokens + answer.tokens)
