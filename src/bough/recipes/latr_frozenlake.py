"""LATR on FrozenLake in text: paths branch where two actions are nearly tied, instead of by chance.

Paper: LATR (arXiv 2510.24302). Assumes an environment that can step a state twice, and an engine that says what else it
might have written; FrozenLake's states are values, so branching is free. Credit and loss are GRPO's, as in the paper.
Its ties and its 8 paths are those for countdown; it looks 20 to 50 tokens ahead for branches that come back to the same
text, while an action here is over in two or three, which spares all branches. The released code takes the likeliest
token wherever it does not branch, as if it had been sampled; here such tokens are sampled, and forced ones are not
learned from. Learning rate and divergence are those of grpo_frozenlake.
"""

from dataclasses import replace

from bough.explore import Lookahead
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="latr_frozenlake",
        explorer=Lookahead(paths=8),
    )
