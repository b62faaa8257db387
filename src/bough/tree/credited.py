"""The credited tree: an advantage for each token of each counted path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.tree.path_view import PathView, path_view
from bough.tree.stages import Rewarded, StageError, describe, is_column
from bough.tree.tree import Bools, Floats, Ints, Tree
from bough.tree.walk import count_path_tokens, counted, sum_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credited:
    """A rewarded tree with the advantage of each token of each counted path.

    Paths through a shared token may have different advantages there: one succeeded, another failed. So the
    representation is the path view, with one entry for each token of each path. `token_advantages` computes the two
    columns that losses use.

    Attributes:
        rewarded: The rewarded tree.
        path_advantage: [E] float64, in the order of `path_view([rewarded]).path_tokens`. Entries of tokens that the
            policy did not sample have no effect on a loss.
        value_targets: Regression targets of value heads, by name, [T] float32; nan where there is none. A token shared
            by paths has the mean of their targets.
        excluded_leaves: The leaves of counted paths without a loss, ascending int64; packing skips these paths.

    Raises:
        StageError: when a column is no array of numbers, has another shape or is not finite, or when an excluded leaf
            is not the leaf of a counted path.
    """

    rewarded: Rewarded
    path_advantage: Floats
    value_targets: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    excluded_leaves: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        tree = self.rewarded.tree
        tokens, entries = len(tree.token), count_path_tokens(tree)
        if not is_column(self.path_advantage, entries):
            raise StageError(
                f"Credited.path_advantage: got {describe(self.path_advantage)}; need an array of {entries} numbers, "
                f"one for each action token of each counted path (task {tree.task.id})"
            )
        if not np.all(np.isfinite(self.path_advantage)):
            entry = int(np.flatnonzero(~np.isfinite(self.path_advantage))[0])
            raise StageError(
                f"Credited.path_advantage: got {self.path_advantage[entry]} at entry {entry}; need finite numbers "
                f"(task {tree.task.id})"
            )
        for name, target in self.value_targets.items():
            if not is_column(target, tokens) or np.any(np.isinf(target)):
                raise StageError(
                    f"Credited.value_targets[{name!r}]: got {describe(target)}, or an infinite value; need "
                    f"{tokens} numbers, finite or nan (task {tree.task.id})"
                )
        if len(self.excluded_leaves) and not np.all(np.isin(self.excluded_leaves, counted(tree))):
            raise StageError(
                f"Credited.excluded_leaves: got {self.excluded_leaves}; need leaves of counted paths, which are "
                f"{counted(tree)} (task {tree.task.id})"
            )

    @property
    def tree(self) -> Tree:
        """The trajectory tree."""
        return self.rewarded.tree

    @property
    def positive(self) -> Floats:
        """[T] float32, >= 0: see `token_advantages`."""
        return token_advantages([self], path_view([self.rewarded]))[0]

    @property
    def negative(self) -> Floats:
        """[T] float32, <= 0: see `token_advantages`."""
        return token_advantages([self], path_view([self.rewarded]))[1]

    @property
    def advantage(self) -> Floats:
        """[T] float32: the mean advantage of the included paths through each token."""
        positive, negative = token_advantages([self], path_view([self.rewarded]))
        return positive + negative

    @property
    def turn_advantage(self) -> Floats | None:
        """[S] float32, the advantage of each turn in the order of `path_view`; None where tokens of a turn differ.

        A turn without tokens has 0.
        """
        view = path_view([self.rewarded])
        step, advantage = view.path_tokens.step, self.path_advantage
        of_turns = np.zeros(len(view.path))
        of_turns[step[::-1]] = advantage[::-1]
        return of_turns.astype(np.float32) if np.array_equal(of_turns[step], advantage) else None

    @property
    def is_zero(self) -> bool:
        """Whether every sampled token of every included path has a zero advantage."""
        view = path_view([self.rewarded])
        read = included([self], view) & view.sampled[view.path_tokens.token]
        return not self.path_advantage[read].any()


def included(credited: Sequence[Credited], view: PathView) -> Bools:
    """[E] bool: whether the path of each entry is included."""
    stays = np.ones(len(view.through), dtype=np.bool_)
    for at, each in zip(view.offset.tolist(), credited, strict=False):
        stays[at + each.excluded_leaves] = False
    return stays[view.leaf[view.path[view.path_tokens.step]]]


def included_leaves(credited: Credited) -> Ints:
    """The leaves of the included counted paths, ascending."""
    return np.setdiff1d(counted(credited.tree), credited.excluded_leaves)


def join_advantages(credited: Sequence[Credited]) -> Floats:
    """[E] float64: `Credited.path_advantage` of all trees, end to end."""
    return np.concatenate([np.zeros(0), *(each.path_advantage for each in credited)])


def token_advantages(credited: Sequence[Credited], view: PathView) -> tuple[Floats, Floats]:
    """[T] float32 each: positive and negative advantage of each token of the batch.

    A clipped loss is not linear in the advantage, so the two signs are separate. A[p, t] is the advantage of path p
    at token t, means are over the included paths through t, and the value is 0 where the policy did not sample:

        positive[t] = mean_p max(A[p, t], 0)        negative[t] = mean_p min(A[p, t], 0)

    Args:
        credited: The trees.
        view: `path_view` of their `rewarded`.
    """
    stays = included(credited, view)
    token, advantage = view.path_tokens.token[stays], join_advantages(credited)[stays]
    sides = np.maximum(advantage, 0.0), np.minimum(advantage, 0.0)
    means = (np.where(view.sampled, mean_at(view, token, side), 0.0) for side in sides)
    positive, negative = (mean.astype(np.float32) + np.float32(0.0) for mean in means)
    return positive, negative


def mean_at(view: PathView, token: Ints, value: Floats, *, nothing: float = 0.0) -> Floats:
    """[T]: the mean of `value` [n] over equal `token` [n]; `nothing` at the other tokens."""
    count = len(view.sampled)
    if not view.shared:
        mean = np.full(count, nothing, dtype=np.float32)
        mean[token] = value
        return mean
    number = np.bincount(token, minlength=count)
    return np.where(number > 0, sum_at(token, value, count) / np.maximum(number, 1), nothing)
