"""IPA on FrozenLake in text: returns fade by chunk, good chunks are imitated, bad ones bounded by their ratio.

Experimental: parts of the paper and of its framework were read. Paper: ROME (arXiv 2512.24873). Assumes nothing of the
environment; a chunk is a turn. Discount 0.95 is the paper's. As a lost lake pays 0, returns are taken against the mean
of the task, which gives bad paths their sign. The bound on the mean gap between engine and learner is this recipe's,
the paper leaves it open; that new paths begin at chunks of old ones (its resampling) is left out. The learning rate is
that of grpo_frozenlake: a model this small learns from scratch, where papers tune large ones with 1e-6.
"""

from dataclasses import replace

from bough.credit import Ipa
from bough.objective import Kl, Reject, Sum, Topr
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="ipa_frozenlake",
        credit=Ipa(baseline="group"),
        objective=Sum(
            terms=(
                Reject(objective=Topr(ratio="turn", mean=True), over="turn", low=0.0, high=2.0),
                Kl(coefficient=0.04),
            )
        ),
    )
