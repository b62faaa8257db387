"""A bonus for rewarded paths that differ from the others of their task."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Floats, Kind, Source, Tree, counted, path, sum_to_root, text_in
from bough.tree.endings import last_action

DIMENSIONS = 512
"""Length of the vector of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """Channel "diversity": ExIt's bonus (arXiv 2509.04575), the return of a path times its distance from the others.

    With v the vectors of the texts of a task's paths, scaled to length 1, and c their mean:

        distance = 1 - cosine of v and c        bonus = weight * environment's return * distance / largest distance

    The texts aaaa, aaaa, bbbb with returns 1, 0, 1 have the distances .106, .106, .553 and, with weight 1, the bonuses
    .191, 0, 1. A path without a positive return gets none, and neither does a group of equal texts. Text is the agent's
    own actions, without those of `Task.start`. A vector counts the groups of three characters of the text, hashed to
    512 numbers; the paper has an embedding model, and its scale could not be checked. It is paid at the last action;
    one that ends several paths is paid their mean.

    Attributes:
        weight: The bonus of the most distant path, as a fraction of its return, >= 0.
    """

    weight: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise ValueError(f"Diversity.weight: got {self.weight}; need 0 or more")

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each path."""
        ends = [(at, int(leaf)) for at, tree in enumerate(group) for leaf in counted(tree)]
        paid = [np.zeros(tree.nodes) for tree in group]
        far = distances([_text(group[at], leaf) for at, leaf in ends])
        most = far.max(initial=0.0)
        ended = [np.bincount(last_action(tree)[counted(tree)], minlength=tree.nodes) for tree in group]
        for (at, leaf), distance in zip(ends, far.tolist(), strict=True):
            earned = float(sum_to_root(group[at], group[at].env_reward)[leaf])
            if most > 0 and earned > 0:
                action = last_action(group[at])[leaf]
                paid[at][action] += self.weight * earned * distance / most / ended[at][action]
        return [{"diversity": each} for each in paid]


def distances(texts: Sequence[str]) -> Floats:
    """[n]: the cosine distance of each text to the mean of all; 0 for equal texts, rounding aside."""
    vectors = np.stack([_vector(text) for text in texts]) if texts else np.zeros((0, DIMENSIONS))
    centre = vectors.mean(axis=0) if texts else np.zeros(DIMENSIONS)
    norm = np.linalg.norm(centre)
    far = 1.0 - vectors @ centre / norm if norm else np.zeros(len(texts))
    return np.where(far > 1e-9, far, 0.0)


def _vector(text: str) -> Floats:
    """[DIMENSIONS], of length 1: the hashed groups of three characters; a shorter text is one group."""
    counts = np.zeros(DIMENSIONS)
    for begin in range(max(1, len(text) - 2)):
        counts[zlib.crc32(text[begin : begin + 3].encode(errors="surrogatepass")) % DIMENSIONS] += 1.0
    return counts / np.linalg.norm(counts)


def _text(tree: Tree, leaf: int) -> str:
    nodes = [node for node in map(int, path(tree, leaf)) if tree.kind[node] == Kind.ACTION]
    return "\n".join(text_in(tree.info[node]) or "" for node in nodes if tree.source[node] != Source.REPLAYED)
