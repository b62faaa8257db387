"""Pruning rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from bough.explore.text_similarity import rouge_l
from bough.piece import AtLeast, Between, piece
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.pieces import Score
from bough.search.score import NodeValue
from bough.search.tree import SearchTree


@piece
class BeamWidth:
    """Keeps only the open nodes of the highest scores, ties to the first found: the beam of a beam search.

    Attributes:
        width: Number of nodes.
        by: Scores a node.
        shrink: Whether every ended path makes the beam narrower by one (AlphaMath, arXiv 2405.03553).
    """

    width: Annotated[int, AtLeast(1)] = 4
    by: Score = NodeValue()
    shrink: bool = False

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        del fresh
        ended = sum(node.ended for node in tree.nodes) if self.shrink else 0
        ranked = sorted(tree.live(), key=lambda node: (-self.by(node), node.number))
        for node in ranked[max(0, self.width - ended) :]:
            tree.prune(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeStates:
    """Keeps the cheapest path to each state, the shortest one by default, ties to the first found; needs state keys.

    A later path that is not cheaper is pruned; if it is cheaper, the earlier node and its descendants are pruned. A
    node that another rule pruned before its expansion may be found again. Ends of paths are not compared: each of them
    counts. (BFS-Prover's heap keeps the earlier path even if it is longer.)
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        first: dict[str, SearchNode] | None = tree.notes.get("Seen")
        if first is None:
            first = tree.notes["Seen"] = {_key(tree.root): tree.root}
        for node in fresh:
            key = _key(node)
            if node.pruned or not key:
                continue
            other = first.setdefault(key, node)
            if other is node:
                continue
            if node.path_cost < other.path_cost:
                self._remove(first, other)
                first[key] = node
                tree.prune(other)
            elif other.pruned and not other.expanded:
                first[key] = node
            else:
                tree.prune(node)

    def _remove(self, first: dict[str, SearchNode], node: SearchNode) -> None:
        """Remove the states of a node and its descendants."""
        below = [node]
        while below:
            here = below.pop()
            if first.get(_key(here)) is here:
                del first[_key(here)]
            below += here.children


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneBelow:
    """Prunes nodes with a value below a threshold, except the ends of paths.

    Attributes:
        threshold: The lowest value that is kept.
    """

    threshold: float = 0.0

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        for node in fresh:
            if not node.ended and node.value < self.threshold:
                tree.prune(node)


@piece
class LimitRepeats:
    """Prunes paths on which one action or one state occurs too often.

    Attributes:
        max_count: Maximum number of occurrences, at least 1.
        of: What is counted; states need state keys.
    """

    max_count: Annotated[int, AtLeast(1)] = 2
    of: Literal["action", "state"] = "action"

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        for node in fresh:
            named = [each.action if self.of == "action" else _key(each) for each in node.path()]
            if not node.ended and named[-1] and named.count(named[-1]) > self.max_count:
                tree.prune(node)


@piece
class DedupeSimilar:
    """Prunes nodes that are too similar to an earlier sibling that is not pruned.

    Similarity is the longest common subsequence of the actions' tokens (ROUGE-L's F1): 1 for equal actions.

    Attributes:
        max_similarity: Maximum similarity, in [0, 1).
    """

    max_similarity: Annotated[float, Between(0, 1, "0 or more, and less than 1", below=True)] = 0.8

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        for node in fresh:
            if node.draft is None or node.parent is None or node.ended or node.pruned:
                continue
            before = (each for each in node.parent.children if each.number < node.number and not each.pruned)
            tokens = node.draft.tokens
            if any(
                rouge_l(tokens, each.draft.tokens) > self.max_similarity for each in before if each.draft is not None
            ):
                tree.prune(node)


@piece
class BackJump:
    """After the end of a path, the search goes back several turns at once (DFSDT, ToolLLM, arXiv 2307.16789).

    Back by one is the node at which the last action was sampled. Back by two, as in the paper, is the node before it:
    the alternatives at the former are skipped, because an action that ends a path is not much worse than its siblings.
    The search can always return to the root; the released code ends the search when a path ends after one turn.

    Attributes:
        turns: Number of turns, at least 1.
    """

    turns: Annotated[int, AtLeast(1)] = 2

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the skipped nodes."""
        for node in fresh:
            left: SearchNode | None = None
            here = node.parent
            for _ in range(self.turns - 1):
                if here is None or here is tree.root:
                    break
                left, here = here, here.parent
            if node.ended and left is not None:
                tree.prune(left)


def _key(node: SearchNode) -> str:
    return node.at.state.key if isinstance(node.at, Cursor) else ""
