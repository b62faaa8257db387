"""SLATE on FrozenLake in text: five candidates for every move, judged before one of them is made.

Paper: Truncated Step-Level Sampling with Process Rewards (SLATE, arXiv 2602.23440). Assumes a judge: the paper asks a
large model whether a thought, a search or an answer is good, bad or neither; here the oracle says whether a move is its
own. Five candidates and a temperature of .7 are the paper's, as is the clip of .2 and that every candidate counts once.
The penalty on divergence and the learning rate are those of grpo_frozenlake, for a tiny model that learns from scratch;
the paper's are .001 and 1e-6.
"""

from dataclasses import replace

from bough.credit import Slate as Judged
from bough.explore import Advised, Slate
from bough.objective import Kl, Normalizer, PpoClip, Sum
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="slate_frozenlake",
        explorer=Slate(quality=Advised()),
        credit=Judged(),
        objective=Sum(terms=(PpoClip(), Kl(coefficient=0.04))),
        share=Normalizer(by="unique_tokens"),
    )
