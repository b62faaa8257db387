"""Smaller advantages for groups that are in the batch several times."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.credit import Credit, compares_with
from bough.credit.grpo import Grpo
from bough.needs import COPIES, Need, estimate
from bough.piece import Above, Between, piece
from bough.tree import Credited, Rewarded, path_view


@piece
class DampedCopies:
    """VSPO's value smoothing (arXiv 2512.07478), experimental: a group that is m times in the batch gets A / sqrt(m).

    With A the advantage of `credit`, and m > 1 copies of a group, of which `ValueResampling` gives the number:

        A / sqrt(m), and with `max_advantage` bounded by it

    so the copies together weigh sqrt(m) times as much as one of them. Groups with one copy keep their advantage. m 4
    and A 1.6, -.4: .8, -.2 in each copy.

    Experimental: the paper's formula was not available; the root and the bound are choices made here.

    Attributes:
        credit: The rule.
        power: m is raised to it: 0 for no damping, 1 for copies that weigh as much as one.
        max_advantage: Largest absolute advantage of a copied group, > 0; None for no bound.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({estimate(COPIES)})

    credit: Credit = field(default_factory=Grpo)
    power: Annotated[float, Between(0, 1)] = 0.5
    max_advantage: Annotated[float | None, Above(0)] = None

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """That of `credit`."""
        return compares_with(self.credit)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        return [self._damped(each) for each in self.credit(rewarded)]

    def _damped(self, credited: Credited) -> Credited:
        view = path_view([credited.rewarded])
        copies = np.maximum(1.0, np.nan_to_num(view.of_tokens(COPIES), nan=1.0))[view.path_tokens.token]
        damped = credited.path_advantage / copies**self.power
        if self.max_advantage is not None:
            damped = np.clip(damped, -self.max_advantage, self.max_advantage)
        return replace(credited, path_advantage=np.where(copies > 1, damped, credited.path_advantage))
