"""Advantages of tokens that several paths share: each path's own, or their mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bough.credit.grpo import Grpo
from bough.credit.normalize import mean_at
from bough.tree import Credited, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Arpo:
    """ARPO (arXiv 2507.19849): GRPO on a tree; shared tokens get every path's advantage, or the mean of them.

    With A_p the advantage of path p by `base`, among all paths of its task, and t a token:

        "soft"    each path gives A_p to t, also where it shares t with others
        "hard"    each path gives to t the mean of A_q over all paths q through t

    A chain that came to 1 and was forked in the middle, to 0:

        A      0.707 and -0.707 behind the fork
        soft   a gain of 0.354 and a loss of 0.354 before it: the mean over the paths of each sign
        hard   0

    Without clipping the two give the same gradient. With it, soft keeps apart what a clipped loss treats differently:
    past the upper bound the gain no longer pulls up while the loss still pulls down. The paper takes soft, in which
    nothing has to be done about sharing; the hard form was not found in released code. Its trees fork after a tool has
    answered where the entropy has risen; that is an explorer's affair.

    Attributes:
        attribution: What shared tokens get.
        base: What the advantages of paths are.
    """

    attribution: Literal["soft", "hard"] = "soft"
    base: Grpo = Grpo()

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = path_view(rewarded)
        advantage = self.base.of_paths(view)
        if self.attribution == "soft":
            return spread_turns(view, advantage[view.path])
        parts = view.by_fork
        return spread_turns(parts, mean_at(advantage[parts.path], parts.node))
