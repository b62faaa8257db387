"""Samples tokens by inverse transform, from uniform numbers that depend only on seed and index."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor


def uniforms(seed: NDArray[np.uint64], index: NDArray[np.int64]) -> NDArray[np.float64]:
    """[B] numbers in [0, 1), each a function of its seed and index alone (counter-based, two rounds of SplitMix64).

    SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    mixed = _mix(_mix(seed) + index.astype(np.uint64))
    # 52 bits: u is at most 1 - 2**-52, and u * total stays below total after rounding.
    return (mixed >> np.uint64(12)).astype(np.float64) * 2.0**-52


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def log_distribution(
    logits: Float[Tensor, "B V"],
    temperature: Float[Tensor, " B"] | None = None,
    top_p: Float[Tensor, " B"] | None = None,
) -> Float[Tensor, "B V"]:
    """Log-probabilities after temperature (> 0) and top-p, in float64; -inf where top-p cut. None is 1 in all rows."""
    exact = logits.double()
    full = (exact if temperature is None else exact / temperature[:, None]).log_softmax(-1)
    if top_p is None:
        return full
    ordered, order = full.sort(dim=-1, descending=True, stable=True)
    probability = ordered.exp()
    before = probability.cumsum(-1) - probability
    # With top-p 1 the rounding of the sum must not cut the tail.
    cut = (before >= top_p[:, None]) & (top_p[:, None] < 1.0)
    kept = full.masked_fill(torch.zeros_like(cut).scatter_(-1, order, cut), -torch.inf)
    return kept.log_softmax(-1)


def draw(probability: Float[Tensor, "B V"], uniform: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Invert the cumulative distribution, in vocabulary order. A token of probability 0 is never sampled."""
    total = probability.cumsum(-1)
    target = uniform * total[:, -1]
    return torch.searchsorted(total, target[:, None], right=True)[:, 0].clamp_(max=total.shape[1] - 1)


def sample(
    logits: Float[Tensor, "B V"],
    uniform: Float[Tensor, " B"],
    temperature: Float[Tensor, " B"] | None = None,
    top_p: Float[Tensor, " B"] | None = None,
    greedy: Bool[Tensor, " B"] | None = None,
) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Sample one token a row; returns it with its log-probability and the distribution's entropy (nats).

    A `greedy` row takes its most likely token, the first of equals: log-probability 0, entropy 0; its
    temperature does not matter. Logits that are not finite give a log-probability that is not finite. None is a
    temperature or a top-p of 1 in all rows, and no greedy row.
    """
    distribution = log_distribution(logits, temperature, top_p)
    probability = distribution.exp()
    token = draw(probability, uniform)
    if greedy is not None:
        token = torch.where(greedy, logits.argmax(-1), token)
    logprob = distribution.gather(-1, token[:, None])[:, 0]
    # A token of probability 0 adds nothing: 0 times minus infinity is nan.
    entropy = -(probability * distribution).nansum(-1)
    if greedy is None:
        return token, logprob, entropy
    return token, logprob.masked_fill(greedy & logprob.isfinite(), 0.0), entropy.masked_fill(greedy, 0.0)
