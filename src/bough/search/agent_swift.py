"""AgentSwift: a search over edits of designs, of which few are evaluated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from bough.ask.prompts import Placeholders
from bough.piece import AtLeast, NotEmpty, piece
from bough.search.descend import Descend
from bough.search.expand import Sample
from bough.search.hints import FixedHint
from bough.search.node import SearchNode
from bough.search.pieces import Proposal, Score
from bough.search.score import Uct, rating_of
from bough.search.surrogate import Surrogate
from bough.search.tree import SearchTree

KINDS = ("recombine", "mutate", "refine")


@piece
class EachKind:
    """Samples some actions of each kind, with a hint that names the kind.

    Attributes:
        kinds: At least one.
        width: Number of samples of each kind, at least 1.
        text: The hint; it may use the placeholder {kind}.
    """

    kinds: Annotated[tuple[str, ...], NotEmpty()] = KINDS
    width: Annotated[int, AtLeast(1)] = 2
    text: Annotated[str, Placeholders(prompt_fields=False, required=("kind",))] = (
        "Answer with an edit of this kind: {kind}."
    )

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Sample actions at a node, kind by kind."""
        found: list[Proposal] = []
        for kind in self.kinds:
            hint = FixedHint(text=self.text.format_map({"kind": kind}))
            found += await Sample(width=self.width, prior="even", hint=hint)(tree, node, times)
        return found


@piece
class UncertainUct:
    """UCT, plus the uncertainty of the value model at the node: how far its rating was from the value.

        q + c * sqrt(ln N / n) + weight * |rating - value|

    A node without a visit has its rating in place of q, and counts as one visit.

    Attributes:
        c: Weight of the bonus for few visits, >= 0.
        weight: Weight of the uncertainty, >= 0.
    """

    c: Annotated[float, AtLeast(0)] = 0.05
    weight: Annotated[float, AtLeast(0)] = 0.2

    def __call__(self, node: SearchNode) -> float:
        """The score."""
        rating = rating_of(node)
        if not node.visits:
            above = 0 if node.parent is None else node.parent.visits
            return rating + self.c * math.sqrt(math.log(max(1, above)))
        missed = 0.0 if math.isnan(node.rating) or math.isnan(node.value) else abs(rating - node.value)
        return Uct(c=self.c)(node) + self.weight * missed


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedDescend:
    """Descends from child to child, as `Descend` without `revisit`, after the value model has rated all actions again.

    Attributes:
        by: Scores the children.
        model: Rates the actions that are not executed, by all values so far.
    """

    by: Score = UncertainUct()
    model: Surrogate = Surrogate()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        waiting = [node for node in tree.live() if node.at is None]
        for node, rating in zip(waiting, self.model.estimate(tree, waiting), strict=True):
            node.rating = rating
        return Descend(by=self.by, revisit=False)(tree)
