"""Step-APO (arXiv 2409.08642)."""

from bough import credit
from bough.methods.step_dpo import step_dpo
from bough.objective import StepApo
from bough.train import Run, World


def step_apo(world: World) -> Run:
    """Step-APO (CPL, arXiv 2409.08642): at a fork better actions over worse ones, with a margin by their values.

    Assumes an environment that can step a state twice. The value of an action is the mean return of its paths minus the
    task's mean, in place of the paper's search over plans (`cpl`). Beta 0.3 and alpha 1 are the paper's; trees grow as
    in Tree-GRPO (2509.21240). They have few forks with different actions, so a batch is one optimizer step at 0.4 of
    the world's learning rate.
    """
    return step_dpo(world).replace(credit=credit.dr_grpo(), objective=StepApo())
