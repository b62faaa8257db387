"""A beam by the implicit value of a DPO policy."""

from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.log_ratio import LogRatio, PathRating
from bough.search.prune import BeamWidth, DedupeStates
from bough.search.search import Search


def implicit_beam(width: int = 4, samples: int = 4, beta: float = 0.1, role: str = "reference") -> Search:
    """A beam by the implicit value of a DPO policy (From r to Q*, arXiv 2404.12358); needs a reference model.

    At each of `width` nodes `samples` actions are executed, and the children whose paths have the highest sum of
    `LogRatio` stay. The paper's beam is over tokens and by the policy's likelihood, which is the same search with the
    reference's likelihood added; a node here is a turn. A path that ends leaves the beam, which stays narrower by one.
    After a run of DPO the reference is a checkpoint of an earlier `step`, such as that of the warm-up.

    Try: `bough search runs/grpo_sokoban 'implicit_beam()'
    models='{reference: FrozenCheckpoint(run=runs/grpo_sokoban)}'`
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples),
        rate=LogRatio(beta=beta, role=role),
        prune=(DedupeStates(), BeamWidth(width=width, by=PathRating(), shrink=True)),
        eager=True,
        stop_value=None,
    )
