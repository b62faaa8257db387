"""A value model that learns during the search: a Gaussian process on the words of states and actions."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.piece import Above, AtLeast, piece
from bough.search.node import SearchNode
from bough.search.score import value_before
from bough.search.tree import SearchTree
from bough.tree import plain_text


@piece
class Surrogate:
    """Rates actions by the effects of the actions that were executed so far, and by the uncertainty of the estimate.

    The effect of an action is the value of its node less that of the node before. A Gaussian process on the words of
    state and action, with the share of common words as its kernel, is fitted to the effects of all evaluated nodes:

        rating = value before + mean + optimism * standard deviation
        kernel of the words A and B = |A and B| / sqrt(|A| |B|)

    so an action that is unlike all others is tried when no other is clearly better. It makes no request. Before the
    first effect a rating is the value before.

    Attributes:
        optimism: Weight of the standard deviation, >= 0.
        noise: Variance of an effect, in units of the variance of all effects, > 0.
    """

    optimism: Annotated[float, AtLeast(0)] = 0.5
    noise: Annotated[float, Above(0)] = 0.1

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children]."""
        del node
        return self.estimate(tree, children)

    def estimate(self, tree: SearchTree, children: Sequence[SearchNode]) -> list[float]:
        """The rating of each of some nodes by all values so far [children]."""
        done = [each for each in tree.nodes if each.draft is not None and not math.isnan(each.value)]
        effects = np.asarray([each.value - value_before(each) for each in done], dtype=np.float64)
        before = np.asarray([value_before(each) for each in children], dtype=np.float64)
        if not len(effects) or not children:
            return before.tolist()
        seen, new = [_words(each) for each in done], [_words(each) for each in children]
        scale = max(float(effects.std()), 1e-6)
        kernel = np.asarray([[_share(one, other) for other in seen] for one in seen])
        across = np.asarray([[_share(one, other) for other in seen] for one in new])
        solved = np.linalg.solve(kernel + self.noise * np.eye(len(seen)), across.T)
        mean = effects.mean() + solved.T @ (effects - effects.mean())
        spread = np.sqrt(np.maximum(0.0, 1.0 - (across * solved.T).sum(axis=1)))
        return (before + mean + self.optimism * scale * spread).tolist()


def _words(node: SearchNode) -> frozenset[str]:
    """The lines of the state before an action, and the words of the action."""
    if node.draft is None:
        return frozenset()
    lines = plain_text(node.draft.cursor.state.observation).splitlines()
    action = node.draft.parsed.text
    return frozenset({*lines, *(f"> {word}" for word in action.split()), f"> {action}"})


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / math.sqrt(max(1, len(one)) * max(1, len(other)))
