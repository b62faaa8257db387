"""Programs written, tested and mended, depth first."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.explore.asking import NumberParser
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
"""What a program is worth that passes all tests and that the critic finds right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRegressions:
    """A step back is given up: a place that is worth less than the one from which it was reached (CodeTree).

    What is reached from the root is never a step back.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up what is worse."""
        for node in fresh:
            above = node.parent
            if above is not None and above.parent is not None and node.value < above.value and not node.ended:
                tree.give_up(node)


def code_tree(width: int = 3, programs: int = 20) -> Search:
    """CodeTree (arXiv 2411.04329): differing programs, each mended from critique as long as it gets better; forks.

    For environments in which an action is a program, and what is read and paid says which tests it passes. The value
    is the share that passes, and up to 1/3 more by a critic who reads how it failed (0 to 5). A program that is worth
    less than the one that it mends is not mended further; one that solves the task is worth 4/3 and ends the search.
    How deep mending goes is `limits.turns` (3 in the paper); programs at that depth are worth nothing unless they solve
    it. Any program may be the answer.

    The released code asks once for all strategies, or all ways to mend a program; here each is written knowing those
    before it. It also gives up a program that is worth the same and lies deeper than its score.
    """
    return Search(
        select=DepthFirst(),
        expand=Sample(width=width, hint=Hints(parts=(Critique(), Siblings()))),
        evaluate=Mix(
            parts=(EnvReturn(last=True), Judge(prompt=TESTS, read=NumberParser(low=0.0, high=5.0))),
            weights=(1.0, ALL - 1),
        ),
        prune=(PruneRegressions(),),
        won=ALL,
        enough=ALL,
        anywhere=True,
        rounds=programs + 1,
    )
