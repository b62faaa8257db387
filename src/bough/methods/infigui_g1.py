"""InfiGUI-G1 (arXiv 2508.05731)."""

from bough.credit import rloo
from bough.explore import Chains
from bough.objective import PpoClip
from bough.reward import RankedPoints
from bough.train import Run, World


def infigui_g1(
    world: World, *, weight: float = 0.1, n: int = 8, format_point: bool = False, near_px: float = 0.0
) -> Run:
    """InfiGUI-G1 (AEPO, arXiv 2508.05731): answers name several points, paid by the rank of the first hit.

    Assumes a screen whose oracle gives the right element, and answers with several points. RLOO over `n` paths of a
    task, a clip at 1.4, no divergence. With `format_point`, as in the paper, a well-formed answer earns 1 more, and a
    miss with many points is paid. The world's own rewards stay.

    Try: `bough train infigui_g1 --on screens env.boxes=true env.points=true env.click=points sampling.max_tokens=24`
    Try: `bough train infigui_g1 --on miniwob`

    Args:
        world: The world.
        weight: Factor on the reward of an answer.
        n: Paths of a task.
        format_point: Whether a well-formed answer earns 1 more.
        near_px: Points at most this far from one line are refused, as points on one are.
    """
    return world.run(
        explorer=Chains(n=n),
        rewards=(*world.rewards, RankedPoints(weight=weight, format_point=format_point, near_px=near_px)),
        credit=rloo(),
        objective=PpoClip(high=0.4),
        regularizers=(),
    )
