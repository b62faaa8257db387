"""CodeTree: programs are written, tested and repaired, depth first."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.appraise.prompts import NumberParser
from bough.search.combine import EnvReturn, Mix
from bough.search.expand import Sample
from bough.search.frontier import DepthFirst
from bough.search.hints import Hints, Siblings
from bough.search.judge import Judge
from bough.search.node import SearchNode
from bough.search.reflect import Critique
from bough.search.search import Search
from bough.search.tree import SearchTree

TESTS = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "How near is what the last program did to what it should do? Answer with a number from 0 (it does not run) over 3 "
    "(it is wrong in a way that shows a pattern) to 5 (all is right)."
)


ALL = 4 / 3
"""Value of a program that passes all tests and that the critic rates highest."""


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


def code_tree(width: int = 3, programs: int = 20) -> Search:
    """CodeTree (arXiv 2411.04329): diverse programs, each repaired from critique while it improves; needs forks.

    For environments in which an action is a program, and observation and reward show which tests it passes. The value
    is the share of passed tests, plus up to 1/3 by a critic that rates how it failed (0 to 5). A program with a lower
    value than the one it repairs is not repaired further; one that solves the task has value 4/3 and ends the search.
    The depth of repairs is `limits.turns` (3 in the paper); programs at that depth have value 0 unless they solve the
    task. Any program may be the answer.

    The released code requests all strategies, or all repairs of a program, in one call; here the prompt of each has the
    earlier ones. It also prunes a program of equal value that lies deeper than its score.
    """
    return Search(
        select=DepthFirst(),
        expand=Sample(width=width, hint=Hints(parts=(Critique(), Siblings()))),
        evaluate=Mix(
            parts=(EnvReturn(last=True), Judge(prompt=TESTS, read=NumberParser(low=0.0, high=5.0))),
            weights=(1.0, ALL - 1),
        ),
        prune=(PruneRegressions(),),
        success_value=ALL,
        stop_value=ALL,
        anywhere=True,
        rounds=programs + 1,
    )
