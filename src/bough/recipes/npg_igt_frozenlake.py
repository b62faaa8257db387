"""N-PG-IGT on FrozenLake in text: policy gradient in steps of one length, along gradients taken ahead.

Paper: Fatkhullin et al., arXiv 2302.01734, with single paths and no group baseline on control tasks; here the gradient
is GRPO's, one step a batch. Assumes nothing of the environment. The weights that are sampled from, saved and evaluated
are those ahead of the iterate; the released code evaluates the iterate. The learning rate is the length of a step in
the space of all weights: steps of .05 along gradients as noisy as these undo the warm-up, and with steps of .01
success is after 30 batches where it began, within the noise of 100 held-out lakes, while AdamW's has risen.
"""

from dataclasses import replace

from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_frozenlake.run()
    return replace(
        base,
        name="npg_igt_frozenlake",
        optimizer=replace(base.optimizer, momentum="igt", learning_rate=0.01, igt_weight=0.3, minibatches=1),
    )
