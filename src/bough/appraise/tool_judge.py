"""A judge of tool calls that reads inputs and outputs of tools alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, TypeAlias

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.ask import VoteSettings
from bough.ask.answer import mean_entry
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import (
    BadCall,
    Entry,
    Ternary,
    Tree,
    Verdict,
    action_in,
    action_text,
    calls_in,
    counted,
    ends_turn,
    path,
    text_in,
    tools_at,
)

CALL = (
    "The question:\n{question}\n\nCalls of tools so far:\n{before}\n\nThe newest call:\n{calls}\n\nIts output:\n"
    "{result}\n\nDoes the output show evidence that the question needs? One needed part is enough. A call with wrong "
    "coordinates, one that changes nothing, or one whose error was avoidable is harmful. End with one word: useful, "
    "useless or harmful."
)

Step: TypeAlias = tuple[int, int]
"""A turn with calls: its last `ACTION` node, and the node after it with the output; without one the action itself."""


@piece
class ToolJudge(VoteSettings):
    """CodeV's judge of tool use (arXiv 2511.19661): it reads the inputs and outputs of tools, and no other text.

    The value of a path, at its leaf, is the mean over its turns with calls of

        `red_line`              where a call cannot be parsed, the environment does not recognise it, or all its calls
                                are repetitions of earlier ones; no question is asked
        the mean of the votes   on the output: 1 useful, 0 useless, -1 harmful

    and 0 for a path without calls. The judge reads the question, the calls so far and the newest output; what the
    policy writes besides calls is not in the prompt, so it cannot praise itself. A turn on several paths is judged
    once. In an environment without tools each action is a call.

    Cost: `n` questions for each turn with calls.

    Attributes:
        column: Name of the column.
        prompt: The question, with the placeholders {question}, {before}, {calls} and {result}.
        system: The system prompt.
        read: Converts an answer to a value.
        red_line: The value of a bad call, < 0.
        unneeded: A field of `Task.data` that is true for tasks without need of a tool: there no question is asked, and
            calls have 0, bad ones `red_line`. "" for none.
    """

    column: str = "tool_use"
    prompt: Annotated[str, Placeholders("question", "before", "calls", "result", prompt_fields=False)] = CALL
    system: str = "You judge calls of tools by what they show."
    read: AnswerParser[float] = field(
        default_factory=lambda: LabelParser(scores={"useful": 1, "useless": 0, "harmful": -1})
    )
    red_line: float = -1.0
    unneeded: str = ""

    def __post_init__(self) -> None:
        # The placeholders of `PROMPT_FIELDS` hold the policy's text.
        if not self.red_line < 0:
            raise ValueError(f"ToolJudge.red_line: got {self.red_line}; need a number below 0")

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of each path, at its leaf."""
        return {self.column: await each(self._tree(tree, ask) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels) -> Mapping[int, Entry]:
        steps = {leaf: _steps(tree, leaf) for leaf in counted(tree).tolist()}
        every = list(dict.fromkeys(step for several in steps.values() for step in several))
        judged = dict(zip(every, await each(self._step(tree, step, ask) for step in every), strict=True))
        entries, asked = dict[int, Entry](), set[Step]()
        for leaf, several in steps.items():
            fresh = [judged[step] for step in several if step not in asked]
            asked.update(several)
            entries[leaf] = _mean([judged[step] for step in several], fresh)
        return entries

    async def _step(self, tree: Tree, step: Step, ask: AskModels) -> Entry:
        """The value of one turn."""
        act, after = step
        before = [call for node in _acts(tree, act)[:-1] for call in _written(tree, node)]
        calls = _written(tree, act)
        bad = any(isinstance(call, BadCall) for call in calls_in(tree.info[act]))
        if bad or tree.valid[act] == Ternary.NO or set(calls) <= set(before):
            return Entry(value=self.red_line, verdict=Verdict.OK)
        if self.unneeded and tree.task.data.get(self.unneeded):
            return Entry(value=0.0, verdict=Verdict.OK)
        fields = {
            "question": text_in(tree.info[0]) or "",
            "before": "\n".join(before),
            "calls": "\n".join(calls),
            "result": "" if after == act else text_in(tree.info[after]) or "",
        }
        query = self.query(self.prompt.format_map(fields), self.read, system=self.system, n=self.n)
        return mean_entry(await ask(query))


def _acts(tree: Tree, node: int) -> list[int]:
    """The last `ACTION` nodes of the turns from the root to a node, the node's own turn included."""
    nodes = path(tree, node)
    return nodes[ends_turn(tree)[nodes]].tolist()


def _steps(tree: Tree, leaf: int) -> list[Step]:
    """The turns with calls on a path, in order."""
    nodes = path(tree, leaf).tolist()
    next_of = dict(zip(nodes, [*nodes[1:], leaf], strict=True))
    return [(act, next_of[act]) for act in _acts(tree, leaf) if _written(tree, act)]


def _written(tree: Tree, act: int) -> list[str]:
    """The calls of an action, as text; in an environment without tools the action itself."""
    info = tree.info[act]
    if not tools_at(tree, act):
        return [text for text in [action_text(action_in(info))] if text]
    return [
        call.text
        if isinstance(call, BadCall)
        else f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False, sort_keys=True)})"
        for call in calls_in(info)
    ]


def _mean(judged: Sequence[Entry], fresh: Sequence[Entry]) -> Entry:
    """The entry of a path by those of its turns; questions and answers are counted for turns not counted before."""
    questions, tokens = sum(entry.questions for entry in fresh), sum(entry.tokens for entry in fresh)
    texts = tuple(text for entry in fresh for text in entry.texts)
    if lacking := [entry.verdict for entry in judged if entry.verdict is not Verdict.OK]:
        return Entry(verdict=lacking[0], questions=questions, tokens=tokens, texts=texts)
    return Entry(
        value=sum(entry.value for entry in judged) / max(len(judged), 1),
        verdict=Verdict.OK,
        votes=sum(entry.votes for entry in judged),
        questions=questions,
        tokens=tokens,
        texts=texts,
    )
