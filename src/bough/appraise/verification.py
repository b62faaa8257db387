"""Verifications of whole paths: a model writes a verdict on each step and on the result, and the majority decides."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels
from bough.appraise.path_fields import path_fields, path_steps
from bough.ask import Answer, Query, VoteSettings
from bough.ask.each import each
from bough.ask.prompts import AnswerParser, Placeholders, numbered
from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Entry, Tree, Verdict

PATH = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nIts steps, by number:\n{steps}\n"
    "\nVerify each step. End with one line: the list of the verdicts on the steps, 1 for right and 0 for wrong, and "
    "yes if the result is right, else no, such as [1, 0, 1] no."
)

Verification: TypeAlias = tuple[tuple[bool, ...], bool]
"""The verdict on each step, and the one on the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictParser:
    """Parses an answer that ends with a list of 0 and 1, and yes or no; the last one of a text counts."""

    def __call__(self, text: str) -> Verification | None:
        """The verdicts; None without such a list."""
        found = re.findall(r"\[((?:\s*[01]\s*,)*\s*[01]\s*)\]\W*(yes|no)\b", text, re.IGNORECASE)
        if not found:
            return None
        steps, final = found[-1]
        return tuple(each.strip() == "1" for each in steps.split(",")), final.casefold() == "yes"


@piece
class Verifications(VoteSettings):
    """SPARK's step-level consistency (arXiv 2512.03244): `n` verifications of each path, of which the majority decides.

    Two columns: `column`, 1 at the leaf of a path whose result is right, else 0; and `steps`, 1 at the action of a step
    that is right, else 0. Three verifications of three steps:

        1 1 0    1 0 0    1 1 1        majority  1 1 0

    A tie is wrong. The verifications of all paths through a shared step vote on it. A verification with another number
    of steps than the path has is ignored; without any, a path has no value. With verifiers that are right with .8 the
    majority of 3 is right with .896, of 9 with .980.

    Cost: `n` questions for each path. The paper's meta-critique, a critique of a verification, is a prompt here.

    Attributes:
        column: Name of the column of results.
        steps: Name of the column of steps.
        n: Number of verifications of a path; 16 in the paper, for labels.
        prompt: The question, with the placeholders {instructions}, {steps}, {turns}, {observation} and {answer}.
        system: The system prompt.
        read: Parses the verdicts.
    """

    column: str = "verdict"
    steps: str = "steps"
    n: int = 3
    prompt: Annotated[str, Placeholders("steps", "answer")] = PATH
    system: str = "You verify the work of an agent."
    read: AnswerParser[Verification] = VerdictParser()
    max_tokens: int = 512

    @property
    def gives(self) -> frozenset[Need]:
        """Its columns."""
        return frozenset({appraised(self.column), appraised(self.steps)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The majority on each result, at the leaf, and on each step, at its action."""
        found = await each(self._tree(tree, ask) for tree in trees)
        return {self.column: [results for results, _ in found], self.steps: [steps for _, steps in found]}

    async def _tree(self, tree: Tree, ask: AskModels) -> tuple[Mapping[int, Entry], Mapping[int, Entry]]:
        steps = {leaf: nodes for leaf, nodes in path_steps(tree).items() if nodes}
        answers = await each(self._path(tree, leaf, nodes, ask) for leaf, nodes in steps.items())
        on_results: dict[int, Entry] = {}
        on_steps: dict[int, list[bool]] = {node: [] for nodes in steps.values() for node in nodes}
        missing: dict[int, Verdict] = {}
        for leaf, answer in zip(steps, answers, strict=True):
            for right, _ in answer.values:
                for node, verdict in zip(steps[leaf], right, strict=True):
                    on_steps[node].append(verdict)
            missing |= dict.fromkeys(steps[leaf], answer.verdict)
            entry = _majority([final for _, final in answer.values], answer.verdict)
            on_results[leaf] = replace(entry, questions=len(answer.texts), tokens=answer.tokens, texts=answer.texts)
        return on_results, {node: _majority(votes, missing[node]) for node, votes in sorted(on_steps.items())}

    async def _path(self, tree: Tree, leaf: int, steps: Sequence[int], ask: AskModels) -> Answer[Verification]:
        return await ask(self.question(tree, leaf, steps))

    def question(self, tree: Tree, leaf: int, steps: Sequence[int]) -> Query[Verification]:
        """The question about a path, with all votes.

        Args:
            tree: The tree.
            leaf: The leaf of the path.
            steps: The last `ACTION` nodes of the turns of the path (`path_steps`).
        """
        shown = [path_fields(tree, node)["answer"] for node in steps]
        prompt = self.text(path_fields(tree, leaf), shown)
        return self.query(prompt, lambda text: self.parsed(text, len(steps)), system=self.system, n=self.n)

    def text(self, fields: Mapping[str, str], steps: Sequence[str]) -> str:
        """The text of the question, from the fields of the path (`path_fields`) and the texts of its steps."""
        return self.prompt.format_map({**fields, "steps": numbered(steps)})

    def parsed(self, text: str, steps: int) -> Verification | None:
        """The verdicts of an answer about a path of `steps` steps; None for another number of verdicts, or none."""
        found = self.read(text)
        return found if found is not None and len(found[0]) == steps else None


def _majority(votes: Sequence[bool], missing: Verdict) -> Entry:
    """1 if more than half of the votes are true, else 0; no value without votes."""
    if not votes:
        return Entry(verdict=missing)
    return Entry(value=float(2 * sum(votes) > len(votes)), verdict=Verdict.OK, votes=len(votes))
