"""StepORLM (arXiv 2509.22558)."""

from dataclasses import replace

from bough.appraise import Verifications
from bough.credit import SolverAndJudge
from bough.curate import NonZeroAdvantage
from bough.objective import WDpo
from bough.reward import Judged
from bough.train import Run, World
from bough.tree.needs import POLICY


def step_orlm(world: World, *, role: str = POLICY, n: int = 1, beta: float = 0.1) -> Run:
    """StepORLM (arXiv 2509.22558): pairs of paths by the solver's verdict, then by a judge of steps; weighted DPO.

    Assumes success as an exact verdict, several paths of a task, and a judge of whole paths. The loss has no reference,
    so the learning rate is a quarter of the world's. Experimental: by default the policy is its own judge, and the
    judge improves with it by their shared weights; the paper's is a model of its own, trained on its critiques that
    agree with the solver, in three rounds. A judge set by `role` and `models` is frozen.

    Try: `bough train 'step_orlm(role=judge)' --on linear_programs models='{judge: StartingWeights}'`
    """
    return world.run(
        appraisers=(Verifications(role=role, n=n),),
        rewards=(*world.rewards, Judged(column="steps")),
        credit=SolverAndJudge(),
        objective=WDpo(beta=beta, most=1.0, reference=False),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        optimizer=replace(world.optimizer, learning_rate=world.optimizer.learning_rate / 4),
    )
