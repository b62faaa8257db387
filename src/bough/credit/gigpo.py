"""Advantages from comparing paths, and turns in the same state."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.keys import state_of
from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.credit.states import similar_of
from bough.needs import STATE_KEYS, Need
from bough.piece import Above, Between, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns


@piece
class Gigpo:
    """GiGPO (arXiv 2505.10978): paths of a task, and turns in the same state; needs state keys.

    With R_p the return of a path p of a task, G_t = sum over k of discount^k * r_(t+k) the return from turn t on, and z
    the difference to the group's mean, divided by its standard deviation (ddof 1) with norm "mean_std":

        A_(p,t) = z(R_p; task) + weight * z(G_t; task and state of turn t)

    Two paths of three turns, all in states a, b and a unique one; the first has reward 1 at its end; discount 0.9:

        norm="mean"       0.905   0.950   0.500  -0.905  -0.950  -0.500
        norm="mean_std"   1.414   1.414   0.707  -1.414  -1.414  -0.707

    A path that returns to a state enters its group once for each visit: a loop delays the reward, and
    the later visit is preferred. A turn in a state of no other turn, or without a key, gets 0 from the second
    term. State keys must not contain step counters. On a tree, a turn shared by paths counts once for each of them.

    The authors' scripts divide by the standard deviation on ALFWorld and do not on WebShop and Sokoban. Their code
    (`gigpo/core_gigpo.py` of verl-agent) keeps a row for each turn and computes means and deviations of R over rows.
    So a path weighs as much as it has turns, and a task's only row gets its return (`as_released`). The first above
    is then 1.620, 1.620, 0.913. Its sequence matcher ignores frequent letters in texts of 200 letters and
    more, so long texts with few differences look different; only `as_released` does so here.

    Attributes:
        weight: Weight of the comparison by state.
        discount: Per turn, in [0, 1].
        norm: Whether differences are divided by the standard deviation.
        similarity: None: states are the same when their keys are. A number from 0 to 1: states are the same
            when the observations match by this ratio (`difflib.SequenceMatcher`), each text joining the first
            group whose first text it matches; depends on the order of paths. Needs no state keys; the authors use
            0.95.
        epsilon: Added to standard deviations, > 0.
        as_released: Statistics of paths over turns.
    """

    weight: float = 1.0
    discount: Annotated[float, Between(0, 1)] = 0.95
    norm: Literal["mean", "mean_std"] = "mean_std"
    similarity: Annotated[float | None, Between(0, 1, above=True)] = None
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """State keys, unless texts are compared."""
        return frozenset({STATE_KEYS} if self.similarity is None else ())

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        same = (
            state_of(view) if self.similarity is None else similar_of(view, self.similarity, autojunk=self.as_released)
        )
        ahead = sum_ahead(view.reward, np.full(len(view.reward), self.discount), view.start)
        std = "group" if self.norm == "mean_std" else "none"
        by_state = normalize(ahead, same, std=std, epsilon=self.epsilon)
        return spread_turns(view, episode_part(view, std, self.epsilon, self.as_released) + self.weight * by_state)


def episode_part(view: PathView, std: Literal["group", "none"], epsilon: float, as_released: bool) -> Floats:
    """[S] float64: the advantage of each turn's path over the other paths of its task.

    Args:
        view: The batch.
        std: Whether to divide by the standard deviation.
        epsilon: Added to it.
        as_released: Statistics over turns, with a task's only turn keeping its return; else over paths.
    """
    task: Ints = view.task
    if as_released:
        return normalize(view.returns[view.path], task[view.path], std=std, epsilon=epsilon, singleton="raw")
    return normalize(view.returns, task, std=std, epsilon=epsilon)[view.path]
