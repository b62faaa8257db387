"""TTRL (arXiv 2504.16084)."""

from bough.hooks import SubgroupVotes
from bough.train import Run, World


def ttrl(world: World, *, pattern: str = "") -> Run:
    """TTRL (arXiv 2504.16084): learns without labels, paid for the answer of most of the task's paths.

    Assumes tasks with one short final answer, the last action of a path, that most paths find more often than any wrong
    one. The rewards of the world are not paid: success is measured, and never learnt from. The paper draws 64
    paths for the vote and trains on 32 of them; here all paths do both.

    Try: `bough train ttrl --on reasoning`
    """
    votes = SubgroupVotes(confidence="none", size=-1, share=1.0, pattern=pattern)
    return world.run(rewards=(), hooks=(votes,))
