"""A penalty on n-grams that an action repeats."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.tree import (
    Floats,
    Ints,
    RewardRange,
    Tree,
    begins_turn,
    counted,
    ends_turn,
    path,
    sampled_tokens,
    sum_to_root,
    token_node,
    turn_start,
)
from bough.tree.endings import path_reward_nodes


@piece
class Repetition:
    """Channel "repetition": HAPO's penalty (arXiv 2505.11225) on n-grams that occur earlier in the same action.

    It costs `penalty` times the share of the tokens that the policy sampled on a path which are in a repeated n-gram,
    at the last action, or at the leaf where other paths go through that action. For n = 3 and penalty 1:

        a b c a b c     abc occurs again: its last three tokens are repeated    -.5
        a a a a         aaa occurs again, from the second token on              -.75
        a b c a b       no n-gram occurs twice                                   0

    HAPO takes it from "Demystifying long chain-of-thought" (2502.03373), and leaves it off by default. In an
    environment of several turns n-grams are compared within one action, since turns often look alike.

    Attributes:
        n: Tokens of an n-gram, at least 1.
        penalty: The cost of a path without any other token, >= 0.
    """

    n: Annotated[int, AtLeast(1)] = 3
    penalty: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 0.5

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Down to minus `penalty`."""
        return {"repetition": RewardRange(low=-self.penalty, high=0, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each counted path, or at its leaf where other paths go through that action."""
        return [{"repetition": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        ends = counted(tree)
        repeated = sum_to_root(tree, repeated_tokens(tree, self.n))[ends]
        paid = np.zeros(tree.nodes)
        paid[path_reward_nodes(tree, ends)] = 0.0 - self.penalty * repeated / np.maximum(
            sum_to_root(tree, sampled_tokens(tree))[ends], 1.0
        )
        return paid


def repeated_tokens(tree: Tree, n: int) -> Floats:
    """[N] float64: of the turn that ends at each node, the sampled tokens in an n-gram that occurs earlier in the turn.

    Args:
        tree: The tree.
        n: Tokens of an n-gram.
    """
    place, turn = _turn_tokens(tree)
    tokens, node = tree.token[place], np.where(tree.sampled[place], turn, -1)
    if len(tokens) < n:
        return np.zeros(tree.nodes)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, n)
    of = np.lib.stride_tricks.sliding_window_view(node, n)
    start = np.flatnonzero((of == of[:, :1]).all(1) & (of[:, 0] >= 0))
    _, first = np.unique(np.column_stack([of[start, 0], windows[start]]), axis=0, return_index=True)
    again = np.delete(start, first)
    covered = np.zeros(len(tokens), dtype=np.bool_)
    for offset in range(n):
        covered[again + offset] = True
    return np.bincount(node[covered], minlength=tree.nodes).astype(np.float64)


def _turn_tokens(tree: Tree) -> tuple[Ints, Ints]:
    """The places of the tokens of all turns, and the last node of their turn, turn by turn.

    A piece that several turns share is in each of them.
    """
    ends, starts, first = ends_turn(tree), begins_turn(tree), turn_start(tree)
    node = token_node(tree)
    span: list[int] = tree.span.tolist()
    whole = np.flatnonzero((ends & starts)[node])
    places, turns = [whole], [node[whole]]
    for end in np.flatnonzero(ends & ~starts).tolist():
        walk = path(tree, end)
        pieces: list[int] = walk[walk >= first[end]].tolist()
        own = np.concatenate([np.arange(span[piece], span[piece + 1]) for piece in pieces])
        places.append(own)
        turns.append(np.full(len(own), end))
    return np.concatenate(places).astype(np.int64), np.concatenate(turns).astype(np.int64)
