"""Demonstrations beside samples: a weighted sum of imitation and another loss."""

from typing import Annotated

from bough.lazy import Tensor
from bough.needs import DEMONSTRATIONS, REVISED_PATHS, SEPARATE_DEMONSTRATIONS, TEACHER_TURNS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective, compute_loss
from bough.objective.ppo import PpoClip
from bough.objective.take import take
from bough.piece import Between, piece


@piece
class SftMix:
    """Imitation mixed into reinforcement (Trinity-RFT, arXiv 2505.17826); needs demonstrations in the batches.

        loss = (1 - mu) * objective of sampled tokens - mu * mean over demonstrated tokens of log p

    Each mean is over its own tokens of the whole optimizer step. In the release each part is a mean over its rows of
    a micro-batch, scaled by the expected number of rows of its kind: correct only while the micro-batches are
    as expected.

    Metrics: those of the objective; `expert_nll`, nats, the mean over demonstrated tokens; `expert_mu`.

    Attributes:
        objective: The loss on sampled tokens.
        mu: Weight of imitation, in [0, 1].
    """

    objective: Objective = PpoClip()
    mu: Annotated[float, Between(0, 1)] = 0.1

    @property
    def needs(self) -> frozenset[Need]:
        """Demonstrations."""
        return frozenset({DEMONSTRATIONS})

    @property
    def gives(self) -> frozenset[Need]:
        """The objective inside gets sampled tokens only, so demonstrations of all kinds are fine."""
        return frozenset({SEPARATE_DEMONSTRATIONS, TEACHER_TURNS, REVISED_PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the mixture."""
        return mix(columns, self.objective, self.mu, None)


def mix(columns: LossInputs, objective: Objective, mu: float, weight: Tensor | None) -> Loss:
    """Computes an objective on sampled tokens, and imitation on demonstrated ones.

    Args:
        columns: Of both.
        objective: Gets the sampled tokens only.
        mu: Weight of imitation; the objective has the rest.
        weight: [M], of each demonstrated token; None for 1.

    Raises:
        ValueError: when the columns do not mark demonstrated tokens.
    """
    if columns.expert is None:
        raise ValueError(
            "got columns without `expert`; need demonstrations: `demonstrations=Demonstrations(...)` in the run"
        )
    sampled = compute_loss(objective, take(columns, ~columns.expert))
    loss_weight = columns.loss_weight.where(columns.expert, 0.0)
    likelihood = columns.logprob if weight is None else weight * columns.logprob
    metrics = {
        **sampled.metrics,
        "expert_nll": -(loss_weight * columns.logprob).sum().detach(),
        # Weights of demonstrations sum to 1 over a step, so this is mu for every split of the step.
        "expert_mu": mu * loss_weight.sum(),
    }
    return Loss(value=(1 - mu) * sampled.value - mu * (loss_weight * likelihood).sum(), metrics=metrics)
