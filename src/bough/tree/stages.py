"""The rewarded tree, and the error of a piece that returns what the next stage cannot take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from bough.tree.tree import Floats, Tree
from bough.tree.walk import counted, sum_to_root


class StageError(ValueError):
    """A piece returned what the next stage cannot take. The message names the piece, or the field."""


def is_column(value: object, size: int) -> TypeGuard[NDArray[Any]]:
    """Whether a value is an array [size] of booleans, integers or floats."""
    if not isinstance(value, np.ndarray):
        return False
    column = cast("NDArray[Any]", value)
    return column.shape == (size,) and column.dtype.kind in "fiub"


def describe(value: object) -> str:
    """A value for an error: shape and dtype of an array, the type of anything else."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    column = cast("NDArray[Any]", value)
    return f"{column.dtype} of shape {column.shape}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewarded:
    """A tree with rewards, kept by name.

    Attributes:
        tree: What was grown.
        channels: Per reward piece, what it paid at each node, [N] float64, already weighted. A node's reward is the
            sum over channels; a path's return is the sum over its nodes.
        estimates: What models other than the policy think, by name, [T] float: the values that heads of a critic give
            to what was read before each token of an `ACTION` node, log-probabilities of a "reference" policy at such
            tokens; nan elsewhere.
        end_values: By the name of a critic's head, [N] float: the value of the final state of each truncated path, at
            its leaf; nan elsewhere.

    Raises:
        StageError: when a channel or an estimate is no array of numbers or has another shape, a channel is not finite,
            or an estimate is infinite.
        ValueError: when a column of `end_values` has another shape.
    """

    tree: Tree
    channels: Mapping[str, Floats]
    estimates: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    end_values: Mapping[str, Floats] = field(default_factory=dict[str, Floats])

    def __post_init__(self) -> None:
        for name, paid in self.channels.items():
            if not is_column(paid, self.tree.nodes) or not np.all(np.isfinite(paid)):
                raise StageError(
                    f"Rewarded.channels[{name!r}]: got {describe(paid)}, or a value that is not finite; "
                    f"need {self.tree.nodes} finite numbers, one a node (task {self.tree.task.id})"
                )
        tokens = len(self.tree.token)
        for name, thought in self.estimates.items():
            if not is_column(thought, tokens) or np.any(np.isinf(thought)):
                raise StageError(
                    f"Rewarded.estimates[{name!r}]: got {describe(thought)}, or an infinite value; need {tokens} "
                    f"numbers, finite or nan, one a token (task {self.tree.task.id})"
                )
        for name, value in self.end_values.items():
            if value.shape != (self.tree.nodes,):
                raise ValueError(
                    f"Rewarded.end_values[{name!r}]: got shape {value.shape}; need ({self.tree.nodes},), one number a "
                    f"node (task {self.tree.task.id})"
                )

    @property
    def reward(self) -> Floats:
        """[N] float64: the sum over channels at each node."""
        return np.sum([np.zeros(self.tree.nodes), *self.channels.values()], axis=0)

    def returns(self) -> Floats:
        """[P] float64: the undiscounted return of each counted path, in the order of `counted(tree)`."""
        return sum_to_root(self.tree, self.reward)[counted(self.tree)]
