"""Settings of low-rank adapters."""

from typing import Annotated

from bough.piece import Above, AtLeast, NotEmpty, piece


@piece
class Lora:
    """Train low-rank adapters (LoRA, arXiv 2106.09685) and freeze the base weights.

    The output of an adapted layer is `W x + alpha / rank * B A x`, where A starts at random and B at 0. Adapters
    are float32 for every dtype of the model, and have no dropout. Needs the extra `bough-rl[lora]`.

    Attributes:
        rank: Rows of A, >= 1.
        alpha: Scale, > 0.
        targets: Names of the linear layers to adapt, such as ("q_proj", "v_proj"); "all-linear" adapts all but
            the head. Routers, and experts whose weights are one tensor, are no linear layers: they stay frozen.
        seed: The seed of A.
    """

    rank: Annotated[int, AtLeast(1)] = 16
    alpha: Annotated[float, Above(0)] = 32.0
    targets: Annotated[str | tuple[str, ...], NotEmpty("names of linear layers, or 'all-linear'")] = "all-linear"
    seed: int = 0
