"""Flow-GRPO on FrozenLake in text: one outcome for every turn, each turn a text of its own.

Paper: AgentFlow (arXiv 2510.05592). Assumes a judge of the whole path, here the environment, and a planner that reads a
memory rather than the past, here the present map alone. The clip, 0.2 below and 0.3 above, and 8 paths a task are the
paper's; the divergence's weight and the learning rate are those of grpo_frozenlake, where the paper has 0.001 and 1e-6.
The paper's loss is a mean over tokens, then turns, then paths; this one is over the tokens of a path, then paths. The
released code takes means and deviations over turns (`FlowGrpo(as_released=True)`) and drops turns at random to fill
its batches.
"""

from dataclasses import replace

from bough.credit import FlowGrpo
from bough.objective import Kl, Normalizer, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="flow_grpo_frozenlake",
        credit=FlowGrpo(),
        objective=Sum(terms=(PpoClip(high=0.3), Kl(coefficient=0.04))),
        share=Normalizer(by="paths"),
    )
