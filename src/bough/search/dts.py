"""Sampling from a tree as often as what it leads to is worth."""

from bough.search.backup import SoftmaxBackup
from bough.search.descend import Descend
from bough.search.evaluate import ConstantValue
from bough.search.expand import Sample
from bough.search.onward import FinishPathFirst
from bough.search.score import QValue
from bough.search.search import Search


def dts(width: int = 4, sharpness: float = 1.0, greedy: bool = False) -> Search:
    """DTS, with `greedy` DTS* (arXiv 2506.20701): children drawn by a soft maximum, paths to the end; needs forks.

    Experimental: the paper's page was read, not its text, which is about diffusion. Down the tree a child is drawn with
    probability copies * exp(sharpness * q), or the best is taken; at the first place that was written on less than
    `width` times one more action is written, and played on to the end, each turn of it a node. The ends go up by
    `SoftmaxBackup`. Ends are then visited as often as the policy gets there, times exp(sharpness * value). A round is a
    turn, or one more visit of an end.
    """
    down = Descend(by=QValue(), sharpness=None if greedy else sharpness)
    return Search(
        select=FinishPathFirst(then=down),
        expand=Sample(width=1),
        evaluate=ConstantValue(value=None),
        backup=SoftmaxBackup(sharpness=sharpness),
        widen=width,
        enough=None,
    )
