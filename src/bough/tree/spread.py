"""From advantages of nodes or paths to the credit of tokens: the one helper that every credit rule ends with."""

import numpy as np

from bough.tree.stages import Credited, Rewarded
from bough.tree.tree import Floats
from bough.tree.walk import counted, paths_through, sum_of_subtree, token_node, trained


def spread_nodes(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Give every trained token the advantage of its node: the paths through it agree.

    Args:
        rewarded: The tree.
        advantage: [N]; read at `ACTION` nodes only.
    """
    return _spread(rewarded, np.maximum(advantage, 0.0), np.minimum(advantage, 0.0))


def spread_paths(rewarded: Rewarded, advantage: Floats) -> Credited:
    """Give every trained token the advantages of the counted paths through it, what gains and what loses apart.

    Args:
        rewarded: The tree.
        advantage: [P], in the order of `counted(tree)`.
    """
    tree = rewarded.tree
    ends = counted(tree)
    if advantage.shape != ends.shape:
        raise ValueError(
            f"spread_paths: got advantages of shape {advantage.shape}; need one for each of {len(ends)} paths"
        )
    through = np.maximum(paths_through(tree), 1)
    sides: list[Floats] = []
    for side in (np.maximum(advantage, 0.0), np.minimum(advantage, 0.0)):
        at_leaf = np.zeros(tree.nodes, dtype=np.float64)
        at_leaf[ends] = side
        sides.append(sum_of_subtree(tree, at_leaf) / through)
    return _spread(rewarded, *sides)


def _spread(rewarded: Rewarded, gain: Floats, lose: Floats) -> Credited:
    tree = rewarded.tree
    node, learn = token_node(tree), trained(tree)
    # `+ 0.0` turns a minus zero into a zero, so that equal credits are equal bit for bit.
    columns = [np.where(learn, side[node], 0.0).astype(np.float32) + np.float32(0.0) for side in (gain, lose)]
    return Credited(rewarded=rewarded, gain=columns[0], lose=columns[1])
