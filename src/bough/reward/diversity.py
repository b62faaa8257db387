"""A bonus for rewarded paths that differ from the others of their task."""

import zlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from bough.piece import AtLeast, piece
from bough.tree import Floats, Ints, RewardRange, Source, Tree, counted, ends_turn, last_where, sum_to_root, texts_at
from bough.tree.endings import path_reward_nodes

DIMENSIONS = 512
"""Length of the vector of a text."""


@piece
class Diversity:
    """Channel "diversity": ExIt's bonus (arXiv 2509.04575), the return of a path times its distance from the others.

    With v the vectors of the texts of a task's paths, scaled to length 1, and c their mean:

        distance = 1 - cosine of v and c        bonus = weight * environment's return * distance / largest distance

    The texts aaaa, aaaa, bbbb with returns 1, 0, 1 have the distances .106, .106, .553 and, with weight 1, the bonuses
    .191, 0, 1. A path without a positive return gets none, and neither does a group of equal texts. Text is the agent's
    own actions, without those of `Task.start`. A vector counts the groups of three characters of the text, hashed to
    512 numbers; the paper has an embedding model, and its scale could not be checked. It is paid at the last action,
    or at the leaf where other paths go through that action.

    Attributes:
        weight: The bonus of the most distant path, as a fraction of its return, >= 0.
    """

    weight: Annotated[float, AtLeast(0)] = 0.5

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Up to `weight` times the environment's return of the path, which has no bound here."""
        return {"diversity": RewardRange(low=0, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each counted path, or at its leaf where other paths go through that action."""
        ends = [counted(tree) for tree in group]
        far = distances([text for tree, leaves in zip(group, ends, strict=True) for text in _texts(tree, leaves)])
        most, place = far.max(initial=0.0), np.cumsum([0, *map(len, ends)])
        paid = [np.zeros(tree.nodes) for tree in group]
        for at, (tree, leaves) in enumerate(zip(group, ends, strict=True)):
            if most > 0:
                earned = np.maximum(sum_to_root(tree, tree.env_reward)[leaves], 0.0)
                bonus = self.weight * earned * far[place[at] : place[at + 1]] / most
                paid[at][path_reward_nodes(tree, leaves)] = bonus
        return [{"diversity": each} for each in paid]


def distances(texts: Sequence[str]) -> Floats:
    """[n]: the cosine distance of each text to the mean of all; 0 for equal texts, rounding aside."""
    vectors = _vectors(texts)
    centre = vectors.mean(axis=0) if texts else np.zeros(DIMENSIONS)
    norm = np.linalg.norm(centre)
    far = 1.0 - vectors @ centre / norm if norm else np.zeros(len(texts))
    return np.where(far > 1e-9, far, 0.0)


def _vectors(texts: Sequence[str]) -> Floats:
    """[n, DIMENSIONS], each of length 1: the hashed groups of three characters; a shorter text is one group."""
    counts = np.zeros((len(texts), DIMENSIONS))
    plain = [number for number, text in enumerate(texts) if len(text) > 2 and text.isascii()]
    if plain:
        data = np.frombuffer("".join(texts[number] for number in plain).encode(), dtype=np.uint8)
        length = np.asarray([len(texts[number]) for number in plain])
        end, row = np.cumsum(length), np.repeat(np.arange(len(plain)), length)
        inside = np.ones(len(data), dtype=np.bool_)
        inside[end - 1] = inside[end - 2] = False
        first, second, third = (table[data[place:]] for place, table in enumerate(_TABLES))
        place = (first[:-2] ^ second[:-1] ^ third)[inside[:-2]]
        counts[plain] = np.bincount(
            row[:-2][inside[:-2]] * DIMENSIONS + place, minlength=len(plain) * DIMENSIONS
        ).reshape(len(plain), DIMENSIONS)
    for number in set(range(len(texts))) - set(plain):
        for begin in range(max(1, len(texts[number]) - 2)):
            group = texts[number][begin : begin + 3].encode(errors="surrogatepass")
            counts[number, zlib.crc32(group) % DIMENSIONS] += 1.0
    counts /= np.sqrt(np.einsum("ij,ij->i", counts, counts))[:, None]
    return counts


def _tables() -> list[NDArray[np.int64]]:
    """[3][256]: the hash of three bytes is the exclusive or of one entry for each; a cyclic code is linear."""
    empty = zlib.crc32(bytes(3))
    groups = [[bytes(place) + bytes([value]) + bytes(2 - place) for value in range(256)] for place in range(3)]
    tables = [[(zlib.crc32(group) ^ empty) % DIMENSIONS for group in each] for each in groups]
    return [np.asarray(table) ^ (empty % DIMENSIONS if place == 0 else 0) for place, table in enumerate(tables)]


_TABLES = _tables()


def _texts(tree: Tree, leaves: Ints) -> list[str]:
    """The agent's own actions on the path to each leaf, one below the other."""
    # The text of an action of several pieces is at its last one.
    own = ends_turn(tree) & (tree.source != Source.REPLAYED)
    node = np.flatnonzero(own)
    texts, row = texts_at(tree, node), np.arange(len(node))
    rows = np.full(tree.nodes, -1)
    rows[node] = row
    newest = rows[last_where(tree, own)]
    # Actions that follow each other without a branch are neighbours among `texts`: a path is a few slices of it.
    above = newest[tree.parent[node]]
    first: list[int] = np.maximum.accumulate(np.where(above != row - 1, row, 0)).tolist()
    before: list[int] = above.tolist()
    ends: list[int] = newest[leaves].tolist()
    joined = list[str]()
    for end in ends:
        slices, last = list[list[str]](), end
        while last >= 0:
            slices.append(texts[first[last] : last + 1])
            last = before[first[last]]
        joined.append("\n".join(chain.from_iterable(reversed(slices))))
    return joined
