"""Embeddings of actions: means of the policy's hidden states, for searches."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bough.batch import PackedPrefixTree
from bough.learner.token_outputs import Forward, read
from bough.policy.policy import Policy


class Embeddings:
    """Computes the mean of the policy's last hidden states over the last tokens of a text."""

    def __init__(self, policy: Policy, *, micro_tokens: int) -> None:
        """Use a policy, with passes of at most `micro_tokens` tokens."""
        self._policy, self._micro_tokens = policy, micro_tokens

    async def __call__(self, tokens: tuple[int, ...], count: int) -> Sequence[float]:
        """The mean hidden state of the last `count` tokens of a text, after all tokens before them; [width]."""
        text = np.asarray(tokens, dtype=np.int32)
        (mean,) = mean_states(self._policy, [text], [len(text) - count], self._micro_tokens)
        return [float(each) for each in mean]


@torch.no_grad()
def mean_states(
    model: Forward, texts: Sequence[NDArray[np.int32]], first: Sequence[int], max_tokens: int
) -> torch.Tensor:
    """[n, W] float32: the mean of a model's last hidden states over the tokens of each text from `first` on.

    Args:
        model: Computes the hidden states.
        texts: Tokens of n texts.
        first: [n], below the number of tokens of each.
        max_tokens: Maximum tokens of one forward pass.
    """
    weight, _ = model.head()
    if not texts:
        return weight[:0].float()
    counts = [len(text) - begin for text, begin in zip(texts, first, strict=True)]
    at = np.repeat(np.arange(len(texts)), counts)
    after = np.concatenate([np.arange(begin, len(text)) + 1 for text, begin in zip(texts, first, strict=True)])
    whole = [text.astype(np.int64) for text in texts]
    packed = PackedPrefixTree.pack(whole, at, after, device=str(weight.device))
    chunks = list(read(model, packed, max_tokens).forward())
    order = torch.cat([chunk.trained for chunk in chunks]).argsort()
    states = torch.cat([chunk.hidden for chunk in chunks])[order].float()
    total = torch.zeros(len(texts), states.shape[1], device=states.device)
    total.index_add_(0, torch.as_tensor(at, device=states.device), states)
    return total / torch.as_tensor(counts, device=states.device)[:, None]
