"""HGPO on TextWorld: turns in the same room are compared, more so after the same rooms.

Paper: HGPO (arXiv 2602.22817). Assumes states with keys, and a policy that reads what came before, here everything. A
history of 4, the longer of the two that the authors use, discount 0.95 and weights that grow linearly are theirs; the
rest is that of grpo_textworld. The released code leaves out advantages that happen to be exactly 0
(`Hgpo(as_released=True)`).
"""

from dataclasses import replace

from bough.credit import Hgpo
from bough.recipes import grpo_textworld
from bough.train import Run


def run() -> Run:
    """Train in under half an hour on two CPU cores. Needs the extra `textworld`."""
    return replace(
        grpo_textworld.run(),
        name="hgpo_textworld",
        credit=Hgpo(history=4),
    )
