"""REBASE: each level samples `width` actions, allocated by the values of nodes."""

from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.rebase import RebaseAllocation
from bough.search.search import Search


def rebase(width: int = 16, temperature: float = 0.2) -> Search:
    """REBASE (arXiv 2408.00724): each level samples `width` actions, allocated by the values of nodes; needs a critic.

    `width` actions are sampled at the root, and all sampled actions are executed and evaluated. Two equal samples are
    two paths, as in the released code. The paper's evaluation is a process reward model.
    """
    return Search(
        select=RebaseAllocation(width=width, temperature=temperature),
        expand=Sample(width=1),
        merge=False,
        evaluate=CriticValue(),
        eager=True,
        stop_value=None,
    )
