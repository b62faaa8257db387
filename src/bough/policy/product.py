"""Products of the same rows with several matrices of a model, and their gradients."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bough.policy.fused import unheard


def products(*modules: nn.Module) -> bool:
    """Whether they are products with matrices of float32, and nothing besides: no adapters, nobody who listens."""
    for each in modules:
        if type(each) is not nn.Linear or type(each.weight) is not nn.Parameter or each.weight.dtype != torch.float32:
            return False
    return unheard(*modules)


def slopes(
    rows: Float[Tensor, "n W"],
    matrices: Sequence[Float[Tensor, "_ W"]],
    pulls: Sequence[Float[Tensor, "n _"]],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of rows, and of the matrices that they were multiplied with, of those that are wanted.

    That of the rows is summed up within the products: sums of their own would take as long as some of them.

    Args:
        rows: [n, W].
        matrices: [V, W] each, with a V of its own.
        pulls: [n, V] each, the gradients of the products.
        wanted: For the rows and each matrix.
    """
    back = None
    if wanted[0]:
        back = pulls[0] @ matrices[0]
        for pull, matrix in zip(pulls[1:], matrices[1:], strict=True):
            back.addmm_(pull, matrix)
    return [back, *(pull.T @ rows if asked else None for pull, asked in zip(pulls, wanted[1:], strict=True))]
