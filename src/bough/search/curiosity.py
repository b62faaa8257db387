"""COS(M+O)S: tree search by curiosity, which is highest at a moderate surprisal."""

import math
from typing import Annotated

from bough.needs import POLICY, Need, roles
from bough.piece import Above, AtLeast, piece
from bough.search.node import SearchNode
from bough.search.tree import SearchTree

NOTE = "Curiosity"


@piece
class Curiosity:
    """The curiosity of a story (COS(M+O)S, arXiv 2501.17104): an inverted U of the mean surprisal of its steps.

        value = mean over the actions of the path of exp(-((s - peak) / spread)^2 / 2)

    s is the mean of -log p over the tokens of an action, nats, under the model of a role: one call for a node. With
    peak 1.5 and spread .75, s of 0, 1.5 and 3 give .1353, 1 and .1353: expected and incoherent steps have one value.
    It also evaluates the ends of paths, in a search with `success_value=None`.

    Experimental: the paper mixes such an index with learned features in a value model; its numbers could not be
    checked.

    Attributes:
        peak: The surprisal of highest value, nats per token.
        spread: The distance from it at which a value is exp(-1/2) = .6065, > 0.
        role: The role whose model is surprised. A frozen one keeps the measure, while training moves the policy.
    """

    peak: Annotated[float, AtLeast(0)] = 1.5
    spread: Annotated[float, Above(0)] = 0.75
    role: str = POLICY

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; nan at the root, where nothing is written.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
        """
        if node.draft is None:
            return math.nan
        logprobs = await tree.rollout.score(node.draft, role=self.role)
        surprisal = -sum(logprobs) / max(1, len(logprobs))
        node.notes[NOTE] = self.index(surprisal)
        steps = [each.notes[NOTE] for each in node.path() if NOTE in each.notes]
        return math.fsum(step for step in steps if isinstance(step, float)) / len(steps)

    def index(self, surprisal: float) -> float:
        """The value of one action by its mean surprisal, nats."""
        return math.exp(-(((surprisal - self.peak) / self.spread) ** 2) / 2)
