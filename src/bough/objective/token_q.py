"""The TD loss of a Q-function of tokens that the policy itself is."""

from typing import Annotated, ClassVar

from bough.needs import CRITIC, Need, value_head
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import Above, AtLeast, Between, piece


@piece
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

    tau: Annotated[float, Above(0)] = 0.1
    coefficient: Annotated[float, AtLeast(0)] = 1.0
    value_first: Annotated[float, Between(0, 1)] = 0.1
    head: str = "value"

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
