"""Policy mirror descent (Kimi k1.5, arXiv 2501.12599)."""

from bough.credit import OpmdBaseline
from bough.objective import Opmd
from bough.train import Run, World


def opmd(world: World, *, temperature: float = 1.0) -> Run:
    """Policy mirror descent (Kimi k1.5, arXiv 2501.12599): return minus mean, REINFORCE without ratio or clip.

    Assumes several paths of each task, sampled by a policy near the present one. The form is Trinity-RFT's simple one
    (2505.17826), and so is the temperature, which scales the loss. There a path alone in its group keeps its return;
    here it gets 0.
    """
    return world.run(credit=OpmdBaseline(), objective=Opmd(temperature=temperature), regularizers=())
