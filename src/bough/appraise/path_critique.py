"""Critiques of whole paths: a model names the wrong steps, and votes decide."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.path_fields import path_fields, path_steps
from bough.ask import Answer, VoteSettings
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, Placeholders, numbered
from bough.integers import integers
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, Verdict

PATH = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nIts steps, by number:\n{steps}\n"
    "\nWhich steps are wrong? Think about each, then end with the list of their numbers, such as [2, 5], or [] if none "
    "is."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongSteps:
    """Parses an answer that ends with a list of numbers, such as [2, 5]; the last list of a text counts."""

    def __call__(self, text: str) -> AbstractSet[int] | None:
        """The numbers; None without a list."""
        lists = re.findall(r"\[[\d,\s]*\]", text)
        well_formed = lists and re.fullmatch(r"\[\s*(?:\d+\s*(?:,\s*\d+\s*)*)?\]", lists[-1])
        return set(integers(lists[-1])) if well_formed else None


Vote: TypeAlias = Literal["intersection", "majority", "union", "average"]


@piece
class PathCritique(VoteSettings):
    """CAPO's critique (arXiv 2508.02298): `n` times a model reads a whole path and lists its wrong steps.

    The value of a step, at its action, is 1 where it is wrong and 0 where it is not, by the votes of the critiques:

        critiques {2}, {2, 3}, {} of four steps      intersection {}    majority {2}    union {2, 3}
                                                     average 0, .667, .333, 0

    A step on several paths is wrong by the votes of all their critiques. An answer without a list, or with a number
    that no step has, is ignored. A step without any critique has no value.

    Cost: `n` questions for each path.

    Attributes:
        column: Name of the column.
        vote: How critiques are combined: all say so, more than half, any, or the share of them.
        n: Number of critiques of a path.
        prompt: The question, with the placeholders {instructions}, {steps}, {turns}, {observation} and {answer}.
        system: The system prompt.
        read: Parses the numbers of the wrong steps, counted from 1.
    """

    column: str = "critique"
    vote: Vote = "majority"
    n: int = 4
    prompt: Annotated[str, Placeholders("steps", "answer")] = PATH
    system: str = "You judge the work of an agent."
    read: AnswerParser[AbstractSet[int]] = WrongSteps()
    max_tokens: int = 512

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """Whether each step is wrong, at its action."""
        return {self.column: await each(self._tree(tree, ask) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels) -> Mapping[int, Entry]:
        steps = {leaf: nodes for leaf, nodes in path_steps(tree).items() if nodes}
        found = await each(self._path(tree, leaf, nodes, ask) for leaf, nodes in steps.items())
        answers = dict(zip(steps, found, strict=True))
        first = Counter(nodes[0] for nodes in steps.values())
        read = dict[int, list[tuple[Answer[AbstractSet[int]], int]]]()
        for leaf, nodes in steps.items():
            for number, node in enumerate(nodes, start=1):
                read.setdefault(node, []).append((answers[leaf], number))
        return {node: self._entry(read[node], self.n * first[node]) for node in sorted(read)}

    async def _path(self, tree: Tree, leaf: int, steps: Sequence[int], ask: AskModels) -> Answer[AbstractSet[int]]:
        shown = numbered(path_fields(tree, node)["answer"] for node in steps)
        fields = path_fields(tree, leaf) | {"steps": shown}

        def read(text: str) -> AbstractSet[int] | None:
            wrong = self.read(text)
            return wrong if wrong is not None and wrong <= set(range(1, len(steps) + 1)) else None

        return await ask(self.query(self.prompt.format_map(fields), read, system=self.system, n=self.n))

    def _entry(self, answers: Sequence[tuple[Answer[AbstractSet[int]], int]], questions: int) -> Entry:
        """The entry of a step, from the answer about each path and its number there.

        The questions of each path are counted at its first step.
        """
        known = [number in wrong for answer, number in answers for wrong in answer.values]
        tokens = sum(answer.tokens for answer, _ in answers) if questions else 0
        if not known:
            return Entry(verdict=answers[-1][0].verdict, questions=questions, tokens=tokens)
        value = combine(known, self.vote)
        return Entry(value=value, verdict=Verdict.OK, votes=len(known), questions=questions, tokens=tokens)


def combine(votes: Sequence[bool], vote: Vote) -> float:
    """The value of one step by its critiques: 1 wrong, 0 right, or the share of critiques that find it wrong.

    Args:
        votes: For each critique whether the step is wrong; one or more.
        vote: How they are combined.
    """
    share = sum(votes) / len(votes)
    match vote:
        case "intersection":
            return float(share == 1)
        case "majority":
            return float(share > 0.5)
        case "union":
            return float(share > 0)
        case "average":
            return share
