"""Corrections for the gap between rollout policy and learner: weights, masks, rejection.

An engine in lower precision, with other kernels or older weights gives a token another probability than the learner
with the weights before the update. Each piece here wraps an objective and corrects for that gap,
    w = exp(old - rollout_logprob)

and passes on `old` in place of `rollout_logprob`, so the ratios inside are of the update alone. An objective that needs
"old" itself gets both columns unchanged, so corrections nest: `Reject(objective=Tis(objective=PpoClip()))`.
Demonstrations are not sampled and stay unchanged.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from jaxtyping import Bool, Float

from bough.lazy import Tensor, torch
from bough.needs import OLD_LOGPROBS, ON_POLICY, PATHS, SEPARATE_DEMONSTRATIONS, Need, gives_of, needs_of
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective, compute_loss
from bough.objective.ppo import PpoClip
from bough.objective.spans import Span, path_ids_of, span_means, span_sums, spans
from bough.objective.take import take
from bough.piece import Above, AtLeast, Between, piece


@piece
class Tis:
    """Truncated importance sampling (as in IMPALA, arXiv 1802.01561): weighs tokens by min(w, cap); needs "old".

    With w = exp(old - rollout_logprob) at a token, held fixed, its weight in the mean is multiplied by min(w, cap). So
    the loss inside is an expectation under the policy before the update, up to the truncation. Weights of
    .5, 1, 4 with a cap of 2 become .5, 1, 2.

    Metrics, weighted by `metric_weight`: those of the objective, under the corrected weights; `gap_kl`, the k3 estimate
    of the divergence of the rollout policy from old; `gap_weight`, the mean of w; `gap_truncated`, where the cap is
    active.

    Attributes:
        objective: The corrected objective.
        cap: Largest weight, > 0; 2 is customary.
    """

    satisfies: ClassVar[frozenset[Need]] = frozenset({ON_POLICY})

    objective: Objective = PpoClip()
    cap: Annotated[float, Above(0)] = 2.0

    @property
    def needs(self) -> frozenset[Need]:
        """Old log-probabilities."""
        return frozenset({OLD_LOGPROBS})

    @property
    def gives(self) -> frozenset[Need]:
        """See `_gives`."""
        return _gives(self.objective)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the objective on corrected columns."""
        gap = _gap(columns, "Tis")
        top = math.log(self.cap)
        anchored = _anchored(columns, self.objective, columns.loss_weight * gap.clamp(max=top).exp())
        inner = compute_loss(self.objective, anchored)
        return _report(inner, columns, gap, {"gap_truncated": gap > top})


