"""Fits the seconds of the rollout loop, so that a simulation of the measured run takes as long as the run."""

from bough.plan.measured import MeasuredRun
from bough.plan.rates import MeasuredRates
from bough.plan.simulate import Deployment, simulate

HALVINGS = 16
"""Halvings of the interval of the fitted time."""


def measured_deployment(run: MeasuredRun, *, workers: int, staleness: int, loop_s: float) -> Deployment:
    """The deployment of a run on its own machine, with some workers and a staleness."""
    return Deployment(
        replicas=max(run.engines, 1),
        slots=run.slots,
        inline=run.engines == 0,
        workers=workers,
        loop_s=loop_s,
        env_step_s=run.env_step_s,
        batch_tasks=run.batch_tasks,
        staleness=staleness,
    )


def fit_loop_s(run: MeasuredRun) -> float:
    """Seconds of the rollout loop for each turn with which simulated growth takes as long as the measured one.

    Zero if growth is shorter than a simulation without the loop.
    """
    rates = MeasuredRates(run=run, ranks=run.ranks)
    low, high = 0.0, run.grow_s / (run.batch_tasks * min(len(tree.turns) for tree in run.trees))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        plan = measured_deployment(run, workers=run.workers, staleness=0, loop_s=middle)
        low, high = (low, middle) if simulate(plan, rates, run.trees, batches=1).grow_s > run.grow_s else (middle, high)
    return low
