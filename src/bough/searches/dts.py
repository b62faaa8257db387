"""DTS: sampling from a tree in proportion to the value of its ends."""

from bough.search.backup import SoftmaxBackup
from bough.search.descend import Descend
from bough.search.evaluate import ConstantValue
from bough.search.expand import Sample
from bough.search.finish_path_first import FinishPathFirst
from bough.search.score import QValue
from bough.search.search import Search


def dts(width: int = 4, sharpness: float = 1.0, greedy: bool = False) -> Search:
    """DTS, with `greedy` DTS* (arXiv 2506.20701): children drawn by a soft maximum, paths to the end; needs forks.

    Experimental: written from the abstract page; the paper is about diffusion. A descent draws a child with probability
    copies * exp(sharpness * q), or takes the best. At the first node with fewer than `width` expansions one more action
    is sampled, and rolled out to the end, each turn of it a node. `SoftmaxBackup` propagates the values of ends. The
    visits of an end become proportional to its probability under the policy times exp(sharpness * value). A round is a
    turn, or one more visit of an end.
    """
    down = Descend(by=QValue(), sharpness=None if greedy else sharpness)
    return Search(
        select=FinishPathFirst(then=down),
        expand=Sample(width=1),
        evaluate=ConstantValue(value=None),
        backup=SoftmaxBackup(sharpness=sharpness),
        expansions_per_node=width,
        stop_value=None,
    )
