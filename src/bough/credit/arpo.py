"""Advantages of tokens shared by several paths: each path's own, or their mean."""

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

        "soft"    each path p assigns A_p to t, also where t is shared
        "hard"    each path assigns to t the mean of A_q over all paths q through t

    A chain with return 1, forked in the middle to a return of 0:

        A      0.707 and -0.707 after the fork
        soft   0.354 and -0.354 before it: the mean over the paths of each sign
        hard   0

    Without clipping the two give the same gradient. With clipping, soft separates the two signs: above the upper bound
    the positive part has no gradient while the negative part keeps one. The paper uses soft, which needs no special
    handling of shared tokens; the hard form was not found in released code. Its trees fork after a tool response where
    the entropy has risen; here the explorer does this.

    Attributes:
        attribution: Advantage of shared tokens.
        base: The rule for the advantages of paths.
    """

    attribution: Literal["soft", "hard"] = "soft"
    base: Grpo = Grpo()

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        advantage = self.base.of_paths(view)
        if self.attribution == "soft":
            return spread_turns(view, advantage[view.path])
        parts = view.by_fork
        return spread_turns(parts, mean_at(advantage[parts.path], parts.node))
