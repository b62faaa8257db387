"""DPO weighted by the gap of the advantages."""

import math
from dataclasses import dataclass

from bough.lazy import torch
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.pairs import Pairs
from bough.tree.needs import PATHS, REFERENCE, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class WDpo:
    """W-DPO (StepORLM, arXiv 2509.22558): DPO with pairs weighted by their gap in advantage; needs path view.

    Experimental: in the paper pairs are weighted by how much better the winner was judged, and its formula could
    not be checked. Here, with z = beta * margin as in `Dpo` and g the difference of the two advantages:

        loss = - sum over pairs of g * log sigmoid(z) / sum of g

    Gaps of 2 and 1 weigh 2/3 and 1/3. Weights that sum to 1 leave the size of the loss to `beta`.

    Metrics: as of `Dpo`.

    Attributes:
        beta: Strength of the pull to the reference, > 0.
        pairs: Selects the preference pairs.
    """

    beta: float = 0.1
    pairs: Pairs = Pairs(choice="all")

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise ValueError(f"WDpo.beta: got {self.beta}; need a number above 0")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and the reference's log-probabilities."""
        return frozenset({PATHS, REFERENCE})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        pairs = self.pairs(columns, "WDpo")
        margin = self.beta * pairs.margin(columns)
        # Every gap is above 0, so the sum is 0 only without pairs.
        total = pairs.gap.sum() if len(pairs.gap) else pairs.gap.new_ones(())
        return pairs.loss(-(pairs.gap * torch.nn.functional.logsigmoid(margin)).sum() / total, margin)
