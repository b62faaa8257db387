"""REC: off-policy REINFORCE with masks, weights and a regulariser."""

from typing import Annotated, Literal

from bough.lazy import Tensor, torch
from bough.needs import PATHS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.objective.spans import Ratio, span_log_ratio
from bough.piece import Above, AtLeast, AtMost, Between, piece


@piece
class Rec:
    """REC (arXiv 2509.24203): off-policy REINFORCE, in a family of masks, weights and regularisers.

    With r the ratio of a token, or of a span (`ratio`), held fixed in mask and weight:

        loss = sum loss_weight * (- keep(r, A) * weight(r, A) * A * log p + regulariser)

        keep            where A > 0                                where A < 0
        none            everywhere                                 everywhere
        one_side        r <= 1 + high                              r >= 1 - low
        two_side        1 - low <= r <= 1 + high                   the same
        ring            two_side, or r <= 1 - low_far              two_side, or r >= 1 + high_far

        weight          none: 1        ratio: r        advantage: exp(A / temperature)
        regulariser     none: 0        k2: coefficient * log(r)^2        forward_kl: - coefficient * log p

    one_side with the weight "ratio" has the gradient of PPO's clipping. The paper claims that the mask matters and
    the weight hardly does, so the default is one_side without a weight. Ratios 1.4, 1.1, .6 with a positive advantage
    are kept by one_side at .2: no, yes, yes; by two_side: no, yes, no; by ring with low_far .6 also below .4.

    With ratio="sequence", weight="ratio" and `Normalizer(by="paths")` it is the release's keep="gspo-one-side", whose
    gradient is that of `gspo`, and whose value is the mean of - s * A * log p, with s the geometric mean of the path's
    ratios. Those of 1.4, 1.1 and .6 have s = .974: bounds of .2 keep all three tokens.

    The factor 1/2 of k2 is in the coefficient, as in Trinity's release. The release's default is keep="none". Its
    advantage is the reward minus the mean of the group; there a group of one raises, here credit gives it 0.

    Metrics, weighted by `metric_weight`: `ratio`; `dropped`, tokens with an advantage that are not kept; `regulariser`,
    if there is one, before the coefficient.

    Attributes:
        keep: The tokens with a loss.
        weight: Their weights; "advantage" is not linear in the advantage and needs the path view.
        ratio: Whose ratio mask and weight read; other spans than a token need the path view.
        regulariser: The pull to the rollout policy.
        coefficient: Factor on the regulariser, >= 0.
        low: In [0, 1).
        high: >= 0.
        low_far: From `low` to 1; for "ring".
        high_far: At least `high`; for "ring".
        temperature: For the weight "advantage", > 0.
    """

    keep: Literal["none", "one_side", "two_side", "ring"] = "one_side"
    weight: Literal["none", "ratio", "advantage"] = "none"
    ratio: Ratio = "token"
    regulariser: Literal["none", "k2", "forward_kl"] = "none"
    coefficient: Annotated[float, AtLeast(0)] = 0.1
    low: Annotated[float, Between(0, 1, below=True)] = 0.2
    high: Annotated[float, AtLeast(0)] = 0.2
    low_far: Annotated[float, AtMost(1)] = 0.6
    high_far: float = 2.0
    temperature: Annotated[float, Above(0)] = 1.0

    def __post_init__(self) -> None:
        if self.low_far < self.low:
            raise ValueError(f"Rec.low_far: got {self.low_far}; need at least low={self.low}")
        if self.high_far < self.high:
            raise ValueError(f"Rec.high_far: got {self.high_far}; need at least high={self.high}")

    @property
    def needs(self) -> frozenset[Need]:
        """Paths, when the weight is by advantage, or the ratio that of a span."""
        return frozenset({PATHS} if self.weight == "advantage" or self.ratio != "token" else ())

    @property
    def regularises(self) -> bool:
        """Whether there is a regulariser."""
        return self.regulariser != "none"

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        log_ratio = columns.logprob - columns.rollout_logprob
        ratio = span_log_ratio(columns, self.ratio, "Rec").detach().exp()
        gaining, losing = self._kept(ratio)
        kept = columns.positive * gaining + columns.negative * losing
        match self.weight:
            case "none":
                weighed = kept
            case "ratio":
                weighed = kept * ratio
            case "advantage":
                weighed = kept * (columns.advantage / self.temperature).exp()
        total = -(columns.loss_weight * weighed * columns.logprob).sum()
        with torch.no_grad():
            dropped = (columns.positive > 0) & ~gaining | (columns.negative < 0) & ~losing
            metrics = {"ratio": (columns.metric_weight * ratio).sum(), "dropped": columns.metric_weight[dropped].sum()}
        if self.regulariser == "none":
            return Loss(value=total, metrics=metrics)
        held = log_ratio.square() if self.regulariser == "k2" else -columns.logprob
        holding = (columns.loss_weight * held).sum()
        metrics |= {"regulariser": holding.detach() * columns.metric_scale}
        return Loss(value=total + self.coefficient * holding, metrics=metrics)

    def _kept(self, ratio: Tensor) -> tuple[Tensor, Tensor]:
        """[M] bool each: whether a token is kept with a positive advantage, and with a negative one."""
        low, high = ratio >= 1 - self.low, ratio <= 1 + self.high
        match self.keep:
            case "none":
                return torch.ones_like(low), torch.ones_like(low)
            case "one_side":
                return high, low
            case "two_side":
                return low & high, low & high
            case "ring":
                return low & high | (ratio <= 1 - self.low_far), low & high | (ratio >= 1 + self.high_far)
