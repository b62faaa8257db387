"""ST-PPO's correction: a clipped loss over the norm of the gradient that clipping removes."""

from dataclasses import dataclass, replace
from typing import Annotated, Protocol, runtime_checkable

from bough.lazy import torch
from bough.needs import CLIPPED_NORM, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective, compute_loss
from bough.objective.ppo import PpoClip
from bough.objective.spans import span_log_ratio
from bough.piece import Above, piece

LARGEST = 20.0
"""Maximum log ratio of a removed token, so that a policy far from the rollout policy has a finite norm."""


@runtime_checkable
class HasClippedPart(Protocol):
    """An objective that needs `CLIPPED_NORM`, and names the loss whose gradient's norm that is."""

    @property
    def clipped_part(self) -> Objective:
        """The loss."""
        ...


@piece
class ClippingBias:
    """S-PPO and ST-PPO (arXiv 2511.20718): scales a clipped loss down by the norm of what clipping removes.

    Experimental: Lemma 4.2 and Equation 8 of the paper are known from reviews and notes that quote them; the code was
    not found. The gradient of PPO's loss is that of the loss without bounds, minus that of the clipped tokens:

        grad PPO = grad (- sum w * A * r)  -  C            C = grad (- sum over the clipped tokens of w * A * r)
        grad ST-PPO = floor * grad PPO / max(floor, |C|)

    which is the paper's grad PPO / |C| times a constant where |C| is at least `floor`. Adam's steps do not depend on
    the constant. Here w is the `loss_weight`, A the advantage, r the ratio, and |.| the norm over the policy's weights.
    |C| is large where off-policy tokens dominate a batch, so that the update is small there: a norm of .6 divides by 6.
    The learner computes |C| over the whole optimizer batch by a further forward and backward pass, and holds it fixed.
    It is S-PPO with the ratio of a token, ST-PPO with that of a turn. As a gradient by log-probabilities, for three
    tokens with r 1.4, 1.1 and .6, A 1, w 1 / 3, and `high` .2:

        without bounds    -.4667    -.3667    -.2
        C                 -.4667     0         0
        PPO                0        -.3667    -.2

    The paper does not state the quotient where |C| is near 0, and it is undefined without clipped tokens. `floor` and
    the constant are this library's. So the correction only scales gradients down, and a batch without clipped tokens
    keeps its gradient. Without the constant a limit of the gradient's norm (`optimizer.clip_norm`) undoes the quotient
    wherever |C| is below |grad PPO|. Other terms of a `Sum` are not divided; in the paper the policy has no other
    terms. A correction around this objective (`Tis`) does not apply to C.

    Metrics: those of `PpoClip`; `clipped_norm`, |C|.

    Attributes:
        objective: The clipped loss, without `product`.
        floor: |C| up to which a gradient stays as it is, > 0. With the turn's ratio and four updates a batch |C| was
            .03 to .7 on `sokoban`.
    """

    objective: PpoClip = PpoClip(ratio="turn")
    floor: Annotated[float, Above(0)] = 0.1

    def __post_init__(self) -> None:
        if self.objective.product:
            raise ValueError("ClippingBias.objective: got product=True; need the paper's geometric mean, product=False")

    @property
    def needs(self) -> frozenset[Need]:
        """The norm."""
        return frozenset({CLIPPED_NORM})

    @property
    def clipped_part(self) -> Objective:
        """The loss with the gradient C."""
        return ClippedPart(objective=self.objective)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when the inputs have no `clipped_norm`.
        """
        norm = columns.clipped_norm
        if norm is None:
            raise ValueError("ClippingBias: got columns without `clipped_norm`; need the norm of the clipped gradient")
        loss = compute_loss(self.objective, columns)
        metrics = {**loss.metrics, "clipped_norm": norm * columns.metric_weight.double().sum()}
        return replace(loss, value=loss.value / max(1.0, norm / self.floor), metrics=metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedPart:
    """The part of a loss without bounds that the bounds of `PpoClip` remove; see `ClippingBias`.

    Attributes:
        objective: The clipped loss.
    """

    objective: PpoClip

    @property
    def needs(self) -> frozenset[Need]:
        """Nothing but the needs of the clipped loss."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss; without metrics."""
        clip = self.objective
        log_ratio = span_log_ratio(columns, clip.ratio, "ClippingBias")
        bottom, top, ceiling = clip.log_bounds
        outside = log_ratio < bottom
        if ceiling is not None:
            outside |= log_ratio > ceiling
        removed = columns.positive.where(log_ratio > top, 0.0) + columns.negative.where(outside, 0.0)
        ratio = log_ratio.detach().clamp(max=LARGEST).exp()
        value = -(columns.loss_weight * removed * ratio * log_ratio).sum()
        return Loss(value=value, metrics=dict[str, torch.Tensor]())
