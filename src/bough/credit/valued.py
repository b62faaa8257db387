"""Runs of sampled tokens or turns with a critic's values, for generalised advantages.

Turns that the policy did not sample (a teacher's, a recipe's) have no value and no credit, and are transparent. A run
continues from the turn before them to the turn after them, without a discount. Their rewards belong to the policy's
last action before them; rewards before its first action are dropped.
"""

from dataclasses import dataclass

import numpy as np

from bough.credit.normalize import Guard, normalize
from bough.needs import FINAL_VALUES, Need
from bough.tree import Floats, Ints, PathView, sum_at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Valued:
    """V tokens, or turns, that the policy sampled, path by path.

    Attributes:
        at: [V] int64, ascending: index of the path token, or turn, in the batch.
        turn: [V] int64, the turn of `PathView`.
        token: [V] int64, index of the token in the batch, the first for a turn, or the last.
        start: [P + 1] int64; path p is start[p] : start[p + 1].
        reward: [V], the reward of each; a turn's reward is at its last token.
        value: [V], of the state before it; nan without a critic.
        end: [P], of the state after the last one of each path: the bootstrap of a truncated path, else 0.
    """

    at: Ints
    turn: Ints
    token: Ints
    start: Ints
    reward: Floats
    value: Floats
    end: Floats


def bootstrap_needs(bootstrap_truncated: bool) -> frozenset[Need]:
    """The critic's values of final states, for a rule that bootstraps truncated paths."""
    return frozenset({FINAL_VALUES} if bootstrap_truncated else ())


def end_values(view: PathView, head: str) -> Floats:
    """[P]: the bootstrap, a head's value of the final state of each truncated path.

    0 where the environment ended the path, and where the final state exceeds the model's context.
    """
    return np.nan_to_num(view.of_ends(head), nan=0.0)


def valued_tokens(view: PathView, head: str, *, bootstrap: bool = False) -> Valued:
    """Returns every sampled token, with a head's value before it."""
    path_tokens = view.path_tokens
    at = np.flatnonzero(view.sampled[path_tokens.token])
    end = end_values(view, head) if bootstrap else np.zeros(view.paths)
    return _valued(view, at, path_tokens.step[at], path_tokens.token[at], view.of_tokens(head), end)


def valued_turns(view: PathView, head: str | None = None, *, bootstrap: bool = False, at_end: bool = False) -> Valued:
    """Returns every turn with a sampled token, with a head's value before the first such token, or the last."""
    end = end_values(view, head) if bootstrap and head is not None else np.zeros(view.paths)
    path_tokens = view.path_tokens
    written = np.flatnonzero(view.sampled[path_tokens.token])
    step = path_tokens.step[written]
    edge = np.diff(step, append=len(view.path)) if at_end else np.diff(step, prepend=-1)
    chosen = written[edge > 0]
    at, token = path_tokens.step[chosen], path_tokens.token[chosen]
    value = np.full(len(view.sampled), np.nan) if head is None else view.of_tokens(head)
    return _valued(view, at, at, token, value, end)


def whiten(value: Floats, *, ddof: int = 1, guard: Guard = "added") -> Floats:
    """[n]: values minus their mean, over their standard deviation; 0 for a single value or a tie."""
    return normalize(value, np.zeros(len(value), dtype=np.int64), ddof=ddof, epsilon=1e-8, guard=guard)


def _valued(view: PathView, at: Ints, turn: Ints, token: Ints, value: Floats, end: Floats) -> Valued:
    until = np.concatenate([[0], np.cumsum(np.bincount(turn, minlength=len(view.path)))])
    start, last = until[view.start], until[1:] - 1
    paid = last >= start[view.path]
    reward = sum_at(last[paid], view.reward[paid], len(at))
    return Valued(at=at, turn=turn, token=token, start=start, reward=reward, value=value[token], end=end)
