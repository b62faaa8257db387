"""The pairwise loss that needs no reward model, on paths or on single answers."""

import math
from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from bough.objective import Columns, Loss, Need
from bough.objective.pairs import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Dpo:
    """DPO (arXiv 2305.18290): pairs of paths or answers by advantage, against a reference; needs path view.

    With lead = (log p - log reference) of the winner minus that of the loser, each summed over its tokens, and z =
    beta * lead:

        loss = mean over pairs of - (1 - smoothing) * log sigmoid(z) - smoothing * log sigmoid(-z)

    Two pairs, each of one token a side, with log p and log reference of winner and loser:

        log p        -1 -2       -3 -1
        reference    -1.5 -1.5   -2 -2
        lead          1          -2           loss at beta .1: (.644397 + .798139) / 2 = .721268

    The paper trains on a fixed set of pairs; here they are what the policy just wrote. Each pair of the optimizer step
    weighs alike, so tasks that tie weigh nothing, and with `choice="all"` large mixed groups weigh most. Trinity-RFT
    0.6.0 adds up the log-probabilities of all pairs before the sigmoid, .744397 above: it learns from one fused pair.

    Metrics: `pairs`, how many; `pair_accuracy`, in what share of them z > 0; `pair_margin`, mean z.

    Attributes:
        beta: How strongly the policy is held to the reference, > 0.
        smoothing: How likely a preference is taken to be the wrong way round, in [0, .5) (conservative DPO, E.
            Mitchell, 2023).
        pairs: What is compared with what.
    """

    beta: float = 0.1
    smoothing: float = 0.0
    pairs: Pairs = Pairs()

    def __post_init__(self) -> None:
        if not 0 < self.beta < math.inf:
            raise ValueError(f"Dpo.beta: got {self.beta}; need a number above 0")
        if not 0 <= self.smoothing < 0.5:
            raise ValueError(f"Dpo.smoothing: got {self.smoothing}; need a number from 0 to below 0.5")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths and the reference's log-probabilities."""
        return frozenset({"paths", "reference"})

    def __call__(self, columns: Columns) -> Loss:
        """The loss."""
        duels = self.pairs(columns, "Dpo")
        margin = self.beta * duels.lead(columns)
        wrong = -(1 - self.smoothing) * logsigmoid(margin) - self.smoothing * logsigmoid(-margin)
        return duels.loss(duels.mean(wrong), margin)


def step_dpo(beta: float = 0.1) -> Dpo:
    """Step-DPO (arXiv 2406.18629): DPO on answers to one context, best over worst; needs trees that fork."""
    return Dpo(beta=beta, pairs=Pairs(unit="turn"))


def mcts_dpo(beta: float = 0.1, smoothing: float = 0.0) -> Dpo:
    """MCTS-DPO (arXiv 2405.00451): DPO on answers to one context, best over second best; needs trees that fork.

    Of equally good answers one is best, and the second is the best of those that are worse. The released code softens
    each pair by how often the search visited its two sides; here `smoothing` is one number for all.
    """
    return Dpo(beta=beta, smoothing=smoothing, pairs=Pairs(unit="turn", choice="best_second"))
