"""The TD loss of a Q-function of tokens that the policy itself is."""

import math
from dataclasses import dataclass
from typing import ClassVar

from bough.needs import CRITIC, Need, value_head
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenQ:
    """B-Coder's TD loss (arXiv 2310.03173): the policy is a Q-function; needs `ConservativeBellman`'s targets.

    With Q = V + tau * log p of a sampled token, V a value head, and g its target:

        loss = coefficient * mean of (Q - g)^2 over the tokens with a target

    V .2, log p -1, tau .5, target .25: Q is -.3, the loss .3025, its gradient -1.1 by V and -.55 by log p. In the first
    part `value_first` of the run only V learns, so that Q starts at the values of the policy. Advantages have no
    effect, so the loss counts as a regularizer.

    The paper adds a loss on the advantages and one of imitation, both on reference programs (`SftMix`).

    Metrics: `q_error`, mean square; `q_bias`, mean of target minus Q; `q`, its mean.

    Attributes:
        tau: Q per nat of log-probability, > 0; that of the targets.
        coefficient: Factor on the loss, >= 0.
        value_first: Fraction of the run in which only V learns, in [0, 1].
        head: The name of the value head.
    """

    regularises: ClassVar[bool] = True

    tau: float = 0.1
    coefficient: float = 1.0
    value_first: float = 0.1
    head: str = "value"

    def __post_init__(self) -> None:
        if not 0 < self.tau < math.inf or not 0 <= self.coefficient < math.inf or not 0 <= self.value_first <= 1:
            raise ValueError(
                f"TokenQ: got tau={self.tau}, coefficient={self.coefficient}, value_first={self.value_first}; need tau "
                "above 0, coefficient of 0 or more, and value_first from 0 to 1"
            )

    @property
    def needs(self) -> frozenset[Need]:
        """The value head and its targets."""
        return frozenset({CRITIC, value_head(self.head)})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when there is no such head.
        """
        if self.head not in columns.values:
            raise ValueError(
                f"TokenQ.head: got {self.head!r} and a critic with {sorted(columns.values)}; need one it has"
            )
        head = columns.values[self.head]
        known = ~head.target.isnan()
        logprob = columns.logprob.detach() if columns.progress < self.value_first else columns.logprob
        q, target = head.value[known] + self.tau * logprob[known], head.target[known]
        weight = columns.loss_weight[known] * head.scale
        error = (weight * (q - target).square()).sum()
        metrics = {"q_error": error, "q_bias": (weight * (target - q)).sum(), "q": (weight * q).sum()}
        return Loss(value=self.coefficient * error, metrics={name: value.detach() for name, value in metrics.items()})
