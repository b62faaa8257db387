"""Flow-GRPO (AgentFlow, arXiv 2510.05592)."""

from bough.credit import FlowGrpo
from bough.objective import Normalizer, PpoClip
from bough.train import Run, World


def flow_grpo(world: World) -> Run:
    """Flow-GRPO (AgentFlow, arXiv 2510.05592): every turn gets the normalised outcome of its path.

    Assumes a judge of the whole path, here the environment's reward. Clips of 0.2 below and 0.3 above and 8 paths a
    task are the paper's. Its loss is a mean over tokens, turns and paths; here over tokens of a path, then paths. The
    released code takes statistics over turns (`FlowGrpo(as_released=True)`) and drops random turns to fill its batches.
    """
    return world.run(credit=FlowGrpo(), objective=PpoClip(high=0.3), normalizer=Normalizer(by="paths"))
