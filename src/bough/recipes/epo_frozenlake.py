"""EPO on FrozenLake in text: an entropy bonus that gives way outside a band around the usual entropy.

Paper: Entropy-regularized Policy Optimization (arXiv 2509.22576). Assumes many turns, at each of which entropies of
earlier steps are a measure for later ones, and an engine that tells entropies. A coefficient of .001 and a band of .8
to 1.2 are the paper's. In the released code the penalty is a constant and has no gradient, `Epo(as_released=True)`;
here it is a hinge. Everything else is that of grpo_frozenlake, whose tiny model learns from scratch.
"""

from dataclasses import replace

from bough.objective import Epo, Kl, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="epo_frozenlake",
        objective=Sum(terms=(PpoClip(high=0.28), Epo(), Kl(coefficient=0.04))),
    )
