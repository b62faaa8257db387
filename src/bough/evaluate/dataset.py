"""Two measures of a data set: trajectory quality and state-action coverage (arXiv 2111.04714)."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from bough.tree import Kind, Tree, counted, sum_to_root, text_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a data set covers.

    Attributes:
        pairs: Distinct pairs of a state and an action.
        states: Distinct states in which an action was taken.
        actions: Actions, with repetitions.
        unknown: Actions in states without a key, which are compared by their texts.
    """

    pairs: frozenset[bytes]
    states: frozenset[bytes]
    actions: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetMeasures:
    """The measures of a data set.

    Attributes:
        paths: Number of paths that ended.
        mean_return: Mean of their returns: the sum of the environment's rewards along a path.
        random_return: Mean return of random actions; nan when it was not given.
        best_return: Mean return of the best policy; nan when it was not given.
        actions: Number of actions.
        states: Number of distinct states in which an action was taken.
        pairs: Number of distinct pairs of a state and an action.
        unknown: Actions in states without a key.
        reference_pairs: Distinct pairs of the reference data set; 0 without one.
    """

    paths: int
    mean_return: float
    random_return: float
    best_return: float
    actions: int
    states: int
    pairs: int
    unknown: int
    reference_pairs: int

    @property
    def quality(self) -> float:
        """TQ = (mean return - random) / (best - random); nan without both, or when they are equal. It can exceed 1."""
        span = self.best_return - self.random_return
        return (self.mean_return - self.random_return) / span if span else math.nan

    @property
    def coverage(self) -> float:
        """SACo = distinct pairs / distinct pairs of the reference; nan without one. It can exceed 1."""
        return self.pairs / self.reference_pairs if self.reference_pairs else math.nan

    def record(self) -> dict[str, float | int | None]:
        """The measures as JSON data; None for values that are not finite."""
        values = {
            "paths": self.paths,
            "mean_return": self.mean_return,
            "random_return": self.random_return,
            "best_return": self.best_return,
            "trajectory_quality": self.quality,
            "actions": self.actions,
            "states": self.states,
            "state_action_pairs": self.pairs,
            "actions_without_key": self.unknown,
            "reference_pairs": self.reference_pairs,
            "state_action_coverage": self.coverage,
        }
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


def measure(
    trees: Sequence[Tree],
    *,
    random_return: float = math.nan,
    best_return: float = math.nan,
    reference: Sequence[Tree] = (),
) -> DatasetMeasures:
    """Measures trees as a data set: trajectory quality (TQ) and state-action coverage (SACo), of arXiv 2111.04714.

    High TQ: imitation suffices. Low TQ and high SACo: methods that learn from others' actions have an advantage. In
    the paper the best policy and the reference are those of one online run; any policy and any trees can be named
    here. The paper estimates the counts by HyperLogLog; these are exact.

    A state is its key; without one, the text of the observation in its task. Both are hashed to 64 bits. A shared
    prefix of a tree is one action, and its return counts in each of its paths.

    Args:
        trees: The data set. Paths that failed are left out.
        random_return: Mean return of random actions, on the same tasks.
        best_return: Mean return of the best policy, on the same tasks.
        reference: The reference data set.

    Raises:
        ValueError: when no path has ended, or a return is not finite.
    """
    returns = [value for tree in trees for value in path_returns(tree)]
    if not returns:
        raise ValueError(f"measure: got {len(trees)} trees without a path that ended; need at least one")
    if wrong := [value for value in returns if not math.isfinite(value)]:
        raise ValueError(f"measure: got a path with the return {wrong[0]}; need trees with finite rewards")
    found = cover(trees)
    return DatasetMeasures(
        paths=len(returns),
        mean_return=math.fsum(returns) / len(returns),
        random_return=random_return,
        best_return=best_return,
        actions=found.actions,
        states=len(found.states),
        pairs=len(found.pairs),
        unknown=found.unknown,
        reference_pairs=len(cover(reference).pairs),
    )


def path_returns(tree: Tree) -> list[float]:
    """[P] The undiscounted return of each path that ended."""
    return sum_to_root(tree, tree.env_reward)[counted(tree)].tolist()


def cover(trees: Iterable[Tree]) -> Coverage:
    """The distinct states and pairs of trees, over the paths that ended."""
    pairs, states = set[bytes](), set[bytes]()
    actions = unknown = 0
    for tree in trees:
        for state, action, known in _actions(tree):
            states.add(state)
            pairs.add(_hash(state + action.encode(errors="surrogatepass")))
            actions, unknown = actions + 1, unknown + (not known)
    return Coverage(pairs=frozenset(pairs), states=frozenset(states), actions=actions, unknown=unknown)


def _actions(tree: Tree) -> Iterator[tuple[bytes, str, bool]]:
    """Each action: the hash of its state, its text, and whether the state has a key."""
    used = np.zeros(tree.nodes, dtype=np.bool_)
    used[counted(tree)] = True
    for node in range(tree.nodes - 1, 0, -1):
        used[tree.parent[node]] |= used[node]
    for node in np.flatnonzero(used & (tree.kind == Kind.ACTION)).tolist():
        if (text := text_in(tree.info[node])) is None:
            continue  # A piece before the last of an action.
        before = int(tree.parent[node])
        while tree.kind[before] == Kind.ACTION:
            before = int(tree.parent[before])
        key = int(tree.state_key[before])
        shown = f"{tree.task.id}\n{text_in(tree.info[before]) or ''}".encode(errors="surrogatepass")
        yield (key.to_bytes(8, "big", signed=True) if key else _hash(shown)), text, bool(key)


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=8).digest()
