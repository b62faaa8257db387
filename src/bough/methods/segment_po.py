"""SPO (arXiv 2505.23564)."""

from bough.credit import SegmentPo
from bough.explore import Forks
from bough.train import Run, World


def segment_po(world: World, *, chains: int = 4, rounds: int = 2) -> Run:
    """SPO (arXiv 2505.23564): a segment between forks gets the change of the mean outcome over it.

    Assumes an environment that can step a state twice. The paper's tree is full; here each chain is forked at one
    random turn in each of `rounds`. Tokens sampled with a probability above 0.9 get no credit, as in the paper.
    """
    return world.run(explorer=Forks(chains=chains, draws=1, rounds=rounds), credit=SegmentPo())
