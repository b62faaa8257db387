"""EPO: an entropy bonus with a penalty outside a band around the mean entropy of earlier steps."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from bough.lazy import Tensor, torch
from bough.objective import Loss, LossInputs, Need
from bough.objective.spans import path_ids_of, span_means, spans
from bough.tree.needs import ENTROPY, MEAN_TURN_ENTROPY, PATHS


@dataclass(frozen=True, slots=True, kw_only=True)
class Epo:
    """EPO (arXiv 2509.22576): an entropy bonus that gives way outside a band around the usual entropy of the turn.

    A term beside a policy loss, `Sum(terms=(PpoClip(), Epo()))`. With H the entropy of a token and U the mean entropy
    of all earlier steps at the same turn of a path:

        loss = - coefficient * sum loss_weight * (H - smoothing * phase * penalty)
        penalty = max(low * U - H, 0) + max(H - high * U, 0), and 0 where U is not yet known

    With U = .5 and a band of .8 to 1.2, entropies .1, .5, 1.2 are penalised by .3, 0 and .6.

    The phase falls with the progress p of the training: 1 - .2 * (1 - e^(-4p)) to the middle, then .8 * e^(-6p + 3);
    with a step down from .827 to .8 in the middle, as in the release.

    In the release the penalty is the *constant* `constant` wherever H is not strictly inside the band, which has no
    gradient: only the bonus acts (as_released=True). Here it is a hinge. The release weighs by phase only from the
    middle of the longest episode on, with a flag that is off by default, and its script has a band of 0 to 2, the paper
    .8 to 1.2.

    Metrics, weighted by `loss_weight`: `entropy`, nats; `entropy_outside`, what is outside the band; `entropy_penalty`.

    Attributes:
        coefficient: Of the whole term, >= 0.
        smoothing: Of the penalty, >= 0.
        low: Lower end of the band, in units of the usual entropy, >= 0.
        high: Upper end, at least `low`.
        over: Whether a token's entropy is compared, or the mean of its turn, which takes the path view.
        phase: Whether the penalty fades as the training goes on.
        as_released: Whether the penalty is a constant, without a gradient.
        constant: That constant.
    """

    regularises: ClassVar[bool] = True

    coefficient: float = 0.001
    smoothing: float = 1.0
    low: float = 0.8
    high: float = 1.2
    over: Literal["token", "turn"] = "token"
    phase: bool = True
    as_released: bool = False
    constant: float = 0.1

    def __post_init__(self) -> None:
        for name in ("coefficient", "smoothing", "low", "constant"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"Epo.{name}: got {getattr(self, name)}; need 0 or more")
        if not self.low <= self.high < math.inf:
            raise ValueError(f"Epo.high: got {self.high}; need at least low={self.low}")

    @property
    def needs(self) -> frozenset[Need]:
        """Entropies, those of earlier steps, and paths for means over turns."""
        known = (ENTROPY, MEAN_TURN_ENTROPY)
        return frozenset(known) if self.over == "token" else frozenset({*known, PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """The bonus, less the penalty.

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
                "entropy": bonus.detach(),
                "entropy_outside": columns.loss_weight[penalty > 0].sum(),
                "entropy_penalty": hinge.detach(),
            }
        return Loss(value=-self.coefficient * (bonus - self.smoothing * fade * hinge), metrics=metrics)

    def penalty(self, entropy: Tensor, usual: Tensor) -> Tensor:
        """[M]: how far entropies are outside the band around the usual ones."""
        known = ~usual.isnan()
        bottom, top = (known * usual.nan_to_num() * edge for edge in (self.low, self.high))
        if self.as_released:
            return self.constant * (known & ~((entropy > bottom) & (entropy < top))).to(entropy.dtype)
        return ((bottom - entropy).clamp(min=0) + (entropy - top).clamp(min=0)) * known

    def fade(self, progress: float) -> float:
        """What the penalty weighs when a share of the training is done."""
        if progress <= 0.5:
            return 1 - 0.2 * (1 - math.exp(-4 * progress))
        return 0.8 * math.exp(-6 * (progress - 0.5))
