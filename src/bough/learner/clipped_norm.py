"""The norm of a gradient that clipping removes, for objectives that are divided by it."""

from collections.abc import Callable, Iterable

from torch import Tensor

from bough.needs import pieces
from bough.objective import Objective
from bough.objective.clipping_bias import HasClippedPart


def clipped_part(objective: Objective) -> Objective:
    """The loss whose gradient's norm an objective needs.

    Raises:
        ValueError: when the objective has two different ones, or none.
    """
    parts = {piece.value.clipped_part for piece in pieces(objective) if isinstance(piece.value, HasClippedPart)}
    if len(parts) != 1:
        raise ValueError(
            f"objective={type(objective).__name__}: got {len(parts)} clipped losses for one norm; need one ClippingBias"
        )
    return parts.pop()


def norm_of_gradient(weights: Iterable[Tensor], gradient: Callable[[], object], norm: Callable[[], float]) -> float:
    """The norm of a gradient; leaves `grad` as it was.

    Args:
        weights: The trained parameters.
        gradient: Adds the gradient to `grad`.
        norm: Computes the norm of `grad`.
    """
    held = [(weight, weight.grad) for weight in weights]
    try:
        for weight, _ in held:
            weight.grad = None
        gradient()
        return norm()
    finally:
        for weight, grad in held:
            weight.grad = grad
