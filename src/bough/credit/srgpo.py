"""Advantages from rewards of single steps, compared in random groups."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.gigpo import episode_part
from bough.credit.keys import group_by, mix
from bough.credit.normalize import normalize
from bough.credit.states import path_key
from bough.needs import Need, channel
from bough.piece import Above, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns


@piece
class Srgpo:
    """SRGPO (SeeNav-Agent, arXiv 2512.02631): outcomes of a task, and step rewards in random groups; needs a channel.

    A step that can be judged on its own has a reward r_t comparable with any other step's, whatever
    their states. With z the z-score (ddof 1) within a group:

        A_(p,t) = z(R_p; task) + weight * z(r_t; random group of `size` steps)

    r_t is the turn's reward in the channel `step`. R_p is the return of the path in all other channels: the authors
    keep outcome and step rewards apart. A penalty that counts in both needs two channels. Two paths of three
    turns, R = 1, 0 and r = 1, 0, 1, 0, 0, 1 in one group:

        1.164   0.251   1.164   -1.164  -1.164  -0.251

    The groups depend on `seed` and on the sampled tokens, not on the order of paths. Remaining steps
    form a smaller group; a single one gets 0 from the second term. Since groups span the batch, a task
    of tied paths may get a signal from its steps.

    The released code (`srgpo/core_srgpo.py`) has a switch that keeps groups within a task, without effect: a later
    branch overwrites it. With rewards 0, 1 of one task and 10, 11 of another, differences are -5.5, -4.5, 4.5, 5.5 and
    not -0.5, 0.5, -0.5, 0.5. It also computes the statistics of R_p over turns, as in `Gigpo`. `as_released` does both.

    Attributes:
        step: Name of the reward channel with the step rewards.
        weight: Weight of the comparison of steps.
        size: Number of steps of one group; 0 for all.
        within: The set from which a group is sampled.
        norm: Whether differences are divided by the standard deviation.
        seed: Seed of the groups.
        epsilon: Added to standard deviations, > 0.
        as_released: Groups from the whole batch, ignoring `within`; statistics of paths over turns.
    """

    compares: ClassVar[Literal["batch"]] = "batch"

    step: str = "step"
    weight: float = 0.5
    size: int = 16
    within: Literal["batch", "task"] = "batch"
    norm: Literal["mean", "mean_std"] = "mean_std"
    seed: int = 0
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __post_init__(self) -> None:
        if self.size < 0 or self.size == 1:
            raise ValueError(f"Srgpo.size: got {self.size}; need 2 or more, or 0 for all steps")

    @property
    def needs(self) -> frozenset[Need]:
        """The channel with the step rewards."""
        return frozenset({channel(self.step)})

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            ValueError: when a tree lacks the channel `step`, or has no other channel.
        """
        for each in rewarded:
            if self.step not in each.channels or len(each.channels) < 2:
                raise ValueError(
                    f"Srgpo.step: got {self.step!r} and the channels {sorted(each.channels)} (task {each.tree.task.id})"
                    "; need a reward that pays this channel for steps, and another one for the outcome"
                )
        view = path_view(rewarded)
        outcome, judged = (path_view([self._only(each, by_step) for each in rewarded]) for by_step in (False, True))
        std = "group" if self.norm == "mean_std" else "none"
        by_step: Floats = normalize(judged.reward, self.groups(view), std=std, epsilon=self.epsilon)
        return spread_turns(view, episode_part(outcome, std, self.epsilon, self.as_released) + self.weight * by_step)

    def _only(self, rewarded: Rewarded, by_step: bool) -> Rewarded:
        """Returns the same tree with only the step rewards, or without them."""
        channels = {name: paid for name, paid in rewarded.channels.items() if (name == self.step) == by_step}
        return replace(rewarded, channels=channels)

    def groups(self, view: PathView) -> Ints:
        """[S] int64: the random group of each turn."""
        within_task = self.within == "task" and not self.as_released
        pool = view.task[view.path] if within_task else np.zeros(len(view.path), dtype=np.int64)
        if self.size == 0:
            return pool
        luck = mix(path_key(view)[view.path], view.turn, np.full(len(view.path), self.seed, dtype=np.int64))
        order = np.lexsort((luck, pool)) if within_task else np.argsort(luck)
        begin = np.concatenate([[0], np.cumsum(np.bincount(pool))])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begin[pool[order]]
        return group_by(pool, rank // self.size)