@piece
class Mis:
    """Masked importance sampling (IcePop, Ring-1T, arXiv 2510.18855): drops tokens whose w is out of range.

    With w = exp(old - rollout_logprob) at a token, held fixed, its weight is multiplied by w where low <= w <= high,
    and by 0 elsewhere. Weights of .4, .5, 1, 6 become 0, .5, 1, 0. The mean is still over all tokens, as in the paper,
    so every split of a batch gives the same loss.

    Metrics, weighted by `metric_weight`: those of the objective, under the corrected weights; `gap_kl`, the k3 estimate
    of the divergence of the rollout policy from old; `gap_weight`, the mean of w; `gap_masked`, the masked tokens.

    Attributes:
        objective: The corrected objective.
        low: Smallest weight, in [0, 1]; .5 in the paper.
        high: Largest weight, >= 1; 5 in the paper.
    """

    satisfies: ClassVar[frozenset[Need]] = frozenset({ON_POLICY})

    objective: Objective = PpoClip()
    low: Annotated[float, Between(0, 1)] = 0.5
    high: Annotated[float, AtLeast(1)] = 5.0

    @property
    def needs(self) -> frozenset[Need]:
        """Old log-probabilities."""
        return frozenset({OLD_LOGPROBS})

    @property
    def gives(self) -> frozenset[Need]:
        """See `_gives`."""
        return _gives(self.objective)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the objective on corrected columns."""
        gap = _gap(columns, "Mis")
        masked = _outside(gap, self.low, self.high)
        anchored = _anchored(columns, self.objective, columns.loss_weight * gap.where(~masked, -math.inf).exp())
        inner = compute_loss(self.objective, anchored)
        return _report(inner, columns, gap, {"gap_masked": masked})


@piece
class Reject:
    """Rejects whole paths, or turns (IPA, arXiv 2512.24873), whose mean gap is out of range; needs "old" and paths.

    With w = exp(old - rollout_logprob) at a token, a path is kept when the geometric mean of w over its tokens is in
    range, and no token's w is below the veto. Rejected paths are also excluded from the mean: the weights of the rest
    are scaled to the same sum. Kept tokens are not weighted; wrap a `Tis` for that.

    Two tokens with w of 1.2 and .9 have the mean 1.0392. `over="turn"` is IPA's mask on chunks, whose
    bound is on one side (low=0). The bounds are this library's: papers tune them per engine.

    Metrics: those of the objective; weighted by `metric_weight`: `gap_kl`, the k3 estimate of the divergence of the
    rollout policy from old; `gap_weight`, the mean of w; `gap_rejected`, the rejected tokens.

    Attributes:
        objective: The corrected objective.
        over: The unit of rejection.
        low: Smallest geometric mean, in [0, 1].
        high: Largest, >= 1.
        veto: Smallest weight of a single token, in [0, 1); 1e-4 in CM2 and verl.
    """

    satisfies: ClassVar[frozenset[Need]] = frozenset({ON_POLICY})

    objective: Objective = PpoClip()
    over: Span = "sequence"
    low: Annotated[float, Between(0, 1)] = 0.99
    high: Annotated[float, AtLeast(1)] = 1.01
    veto: Annotated[float, Between(0, 1, below=True)] = 0.0

    @property
    def needs(self) -> frozenset[Need]:
        """Old log-probabilities and paths."""
        return frozenset({OLD_LOGPROBS, PATHS})

    @property
    def gives(self) -> frozenset[Need]:
        """See `_gives`."""
        return _gives(self.objective)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the objective on the kept tokens."""
        gap = _gap(columns, "Reject")
        span, count = spans(path_ids_of(columns, "Reject"), self.over)
        bad = _outside(span_means(gap, span, count), self.low, self.high)
        if self.veto:
            bad |= span_sums((gap < math.log(self.veto)).to(gap.dtype), span, count) > 0
        rejected = bad[span] & _sampled(columns)
        weights = columns.loss_weight.where(_sampled(columns), 0.0)
        left = weights.where(~rejected, 0.0).sum()
        scale = torch.where(_sampled(columns), weights.sum() / left.where(left > 0, 1.0), 1.0)
        kept = take(_anchored(columns, self.objective, columns.loss_weight * scale), ~rejected)
        return _report(compute_loss(self.objective, kept), columns, gap, {"gap_rejected": rejected})


def _gives(objective: Objective) -> frozenset[Need]:
    """What an objective gives inside a correction: a correction leaves demonstrations alone if columns mark them."""
    given = gives_of(objective)
    return given if SEPARATE_DEMONSTRATIONS in given else frozenset()


def _sampled(columns: LossInputs) -> Bool[Tensor, " M"]:
    """[M] bool: the tokens that are not demonstrated."""
    return torch.ones_like(columns.loss_weight, dtype=torch.bool) if columns.expert is None else ~columns.expert


def _gap(columns: LossInputs, who: str) -> Float[Tensor, " M"]:
    """[M] nats: log w; 0 for demonstrations."""
    if columns.old is None:
        raise ValueError(f"{who}: got columns without `old`; need log-probabilities from before the update")
    return (columns.old - columns.rollout_logprob).where(_sampled(columns), 0.0).detach()


def _outside(gap: Float[Tensor, " n"], low: float, high: float) -> Bool[Tensor, " n"]:
    return (gap < (math.log(low) if low else -math.inf)) | (gap > math.log(high))


def _anchored(columns: LossInputs, objective: Objective, loss_weight: Float[Tensor, " M"]) -> LossInputs:
    """The inputs with other weights, and `old` for `rollout_logprob` unless the objective needs "old" itself."""
    if columns.old is None or OLD_LOGPROBS in needs_of(objective):
        return replace(columns, loss_weight=loss_weight)
    return replace(
        columns, loss_weight=loss_weight, rollout_logprob=columns.old.where(_sampled(columns), columns.rollout_logprob)
    )


def _report(loss: Loss, columns: LossInputs, gap: Float[Tensor, " M"], where: Mapping[str, Bool[Tensor, " M"]]) -> Loss:
    """Returns the same loss with metrics of the gap."""
    with torch.no_grad():
        weight = gap.exp()
        own = {
            "gap_kl": (columns.metric_weight * (weight - 1 - gap)).sum(),
            "gap_weight": (columns.metric_weight * weight).sum(),
        }
        return replace(
            loss,
            metrics={**loss.metrics, **own, **{name: columns.metric_weight[at].sum() for name, at in where.items()}},
        )
