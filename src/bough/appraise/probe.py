"""Probes of the policy's own probabilities."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from bough.appraise.appraise import Columns
from bough.appraise.ask import AskModels, Scoring
from bough.appraise.path_fields import acts
from bough.appraise.true_answer import answer_field, true_answer
from bough.ask import Reply
from bough.ask.each import each
from bough.needs import Need, appraised
from bough.piece import Above, piece
from bough.tree import Entry, Tree, Verdict, context, turn_start


@piece
class AnswerProbe:
    """The policy's probability of the true answer before each action: the potential of IGPO (arXiv 2510.14967).

    The value is the geometric mean of the probabilities of the answer's tokens, in (0, 1]. The true answer is the field
    `field` of the task's data, of a list the first. A task without it has the last action of its first successful path;
    while no path succeeds, the value is 0.

    Attributes:
        column: Name of the column.
        field: The field of `Task.data` with the answer; "" for the last action of a successful path. A field that no
            task has is refused.
        prefix: Text before the answer, whose probability does not count.
        deadline_s: Maximum duration of a probe, in seconds.
    """

    column: str = "probe"
    field: str = "answer"
    prefix: str = ""
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 120.0

    @property
    def needs(self) -> frozenset[Need]:
        """The field with the answer."""
        return answer_field(self.field)

    @property
    def gives(self) -> frozenset[Need]:
        """Its column."""
        return frozenset({appraised(self.column)})

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The value of the state before each action, at the action."""
        answer = true_answer(trees, self.field)
        return {self.column: await each(self._tree(tree, ask, answer) for tree in trees)}

    async def _tree(self, tree: Tree, ask: AskModels, answer: str | None) -> Mapping[int, Entry]:
        nodes, start = acts(tree), turn_start(tree).tolist()
        if answer is None:
            return {node: Entry(value=0.0, verdict=Verdict.OK) for node in nodes}
        scorings = [
            Scoring(
                tokens=tuple(context(tree, start[node]).tolist()),
                text=answer,
                prefix=self.prefix,
                deadline_s=self.deadline_s,
            )
            for node in nodes
        ]
        replies = await each(ask.score(scoring) for scoring in scorings)
        return {node: _entry(reply) for node, reply in zip(nodes, replies, strict=True)}


def _entry(reply: Reply) -> Entry:
    if reply.verdict is not Verdict.OK:
        return Entry(verdict=reply.verdict, questions=1)
    return Entry(value=math.exp(reply.logprob), verdict=Verdict.OK, votes=1, questions=1)
