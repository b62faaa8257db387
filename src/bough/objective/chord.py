"""CHORD: a scheduled mixture of imitation and policy gradient."""

import math
from typing import Annotated, Literal

from bough.lazy import torch
from bough.needs import DEMONSTRATIONS, REVISED_PATHS, SEPARATE_DEMONSTRATIONS, TEACHER_TURNS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective
from bough.objective.ppo import PpoClip
from bough.objective.sft_mix import mix
from bough.piece import AtLeast, Between, piece


@piece
class Chord:
    """CHORD (arXiv 2508.11408): imitation fading into reinforcement; needs demonstrations in the batches.

        loss = (1 - mu) * objective of sampled tokens - mu * mean over demonstrated tokens of phi * log p

    With p the probability of a demonstrated token, held fixed, phi is p (1 - p), "undecided": largest at p = 1/2,
    smallest near 0 and 1; or p, an importance weight for tokens of another source; or 1. With
    two tokens of p = .9 and .4, phi is .09 and .24.

    A demonstrated token whose probability is above `cutoff` has no gradient. It is the `cutoff_prob` of the release's
    loss "sft_phi", also 1 by default; there such a token adds the constant -phi log cutoff to the loss. With cutoff .8
    the weights of the two tokens are 0 and .24.

    mu rises linearly from 0 to its peak over the first `warm` of the training, falls as a half cosine to its valley
    over the following `decay`, and stays there. With warm = decay = .5, peak .9 and valley .05, it is 0, .45, .9, .475,
    .05 at progress 0, .25, .5, .75, 1. The defaults are the release's: .1 throughout, with phi = p (1 - p).

    Each mean is over its own tokens of the whole optimizer step; see `SftMix` for the release.

    Metrics: those of the objective; `expert_nll`, nats, the mean over demonstrated tokens; `expert_mu`.

    Attributes:
        objective: The loss on sampled tokens.
        peak: Highest mu, in [0, 1].
        valley: mu at the end, in [0, peak].
        warm: Fraction of the training in which mu rises.
        decay: Fraction of the training in which it falls.
        phi: How demonstrated tokens are weighed.
        cutoff: Probability above which a demonstrated token has no gradient, in (0, 1].
    """

    objective: Objective = PpoClip()
    peak: Annotated[float, Between(0, 1)] = 0.1
    valley: Annotated[float, AtLeast(0)] = 0.1
    warm: Annotated[float, AtLeast(0)] = 0.0
    decay: Annotated[float, AtLeast(0)] = 0.0
    phi: Literal["undecided", "probability", "none"] = "undecided"
    cutoff: Annotated[float, Between(0, 1, above=True)] = 1.0

    def __post_init__(self) -> None:
        if self.valley > self.peak:
            raise ValueError(f"Chord.valley: got {self.valley}; need at most peak={self.peak}")
        if self.warm + self.decay > 1:
            raise ValueError(
                f"Chord: got warm={self.warm}, decay={self.decay}; need shares of 0 or more, at most 1 in all"
            )

    @property
    def needs(self) -> frozenset[Need]:
        """Demonstrations."""
        return frozenset({DEMONSTRATIONS})

    @property
    def gives(self) -> frozenset[Need]:
        """The objective inside gets sampled tokens only, so demonstrations of all kinds are fine."""
        return frozenset({SEPARATE_DEMONSTRATIONS, TEACHER_TURNS, REVISED_PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the mixture at the current progress."""
        likely = columns.logprob.detach().exp()
        match self.phi:
            case "undecided":
                weight = likely * (1 - likely)
            case "probability":
                weight = likely
            case "none":
                weight = torch.ones_like(likely)
        weight = weight.where(likely <= self.cutoff, 0.0)
        return mix(columns, self.objective, self.mu(columns.progress), weight)

    def mu(self, progress: float) -> float:
        """Returns the weight of imitation at this fraction of the training."""
        if progress < self.warm:
            return self.peak * progress / self.warm
        if progress >= self.warm + self.decay:
            return self.valley
        down = (progress - self.warm) / self.decay
        return self.valley + (self.peak - self.valley) * (1 + math.cos(math.pi * down)) / 2
