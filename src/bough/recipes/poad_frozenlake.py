"""POAD on FrozenLake in text: token values, discounted between actions and not inside them.

Paper: POAD (arXiv 2405.15821). Assumes that actions differ in length for no good reason. Discount and lambda are the
released code's 0.95, and so is the clip of 0.2; its critic is a model of its own. That code decays by lambda inside
actions too (`Poad(as_released=True)`) and whitens differently. One path of each task, as in gae_frozenlake.
"""

from dataclasses import replace

from bough.credit import Poad
from bough.objective import Kl, PpoClip, Sum, ValueClip
from bough.recipes import gae_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        gae_frozenlake.run(),
        name="poad_frozenlake",
        credit=Poad(),
        objective=Sum(terms=(PpoClip(), ValueClip(), Kl(coefficient=0.04))),
    )
