"""Normalisers by name: the weight of each token in the mean over an optimizer batch."""

from typing import Annotated, Literal

from jaxtyping import Bool, Float, Int

from bough.lazy import Tensor
from bough.piece import AtLeast, piece
from bough.tree import PathCounts
from bough.varying import IntOrSchedule, constant

NO_PATHS = PathCounts()
"""No further paths."""


@piece
class Normalizer:
    """The weight of each trained token, over a whole optimizer batch before it is split into micro-batches.

    A batch has P paths; path p has |p| trained tokens; n[t] paths run through token t; U tokens are trained. Paths that
    count without a loss, such as those of tied groups (`FilterResult.tied`), are among them: they have no token here,
    and enter the divisors. A token shared by several paths is stored once, so its weight is the sum of its weights on
    these paths:

        path_tokens     n[t] / sum of n             equal weight per path token: token mean (DAPO, arXiv 2503.14476)
        paths           sum over p of 1 / |p| / P   equal weight per path: mean of token means (GRPO, 2402.03300)
        unique_tokens   1 / U                       equal weight per stored token, however many paths share it
        constant        n[t] / (P * horizon)        a sum over each path, over a constant (Dr.GRPO, 2503.20783)

    The weights of all P paths sum to 1, except for `constant`, whose sum is the mean path length over the horizon.
    Where no path shares a token, path_tokens and unique_tokens are the same.

    Attributes:
        by: The normaliser.
        horizon_tokens: Divisor of `constant`, tokens > 0, a number or a schedule; None with every other normaliser.
    """

    by: Literal["path_tokens", "paths", "unique_tokens", "constant"] = "path_tokens"
    horizon_tokens: Annotated[IntOrSchedule | None, AtLeast(1)] = None

    def __post_init__(self) -> None:
        if (self.by == "constant") != (self.horizon_tokens is not None):
            raise ValueError(
                f"Normalizer: got by={self.by!r} with horizon_tokens={self.horizon_tokens}; need horizon_tokens with "
                "by='constant', and only there"
            )

    def __call__(
        self,
        paths: Int[Tensor, " M"],
        inverse_length: Float[Tensor, " M"],
        equal_length: Bool[Tensor, " M"],
        others: PathCounts = NO_PATHS,
    ) -> Float[Tensor, " M"]:
        """Computes the weights, float32.

        Args:
            paths: [M], n[t]: number of paths through each trained token.
            inverse_length: [M], the sum over these paths of one over their trained tokens; float64, since its sum over
                a batch of whole trees is P.
            equal_length: [M], whether these paths have equally many trained tokens.
            others: The paths that count without a loss.

        Raises:
            ValueError: with `paths`, when paths of different lengths share a trained token. `Credited` keeps the mean
                over the paths through a token with equal weights; here their weights would differ.
        """
        match self.by:
            case "path_tokens":
                loss_weight = paths / (paths.sum().double() + others.path_tokens)
            case "paths":
                if not bool(equal_length.all()):
                    raise ValueError(
                        f"Normalizer(by='paths'): got {int((~equal_length).sum())} trained tokens shared by paths of "
                        "different lengths; need chains, or branches of one length. Use by='path_tokens' or "
                        "by='unique_tokens'"
                    )
                loss_weight = inverse_length / (inverse_length.sum() + others.paths)
            case "unique_tokens":
                loss_weight = inverse_length.new_full(paths.shape, 1.0 / max(len(paths) + others.unique_tokens, 1))
            case "constant":
                assert self.horizon_tokens is not None  # by __post_init__
                loss_weight = paths / ((inverse_length.sum() + others.paths) * constant(self.horizon_tokens))
        return loss_weight.float()
