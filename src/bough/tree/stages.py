"""The rewarded tree, and the error for a piece whose return value does not fit the next stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from bough.tree.tree import Floats, Tree
from bough.tree.walk import counted, sum_to_root

LARGEST = 1e30
"""Largest reward of a node in a channel, in absolute value."""


class StageError(ValueError):
    """The return value of a piece does not fit the next stage. The message names the piece, or the field."""


def is_column(value: object, size: int) -> TypeGuard[NDArray[Any]]:
    """Whether a value is an array [size] of booleans, integers or floats."""
    if not isinstance(value, np.ndarray):
        return False
    column = cast("NDArray[Any]", value)
    return column.shape == (size,) and column.dtype.kind in "fiub"


def describe(value: object) -> str:
    """Describes a value for an error: shape and dtype of an array, the type of anything else."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    column = cast("NDArray[Any]", value)
    return f"{column.dtype} of shape {column.shape}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewarded:
    """A tree with named rewards.

    Attributes:
        tree: The trajectory tree.
        channels: The rewards of each reward piece at each node, [N] float64, already weighted. A node's reward is the
            sum over channels; a path's return is the sum over its nodes.
        estimates: Outputs of models other than the policy, by name, [T] float; nan where there is none. A value head
            of a critic gives the value of the context before each token of an `ACTION` node; a "reference" policy gives
            log-probabilities of such tokens.
        end_values: By the name of a critic's head, [N] float: the value of the final state of each truncated path, at
            its leaf; nan elsewhere.
        checks: Rewards that are measured and never trained on (`evaluation.checks`), by name, [N] float64; nan at the
            leaf of a path without a value. No stage reads them: they are measured when the stages are over.

    Raises:
        StageError: when a channel or an estimate is no array of numbers or has another shape, a channel is not finite,
            or an estimate is infinite.
        ValueError: when a column of `end_values` or `checks` has another shape.
    """

    tree: Tree
    channels: Mapping[str, Floats]
    estimates: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    end_values: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    checks: Mapping[str, Floats] = field(default_factory=dict[str, Floats])

    def __post_init__(self) -> None:
        if self.tree.seats:
            seats = [each.name for each in self.tree.seats]
            raise StageError(f"Rewarded.tree: got a tree of the seats {seats}; need the `seat_view` of one of them")
        for name, paid in self.channels.items():
            if not is_column(paid, self.tree.nodes):
                raise StageError(
                    f"Rewarded.channels[{name!r}]: got {describe(paid)}; need an array of {self.tree.nodes} numbers, "
                    f"one a node (task {self.tree.task.id})"
                )
            if not np.all(np.isfinite(paid)):
                node = int(np.flatnonzero(~np.isfinite(paid))[0])
                raise StageError(
                    f"Rewarded.channels[{name!r}]: got {paid[node]} at node {node}; need finite numbers "
                    f"(task {self.tree.task.id})"
                )
            if paid.size and np.abs(paid).max() > LARGEST:
                node = int(np.abs(paid).argmax())
                raise StageError(
                    f"Rewarded.channels[{name!r}]: got {paid[node]} at node {node}; need at most {LARGEST:g}, so that "
                    f"sums are finite: divide the rewards (task {self.tree.task.id})"
                )
        tokens = len(self.tree.token)
        for name, estimate in self.estimates.items():
            if not is_column(estimate, tokens) or np.any(np.isinf(estimate)):
                raise StageError(
                    f"Rewarded.estimates[{name!r}]: got {describe(estimate)}, or an infinite value; need {tokens} "
                    f"numbers, finite or nan, one a token (task {self.tree.task.id})"
                )
        for column, values in (("end_values", self.end_values), ("checks", self.checks)):
            for name, value in values.items():
                if value.shape != (self.tree.nodes,):
                    raise ValueError(
                        f"Rewarded.{column}[{name!r}]: got shape {value.shape}; need ({self.tree.nodes},), one number "
                        f"a node (task {self.tree.task.id})"
                    )

    @property
    def reward(self) -> Floats:
        """[N] float64: the sum over channels at each node."""
        return np.sum([np.zeros(self.tree.nodes), *self.channels.values()], axis=0)

    def returns(self) -> Floats:
        """[P] float64: the undiscounted return of each counted path, in the order of `counted(tree)`."""
        return sum_to_root(self.tree, self.reward)[counted(self.tree)]
