"""SPAE (arXiv 2601.03823)."""

from bough.appraise import StepPotential
from bough.credit import Spae
from bough.train import Run, World


def spae(world: World, *, field: str = "", prefix: str = "", n: int = 5) -> Run:
    """SPAE (arXiv 2601.03823): asks the policy to answer now, before each turn; credit from its answers.

    Assumes tasks with a true answer, the field `field` of their data; "" takes the last action of a successful path for
    it. `prefix` begins an answer. Asking costs `n` short samples and a score for each turn. The paper's
    steps are paragraphs of one answer; here they are turns. See `Spae` for what the paper leaves open.
    """
    return world.run(appraisers=(StepPotential(field=field, prefix=prefix, n=n),), credit=Spae())
