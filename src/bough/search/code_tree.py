"""CodeTree: strategies, programs and repairs in one tree, guided by tests and by a critic that accepts or rejects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import AnswerParser, LabelParser, NumberParser, Placeholders
from bough.piece import piece
from bough.search.combine import EnvReturn
from bough.search.node import SearchNode, mean_vote
from bough.search.pieces import Evaluate
from bough.search.questions import asked, prompt_fields
from bough.search.step_info import InfoValue
from bough.search.tree import SearchTree

RATE = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "How near is what the last program did to what it should do? Explain it, and end with a number from 0 (it does not "
    "run) over 3 (it is wrong in a way that shows a pattern) to 5 (all is right)."
)
VERIFY = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "The last program passes all tests that are shown. Is it right for every other input, too? Explain it, and end "
    "with accept or reject."
)
ACCEPTED = 2.0
"""Value of a program that passes all visible tests and that the critic accepts."""
RATED = 1 / 3
"""Largest share of the critic's rating in a value."""
VISIBLE_TESTS = InfoValue(name="visible", success=None, otherwise=EnvReturn(last=True))
"""The share of the visible tests that the last program passes; without it the last reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRegressions:
    """Prunes a node whose value is below its parent's (CodeTree).

    Children of the root are not pruned.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the fresh nodes that are worse than their parents."""
        for node in fresh:
            above = node.parent
            if above is not None and above.parent is not None and node.value < above.value and not node.ended:
                tree.prune(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Review:
    """Parses the critic's answer, and keeps its text.

    Attributes:
        read: Parses the verdict or the rating.
    """

    read: AnswerParser[float]

    def __call__(self, text: str) -> tuple[float, str] | None:
        found = self.read(text)
        return None if found is None else (found, text.strip())


@piece
class ProgramCritic(QuerySettings):
    """The value of a program from its tests and from a critic that rates, accepts or rejects it (CodeTree).

        share + rating / 3      fails a visible test; the critic's rating is in [0, 1], and 0 at the end of a path
        4/3                     passes all of them, and the critic does not accept it
        2                       passes all of them, and the critic accepts it

    The critic's text about a program is in the prompt of its repairs (`Ideas`). Without an answer a program that fails
    a test is unjudged (`Search`), and one that passes all of them is not accepted. Tests .6 and an answer that ends
    with 4: .6 + .8 / 3 = .867. The root has value 0.

    Attributes:
        tests: The share of the visible tests that a program passes, in [0, 1].
        rate: The question about a program that fails; the answer ends with a number from 0 to 5.
        verify: The question about a program that passes; the answer ends with "accept" or "reject".
    """

    tests: Evaluate = VISIBLE_TESTS
    rate: Annotated[str, Placeholders()] = RATE
    verify: Annotated[str, Placeholders()] = VERIFY

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when the critic's answer does not fit a budget.
        """
        if node.parent is None:
            return 0.0
        share = await self.tests(tree, node)
        if share < 1:
            if node.ended:
                return share
            rating = await self._ask(tree, node, "rate", self.rate, NumberParser(low=0.0, high=5.0))
            return mean_vote(node, [None if rating is None else share + RATED * rating])
        accepted = await self._ask(
            tree, node, "verify", self.verify, LabelParser(scores={"accept": 1.0, "reject": 0.0})
        )
        node.unjudged = accepted is None
        return ACCEPTED if accepted else 1 + RATED

    async def _ask(
        self, tree: SearchTree, node: SearchNode, name: str, prompt: str, read: AnswerParser[float]
    ) -> float | None:
        """The parsed answer, whose text is stored for the prompt of repairs; None without one."""
        text = prompt.format_map(prompt_fields(tree, node))
        answer = await asked(tree, node, self.query(text, _Review(read=read), name))
        found, node.notes["review"] = answer or (None, "")
        return found
