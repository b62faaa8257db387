"""The policy's mean entropy at each turn over earlier steps."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bough.tree import Rewarded, sum_at, token_node, turns


def add_entropies(known: Sequence[tuple[float, int]], rewarded: Sequence[Rewarded]) -> list[tuple[float, int]]:
    """Add a batch to the entropies by turn: sums in nats over the tokens, and numbers of tokens."""
    turn = [turns(each.tree)[token_node(each.tree)] - 1 for each in rewarded]
    entropy = np.concatenate([np.zeros(0), *(each.tree.entropy for each in rewarded)]).astype(np.float64)
    heard = ~np.isnan(entropy)
    places = np.concatenate([np.zeros(0, dtype=np.int64), *turn])[heard]
    length = max(len(known), int(places.max(initial=-1)) + 1)
    total, count = sum_at(places, entropy[heard], length), np.bincount(places, minlength=length)
    before = [*known, *[(0.0, 0)] * (length - len(known))]
    return [(a + float(b), m + int(n)) for (a, m), b, n in zip(before, total, count, strict=True)]


def mean_turn_entropies(known: Sequence[tuple[float, int]], device: torch.device) -> Tensor:
    """[turns] float32 nats: the mean entropy at each turn so far; nan without samples."""
    means = [total / count if count else float("nan") for total, count in known]
    return torch.tensor(means, dtype=torch.float32, device=device)
