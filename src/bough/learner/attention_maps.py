"""Attention maps of a model: which earlier tokens each token of a text reads."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.learner.token_outputs import Forward


class RecordingAttention:
    """Causal attention of one text, whose weights are summed over layers and heads."""

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._count = 0

    @property
    def mean(self) -> Float[Tensor, "n n"]:
        """The mean over layers and heads; rows are queries, and sum to 1."""
        assert self._sum is not None
        return self._sum / self._count

    def __call__(
        self,
        layer: int,
        query: Float[Tensor, "H n D"],
        key: Float[Tensor, "K n D"],
        value: Float[Tensor, "K n D"],
        scale: float,
        *,
        window: int | None = None,
    ) -> Float[Tensor, "H n D"]:
        """Softmax attention; see `Attend`."""
        del layer
        heads, n = query.shape[0], query.shape[1]
        key, value = (each.repeat_interleave(heads // each.shape[0], dim=0) for each in (key, value))
        place = torch.arange(n, device=query.device)
        distance = place[:, None] - place
        hidden = (distance < 0) if window is None else (distance < 0) | (distance >= window)
        weight = (query @ key.transpose(1, 2) * scale).masked_fill(hidden, -torch.inf).softmax(-1)
        total = weight.float().sum(0)
        self._sum = total if self._sum is None else self._sum + total
        self._count += heads
        return weight @ value


@torch.no_grad()
def attention_maps(model: Forward, texts: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
    """[n, n] for each text of n tokens: the attention of its tokens, the mean over layers and heads.

    Each text has a pass of its own, with the weights of one layer in memory: [heads, n, n].

    Args:
        model: Any model of `Forward`.
        texts: Tokens, at least one a text.

    Raises:
        ValueError: when the model runs path by path: its attention is its own.
    """
    if not model.packs:
        raise ValueError(
            "got a policy that runs path by path; need one whose attention Bough computes, such as Qwen3, for its maps"
        )
    device = model.head()[0].device
    maps: list[NDArray[np.float32]] = []
    for text in texts:
        attend = RecordingAttention()
        tokens = torch.as_tensor(text.astype(np.int64), device=device)
        model.hidden(tokens, torch.arange(len(text), device=device), attend)
        maps.append(attend.mean.cpu().numpy().astype(np.float32))
    return maps
