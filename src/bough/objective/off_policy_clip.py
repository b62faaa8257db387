"""A clipped loss on a teacher's tokens, beside another loss on sampled ones."""

import math
from typing import Annotated, Literal

from bough.lazy import torch
from bough.needs import (
    DEMONSTRATIONS,
    OLD_LOGPROBS,
    REVISED_PATHS,
    SEPARATE_DEMONSTRATIONS,
    TEACHER_TURNS,
    Need,
)
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective, compute_loss
from bough.objective.ppo import PpoClip
from bough.objective.take import take
from bough.piece import AtLeast, Between, piece


@piece
class OffPolicyClip:
    """A teacher's tokens with an off-policy ratio and a clip (as LUFFY, arXiv 2504.14945); needs demonstrations.

    With r the ratio of the trained policy's probability p of a demonstrated token to a denominator:

        loss = (1 - mu) * objective of sampled tokens - mu * mean over demonstrated tokens of min(f(r), 1 + high)

        denominator="one"   r = p, as if the teacher had been certain of its token; never clipped
        denominator="old"   r = p / p before the update; no gradient once r exceeds 1 + high

    f(r) = r / (r + shape) with a `shape` above 0, else r. Shaping gives unlikely tokens more gradient. With p = .02 and
    shape = .1 f is .1667, and its gradient with respect to log p is .1389; without shape both are .02. The advantage
    of a demonstrated token is 1. A teacher's own probabilities are unknown where it has another tokenizer, so they are
    not used. The defaults are LUFFY's, without its weight by the group's advantage.

    Metrics: those of the objective; `expert_nll`, nats, the mean over demonstrated tokens; `expert_ratio`, mean f(r);
    `expert_clip`, the share of them that are clipped.

    Attributes:
        objective: The loss on sampled tokens.
        mu: Weight of the demonstrated tokens, in [0, 1].
        denominator: The denominator of the ratio.
        shape: Constant of the shaping, >= 0; 0 for no shaping.
        high: Distance of the upper bound above 1, >= 0.
    """

    objective: Objective = PpoClip()
    mu: Annotated[float, Between(0, 1)] = 0.5
    denominator: Literal["one", "old"] = "one"
    shape: Annotated[float, AtLeast(0)] = 0.1
    high: Annotated[float, AtLeast(0)] = 0.2

    @property
    def needs(self) -> frozenset[Need]:
        """Demonstrations, and the log-probabilities before the update for denominator="old"."""
        return frozenset({DEMONSTRATIONS} | ({OLD_LOGPROBS} if self.denominator == "old" else set[Need]()))

    @property
    def gives(self) -> frozenset[Need]:
        """The objective inside gets sampled tokens only, so demonstrations of all kinds are fine."""
        return frozenset({SEPARATE_DEMONSTRATIONS, TEACHER_TURNS, REVISED_PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when the columns lack `expert`, or `old` for denominator="old".
        """
        if columns.expert is None or (columns.old is None and self.denominator == "old"):
            missing = "expert" if columns.expert is None else "old"
            raise ValueError(f"OffPolicyClip: got columns without `{missing}`; need demonstrations in the run")
        sampled = compute_loss(self.objective, take(columns, ~columns.expert))
        expert = columns.select(columns.expert)
        old = torch.zeros_like(expert.logprob) if self.denominator == "one" or expert.old is None else expert.old
        ratio = (expert.logprob - old).clamp(max=math.log1p(self.high) + 1.0).exp()
        shaped = ratio / (ratio + self.shape) if self.shape else ratio
        value = (expert.loss_weight * shaped.clamp(max=1 + self.high)).sum()
        metrics = {
            **sampled.metrics,
            "expert_nll": -(expert.loss_weight * expert.logprob).sum().detach(),
            "expert_ratio": (expert.loss_weight * shaped).sum().detach(),
            "expert_clip": expert.loss_weight[shaped.detach() > 1 + self.high].sum(),
        }
        return Loss(value=(1 - self.mu) * sampled.value - self.mu * value, metrics=metrics)
