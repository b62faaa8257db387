"""The stages a tree goes through on its way to a loss: `Tree -> Rewarded -> Credited`, each frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from bough.tree.tree import Floats, Ints, Tree
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credited:
    """A rewarded tree with the credit of each token.

    Branches may disagree at a token they share: one path through it succeeded, another failed. A clipped loss treats
    the two differently, so what gains and what loses is kept apart. With A[p, t] the advantage that path p gives to
    token t, and the means taken over the counted paths through t:

        positive[t] = mean_p max(A[p, t], 0)        negative[t] = mean_p min(A[p, t], 0)

    A rule with one advantage per token fills one of the two.

    Attributes:
        rewarded: What was rewarded.
        positive: [T] float32, >= 0; 0 at every token that is not trained.
        negative: [T] float32, <= 0; 0 at every token that is not trained.
        value_targets: What value heads should have said, by name, [T] float32; nan where there is nothing to say. Where
            paths share a token it is their mean.
        turn_advantage: [S] float32, the advantage of each turn of each counted path, in the order of `path_view`;
            losses over whole turns or paths need it where branches disagree. None when the tokens of a turn differ.
        excluded_leaves: The leaves of counted paths that no loss may see, ascending int64; a batch is as if they had
            not been.

    Raises:
        StageError: when a column is no array of numbers, has another shape, a wrong sign, or is not finite; or when a
            leaf that is left out is no leaf of a counted path.
    """

    rewarded: Rewarded
    positive: Floats
    negative: Floats
    value_targets: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    turn_advantage: Floats | None = None
    excluded_leaves: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        tokens = len(self.rewarded.tree.token)
        for name, column, sign in (("positive", self.positive, 1), ("negative", self.negative, -1)):
            if not is_column(column, tokens) or not np.all(np.isfinite(column)) or np.any(sign * column < 0):
                raise StageError(
                    f"Credited.{name}: got {describe(column)}, or a value of the wrong sign or not finite; need "
                    f"{tokens} finite numbers {'>' if sign > 0 else '<'}= 0 (task {self.rewarded.tree.task.id})"
                )
        for name, goal in self.value_targets.items():
            if not is_column(goal, tokens) or np.any(np.isinf(goal)):
                raise StageError(
                    f"Credited.value_targets[{name!r}]: got {describe(goal)}, or an infinite value; need "
                    f"{tokens} numbers, finite or nan (task {self.rewarded.tree.task.id})"
                )
        if len(self.excluded_leaves) and not np.all(np.isin(self.excluded_leaves, counted(self.rewarded.tree))):
            raise StageError(
                f"Credited.excluded_leaves: got {self.excluded_leaves}; need leaves of counted paths, which are "
                f"{counted(self.rewarded.tree)} (task {self.rewarded.tree.task.id})"
            )

    @property
    def tree(self) -> Tree:
        """What was grown."""
        return self.rewarded.tree

    @property
    def advantage(self) -> Floats:
        """[T] float32: the mean advantage of the paths through each token."""
        return self.positive + self.negative
