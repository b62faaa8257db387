"""CM2 (arXiv 2602.12268)."""

from bough.appraise import Checklist
from bough.credit import TurnPosition
from bough.reward import Judged
from bough.train import Run, World
from bough.tree.needs import POLICY


def cm2(world: World, *, role: str = POLICY, n: int = 1, field: str = "checklist", items: float = 1.0) -> Run:
    """CM2 (arXiv 2602.12268): a turn is paid for the items of a checklist that it is the first to satisfy.

    Assumes a model that can judge: set `role` and `models`, else the policy judges itself; and at least five paths of
    a task, or a turn has nothing to be compared with. Items are the field `field` of the task's data, or the judge
    writes them. A complete checklist pays `items`. The world's rewards stay; the paper's only reward is the checklist.
    Its tools are simulated by a model, which in Bough is a seat of an environment that a model has in `policies`.

    Try: `bough train 'cm2(role=judge)' --on pantry models='{judge: StartingWeights}'`
    """
    return world.run(
        appraisers=(Checklist(role=role, n=n, field=field),),
        rewards=(*world.rewards, Judged(column="checklist", weight=items)),
        credit=TurnPosition(),
    )
