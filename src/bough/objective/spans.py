"""Sums and means over the turns and paths of the path view."""

from typing import Literal, TypeAlias

from jaxtyping import Float, Int

from bough.lazy import Tensor
from bough.objective.inputs import LossInputs, PathIds

Span: TypeAlias = Literal["turn", "sequence"]
"""The unit of a sum or mean: the tokens of one turn, or those of a whole path."""

Ratio: TypeAlias = Literal["token", "turn", "sequence"]
"""The unit of a ratio of probabilities."""


TOKEN_RATIO = "take ratio='token', as a longer ratio has one advantage for all its tokens"
"""The remedy of a loss with a ratio over a turn or path where each token has its own advantage."""


def path_ids_of(columns: LossInputs, who: str) -> PathIds:
    """Returns the path view's ids.

    Raises:
        ValueError: when there are none; `who` is the name in the message.
    """
    if columns.path_ids is None:
        raise ValueError(f"{who}: got columns without `path_ids`; need the path view")
    return columns.path_ids


def spans(path_ids: PathIds, over: Span) -> tuple[Int[Tensor, " M"], int]:
    """[M]: the turn or path of each token, and the number of turns or paths."""
    return (path_ids.turn, len(path_ids.path_of_turn)) if over == "turn" else (path_ids.path, len(path_ids.task))


def span_sums(value: Float[Tensor, " M"], span: Int[Tensor, " M"], count: int) -> Float[Tensor, " n"]:
    """[count]: the sum over the tokens of each span."""
    return value.new_zeros(count).index_add(0, span, value)


def span_means(value: Float[Tensor, " M"], span: Int[Tensor, " M"], count: int) -> Float[Tensor, " n"]:
    """[count]: the mean over the tokens of each span; 0 where there is none."""
    return span_sums(value, span, count) / span.bincount(minlength=count).clamp(min=1)


def span_log_ratio(columns: LossInputs, ratio: Ratio, who: str, *, product: bool = False) -> Float[Tensor, " M"]:
    """[M]: the log ratio of the trained policy's probability to the rollout policy's, at each token.

        token       log p - log b of the token itself
        turn        the mean of that over the trained tokens of its turn: the log of a geometric mean
        sequence    the same over its path

    Two turns of one path with log ratios .3 .1 | .6 have .2 .2 | .6 by turn and .3333 throughout by sequence.

    The *value* is the span's, and the *gradient* goes through the token's own log-probability, with factor 1
    (GSPO-token, arXiv 2507.18071); with `product` the factor is the number of tokens of the span. Where all tokens of a
    span have one advantage and one weight, this is the gradient of the span's own ratio.

    Args:
        columns: In the path view, unless `ratio` is "token".
        ratio: The unit.
        who: Name for the error without a path view.
        product: Whether a span's ratio is the product of its tokens' ratios and not their geometric mean.
    """
    own = columns.logprob - columns.rollout_logprob
    if ratio == "token":
        return own
    span, count = spans(path_ids_of(columns, who), ratio)
    held = own.detach()
    if product:
        tokens = span.bincount(minlength=count)[span]
        return tokens * (own - held) + span_sums(held, span, count)[span]
    return own - held + span_means(held, span, count)[span]
