"""IPA (ROME, arXiv 2512.24873)."""

from bough.credit import Ipa
from bough.objective import Reject, Topr
from bough.train import Run, World


def ipa(world: World, *, gap: float = 2.0) -> Run:
    """IPA (ROME, arXiv 2512.24873): returns discounted by chunk, off-policy REINFORCE with chunk ratios.

    Assumes nothing of the environment; a chunk is a turn. Experimental: parts of the paper and of its framework were
    read. The discount of 0.95 is the paper's. Returns are taken against the task's mean, so that failures that pay 0
    get a negative advantage. The paper's resampling from chunks of earlier paths is left out.

    The bound on the mean ratio of a turn between learner and engine is a setting of Bough. The local engine computes
    the learner's own probabilities: there the ratio is 1 but for rounding, and the bound never acts. It acts where the
    engine has other kernels, another precision, or weights of earlier steps (`staleness`).
    """
    topr = Topr(ratio="turn", mean=True)
    return world.run(credit=Ipa(baseline="group"), objective=Reject(objective=topr, over="turn", low=0.0, high=gap))
