"""Embeddings of actions: means of the policy's hidden states, for searches."""

from collections.abc import Sequence

import numpy as np
import torch

from bough.batch import PackedPrefixTree
from bough.learner.token_outputs import read
from bough.policy.policy import Policy


class Embeddings:
    """Computes the mean of the policy's last hidden states over the last tokens of a text."""

    def __init__(self, policy: Policy, *, micro_tokens: int) -> None:
        """Use a policy, with passes of at most `micro_tokens` tokens."""
        self._policy, self._micro_tokens = policy, micro_tokens

    @torch.no_grad()
    async def __call__(self, tokens: tuple[int, ...], count: int) -> Sequence[float]:
        """The mean hidden state of the last `count` tokens of a text, after all tokens before them; [width]."""
        text = np.asarray(tokens, dtype=np.int64)
        after = np.arange(len(text) - count + 1, len(text) + 1)
        at = np.zeros(count, dtype=np.int64)
        packed = PackedPrefixTree.pack([text], at, after, device=str(self._policy.device))
        states = [chunk.hidden for chunk in read(self._policy, packed, self._micro_tokens).forward()]
        return [float(each) for each in torch.cat(states).mean(0)]
