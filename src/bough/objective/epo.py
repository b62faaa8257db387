"""EPO: an entropy bonus with a penalty outside a band around the mean entropy of earlier steps."""

import math
from typing import Annotated, ClassVar, Literal

from bough.lazy import Tensor, torch
from bough.needs import ENTROPY, MEAN_TURN_ENTROPY, PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.spans import path_ids_of, span_means, spans
from bough.piece import AtLeast, Between, piece


@piece
class Epo:
    """EPO (arXiv 2509.22576): an entropy bonus, reduced outside a band around the mean entropy of the turn.

    A term added to a policy loss, `Sum(terms=(PpoClip(), Epo()))`. With H the entropy of a token and U the mean entropy
    of all earlier steps at the same turn of a path:

        loss = - coefficient * sum loss_weight * (H - smoothing * phase * penalty)
        penalty = max(low * U - H, 0) + max(H - high * U, 0), and 0 where U is not known

    With U = .5 and a band of .8 to 1.2, entropies .1, .5, 1.2 are penalised by .3, 0 and .6.

    The phase falls with the progress p of the training, with a step down from .827 to .8 at the middle m:

        p <= m    1 - .2 * (1 - e^(-2 p / m))
        p > m     .8 * e^(-3 (p - m) / (1 - m))

    As in the release, whose m for E epochs is floor(E / 2) / E: 1/2 if E is even, and 3/7 of 7 epochs, where epoch 4
    has the phase .378.

    In the release the penalty is the *constant* `constant` wherever H is not strictly inside the band, which has no
    gradient: only the bonus has an effect (as_released=True). Here it is a hinge. The release weighs by phase only from
    the middle of the longest episode on, with a flag that is off by default, and its script has a band of 0 to 2, the
    paper .8 to 1.2. Its mean entropy of a turn divides by all places of the padded row; here by the turn's tokens.

    Metrics, weighted by `metric_weight`: `entropy`, nats; `entropy_outside`, the tokens outside; `entropy_penalty`.

    Attributes:
        coefficient: Factor on the whole term, >= 0.
        smoothing: Factor on the penalty, >= 0.
        low: Lower end of the band, as a multiple of the mean entropy, >= 0.
        high: Upper end, at least `low`.
        over: Whether a token's entropy is compared, or the mean of its turn, which needs the path view.
        phase: Whether the penalty fades during training.
        middle: Fraction of the training at which the fast part of the phase begins, in (0, 1).
        as_released: Whether the penalty is a constant, without a gradient.
        constant: The value of this constant.
    """

    regularises: ClassVar[bool] = True

    coefficient: Annotated[float, AtLeast(0)] = 0.001
    smoothing: Annotated[float, AtLeast(0)] = 1.0
    low: Annotated[float, AtLeast(0)] = 0.8
    high: float = 1.2
    over: Literal["token", "turn"] = "token"
    phase: bool = True
    middle: Annotated[float, Between(0, 1, above=True, below=True)] = 0.5
    as_released: bool = False
    constant: Annotated[float, AtLeast(0)] = 0.1

    def __post_init__(self) -> None:
        if self.high < self.low:
            raise ValueError(f"Epo.high: got {self.high}; need at least low={self.low}")

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, those of earlier steps, and paths for means over turns."""
        known = (ENTROPY, MEAN_TURN_ENTROPY)
        return frozenset(known) if self.over == "token" else frozenset({*known, PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the bonus, minus the penalty.

        Raises:
            ValueError: when `columns.entropy` or `columns.mean_turn_entropy` is missing.
        """
        entropy, usual = columns.entropy, columns.mean_turn_entropy
        if entropy is None or usual is None:
            raise ValueError("Epo: got columns without `entropy` or `mean_turn_entropy`; need both")
        compared = entropy
        if self.over == "turn":
            turn, count = spans(path_ids_of(columns, "Epo"), "turn")
            compared = span_means(entropy, turn, count)[turn]
        penalty = self.penalty(compared, usual)
        fade = self.fade(columns.progress) if self.phase else 1.0
        bonus, hinge = (columns.loss_weight * entropy).sum(), (columns.loss_weight * penalty).sum()
        with torch.no_grad():
            metrics = {
                "entropy": bonus.detach() * columns.metric_scale,
                "entropy_outside": columns.metric_weight[penalty > 0].sum(),
                "entropy_penalty": hinge.detach() * columns.metric_scale,
            }
        return Loss(value=-self.coefficient * (bonus - self.smoothing * fade * hinge), metrics=metrics)

    def penalty(self, entropy: Tensor, usual: Tensor) -> Tensor:
        """[M]: distance of entropies from the band around the mean ones."""
        known = ~usual.isnan()
        bottom, top = (known * usual.nan_to_num() * edge for edge in (self.low, self.high))
        if self.as_released:
            return self.constant * (known & ~((entropy > bottom) & (entropy < top))).to(entropy.dtype)
        return ((bottom - entropy).clamp(min=0) + (entropy - top).clamp(min=0)) * known

    def fade(self, progress: float) -> float:
        """Returns the weight of the penalty at this fraction of the training."""
        if progress <= self.middle:
            return 1 - 0.2 * (1 - math.exp(-2 * progress / self.middle))
        return 0.8 * math.exp(-3 * (progress - self.middle) / (1 - self.middle))
