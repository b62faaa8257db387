"""ARIES: an ensemble of samples decides each turn by majority."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.rollout.rollout import Rollout
from bough.search.commit_to_executed import CommitToExecuted
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.node import SearchNode
from bough.search.search import Search
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCount:
    """Rates an action by the number of samples that are equal to it."""

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The votes of each child [children]."""
        del tree, node
        return [float(child.copies) for child in children]


@piece
class Aries:
    """ARIES (arXiv 2502.21208): a policy ensemble transforms a graph of thoughts, one majority a turn; needs no forks.

    Each turn samples `votes` actions and executes the most frequent one, ties to the first. It follows one path and
    steps no state twice, so it runs on any environment. `ThoughtGraph` is that of the paper: the actions split, solve,
    refine and merge thoughts. The paper's controller is a prompted model, without training; here any method trains it.

    Try: `bough train grpo --on thoughts`
    Try: `bough search grpo 'Aries(votes=5)' --on thoughts
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Attributes:
        votes: Number of samples a turn, at least 1.
    """

    votes: Annotated[int, AtLeast(1)] = 5

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        search = Search(
            select=Level(),
            expand=Sample(width=self.votes),
            rate=SampleCount(),
            prune=(CommitToExecuted(),),
            eager=True,
            max_evaluated=1,
        )
        await search(rollout)
