"""Fits a plan to measured runs: the seconds of the rollout loop, and the shares of the peak rates that are reached."""

from bough.config.config import ConfigError
from bough.plan.cluster import Cluster, Efficiency
from bough.plan.measured import MeasuredRun
from bough.plan.model_size import ModelSize
from bough.plan.rates import DeviceRates, MeasuredRates
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


def fit_exchange_s(run: MeasuredRun, other: MeasuredRun) -> float:
    """`Efficiency.exchange_s`, seconds, with which the forecast time of another run's updates equals the measured time.

    Args:
        run: A run with one rank.
        other: The same run with several ranks.

    Raises:
        ConfigError: when `run` has several ranks, or `other` has one.
    """
    if run.ranks > 1 or other.ranks == 1:
        raise ConfigError(
            f"--calibrate: got runs with {run.ranks} and {other.ranks} ranks, whose throughputs are measured; need the "
            "planned run with one rank, and one with several; train the second with ranks=2, or leave --calibrate out"
        )
    rates, size = MeasuredRates(run=run, ranks=other.ranks), other.batch_tasks
    batches = [other.trees[first : first + size] for first in range(0, len(other.trees), size)]
    measured_s = other.learn_s / other.ranks * sum(tree.unique_tokens for tree in other.trees)
    return max(0.0, measured_s - sum(map(rates.update_s, batches))) * size / len(other.trees) / other.optimizer_steps


def fit_efficiency(run: MeasuredRun, cluster: Cluster, model: ModelSize) -> Efficiency:
    """The efficiencies with which a forecast of a run's updates and passes takes as long as the run.

    Args:
        run: A run whose engine and learner had one device of the cluster's kind each, or shared one.
        cluster: Its devices have peak rates.
        model: The model of that run.

    Raises:
        ConfigError: when the run was faster than the peak rates.
    """
    assumed = cluster.efficiency
    rates = DeviceRates(
        devices=cluster.devices,
        efficiency=assumed,
        model=model,
        learner_model=model.in_dtype(cluster.layout.learner_dtype),
        run=run,
        devices_per_replica=1,
        ranks=1,
        sharded=False,
        in_turn=False,
    )
    measured_s = run.learn_s * sum(tree.unique_tokens for tree in run.trees)
    learner = assumed.learner * rates.update_s(run.trees) / measured_s
    # A pass with so many tokens that its arithmetic takes longer than the weights from memory.
    many = 10**6
    passed_s = rates.pass_s(new_tokens=many, joined=0, decoding=0, pairs=0, context_tokens=0) - assumed.pass_s
    engine = assumed.engine * passed_s / (many * run.token_s)
    if learner > 1 or engine > 1:
        raise ConfigError(
            f"--calibrate: got a run that reaches {learner:.0%} of the learner's peak rate and {engine:.0%} of the "
            "engine's; need at most 100%: it ran on other devices; correct devices.peak_tflops and learner_tflops"
        )
    weights_s = rates.pass_s(new_tokens=0, joined=0, decoding=0, pairs=0, context_tokens=0) - assumed.pass_s
    fitted = {"learner": learner, "engine": engine, "pass_s": max(0.0, run.pass_s - weights_s)}
    return assumed.model_copy(update=fitted)
