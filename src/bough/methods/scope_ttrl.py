"""SCOPE, training without labels (arXiv 2512.15146)."""

from dataclasses import replace

from bough.hooks import SubgroupVotes
from bough.train import Run, World


def scope_ttrl(world: World, *, size: int = 0, share: float = 0.5, pattern: str = "") -> Run:
    """SCOPE (arXiv 2512.15146): learns without labels from votes of subgroups, weighted by confidence.

    Assumes tasks with one short final answer, the last action of a path, and several paths a task; the paper has 64.
    The rewards of the world are not paid: success is measured, and never learnt from. Confidence is by entropies of
    turns; the paper's is by the likeliest tokens of paragraphs.

    Try: `bough train scope_ttrl --on reasoning`
    """
    votes = SubgroupVotes(size=size, share=share, pattern=pattern)
    return world.run(rewards=(), hooks=(votes,), sampling=replace(world.sampling, entropies=True))
