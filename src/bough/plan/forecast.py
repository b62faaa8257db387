"""Forecasts of training on some numbers of devices, from a measured run and a cluster."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bough.config.config import ConfigError
from bough.plan.calibrate import fit_loop_s
from bough.plan.cluster import Cluster
from bough.plan.measured import MeasuredRun
from bough.plan.memory import DeviceMemory, activation_bytes, engine_memory, learner_memory
from bough.plan.model_size import ModelSize
from bough.plan.rates import DeviceRates, MeasuredRates
from bough.plan.simulate import Deployment, Rates, Simulated, simulate
from bough.units import GIB

BATCHES = 4
"""Measured batches of a simulation."""

DEVICES = (1, 8, 64, 512)
"""Numbers of devices of a plan, up to those of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The division of some devices.

    Attributes:
        replicas: Engine replicas.
        ranks: Devices of the learner.
        in_turn: Whether both are on the same devices.
    """

    replicas: int
    ranks: int
    in_turn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The forecast for some devices; all its rates are simulated.

    Attributes:
        devices: Number of devices.
        division: Their division.
        engine: Memory of a device that generates.
        learner: Memory of a device that learns; that of the engine's where devices do both.
        usable: Bytes of a device that may be used.
        problem: Why the plan does not fit; "" if it fits. Without a fit nothing is simulated.
        step_s: Seconds of a batch.
        new_tokens_per_s: Prompt and observation tokens that engines compute.
        sampled_tokens_per_s: Tokens that engines sample.
        learned_tokens_per_s: Unique tokens of updates.
        busy: Busy share of each stage.
        bottleneck: The stage that limits the rate.
        episodes_per_hour: Episodes.
        cost: Price of 1,000 episodes.
    """

    devices: int
    division: Division
    engine: DeviceMemory
    learner: DeviceMemory
    usable: float
    problem: str
    step_s: float = math.nan
    new_tokens_per_s: float = math.nan
    sampled_tokens_per_s: float = math.nan
    learned_tokens_per_s: float = math.nan
    busy: dict[str, float] | None = None
    bottleneck: str = ""
    episodes_per_hour: float = math.nan
    cost: float = math.nan


def forecast(
    run: MeasuredRun,
    cluster: Cluster,
    model: ModelSize,
    counts: Sequence[int] = (),
    *,
    batches: int = BATCHES,
    seed: int = 0,
) -> list[Forecast]:
    """The forecast for each number of devices.

    Args:
        run: The measured run.
        cluster: The cluster.
        model: The model.
        counts: Numbers of devices; `DEVICES` up to the cluster's number, and that number, if not given.
        batches: Simulated batches after the first ones.
        seed: Seed of the simulation.

    Raises:
        ConfigError: when a number of devices is not in 1 to 512, or above that of the cluster.
    """
    max_devices = cluster.devices.count
    counts = counts or sorted({*(count for count in DEVICES if count < max_devices), max_devices})
    for count in counts:
        if not 1 <= count <= min(max_devices, 512):
            raise ConfigError(
                f"--devices: got {count}; need 1 to {min(max_devices, 512)}, the cluster's devices.count and at most "
                "512; change one of the two"
            )
    loop_s = cluster.schedule.loop_s
    loop_s = fit_loop_s(run) if loop_s is None else loop_s
    return [_forecast(run, cluster, model, count, loop_s, batches, seed) for count in counts]


def divide(cluster: Cluster, count: int) -> Division:
    """The division of some devices; in turn where there are too few for a replica and a learner."""
    layout, each = cluster.layout, cluster.layout.devices_per_replica
    if cluster.devices.measured:
        return Division(replicas=1, ranks=count, in_turn=True)
    if layout.in_turn or count < each + 1:
        return Division(replicas=max(count // each, 1), ranks=count, in_turn=True)
    replicas = min(max(round(count * layout.generation / each), 1), (count - 1) // each)
    return Division(replicas=replicas, ranks=count - replicas * each, in_turn=False)


def _forecast(
    run: MeasuredRun, cluster: Cluster, model: ModelSize, count: int, loop_s: float, batches: int, seed: int
) -> Forecast:
    division = divide(cluster, count)
    usable = cluster.devices.memory_gib * GIB * cluster.efficiency.memory
    learned = model.in_dtype(cluster.layout.learner_dtype)
    learner = learner_memory(
        learned,
        activations=activation_bytes(learned, run.micro_tokens, recompute=run.recompute),
        reference=run.reference,
        shards=division.ranks if cluster.layout.sharded else 1,
    )
    each = cluster.layout.devices_per_replica
    beside = learner if division.in_turn else DeviceMemory()
    engine = engine_memory(model, usable=usable, devices_per_replica=min(each, count), beside=beside)
    learner = replace(engine) if division.in_turn else learner
    cache_tokens = int(engine.cache * each / model.kv_bytes)
    found = Forecast(
        devices=count,
        division=division,
        engine=engine,
        learner=learner,
        usable=usable,
        problem=_problem(run, count, each, max(engine.fixed, learner.fixed), usable, cache_tokens),
    )
    if found.problem:
        return found
    deployment, rates = _deployed(run, cluster, model, found, loop_s, cache_tokens)
    simulated = simulate(deployment, rates, run.trees, batches=batches, seed=seed)
    return _rated(found, simulated, run, cluster.devices.price_per_hour)


def _problem(run: MeasuredRun, count: int, each: int, fixed: float, usable: float, cache_tokens: int) -> str:
    """Why a deployment cannot run; "" if it can."""
    longest = max(tree.longest for tree in run.trees)
    if count < each:
        return f"got {count} devices; need {each} for a replica; lower layout.devices_per_replica"
    if fixed > usable:
        return (
            f"memory of a device: got {usable / GIB:.1f} GiB; need {fixed / GIB:.1f} without a KV cache; take a "
            "smaller model or micro_tokens, recompute=true, layout.sharded=true or more layout.devices_per_replica"
        )
    if cache_tokens < longest:
        return (
            f"KV cache of a replica: got {cache_tokens} tokens; need {longest}, the longest context; take a smaller "
            "model, or more layout.devices_per_replica"
        )
    return ""


def _deployed(
    run: MeasuredRun, cluster: Cluster, model: ModelSize, found: Forecast, loop_s: float, cache_tokens: int
) -> tuple[Deployment, Rates]:
    schedule, layout, environment = cluster.schedule, cluster.layout, cluster.environment
    division, devices = found.division, cluster.devices
    step_s = run.env_step_s if environment.step_s is None else environment.step_s
    deployment = Deployment(
        replicas=max(run.engines, 1) if devices.measured else division.replicas,
        slots=run.slots if devices.measured else layout.slots,
        cache_tokens=cache_tokens,
        inline=devices.measured and run.engines == 0,
        workers=environment.workers + environment.workers_per_device * found.devices,
        loops=schedule.loops,
        loop_s=loop_s,
        env_step_s=step_s,
        variation=environment.variation,
        batch_tasks=(schedule.batch_tasks or run.batch_tasks) + schedule.batch_tasks_per_device * found.devices,
        staleness=0 if division.in_turn and not devices.measured else schedule.staleness,
        growing_batches=schedule.growing_batches,
    )
    if devices.measured:
        return deployment, MeasuredRates(run=run, ranks=division.ranks, exchange_s=cluster.efficiency.exchange_s)
    rates = DeviceRates(
        devices=devices,
        efficiency=cluster.efficiency,
        model=model,
        learner_model=model.in_dtype(layout.learner_dtype),
        run=run,
        devices_per_replica=layout.devices_per_replica,
        ranks=division.ranks,
        sharded=layout.sharded,
        in_turn=division.in_turn,
    )
    return deployment, rates


def _rated(found: Forecast, simulated: Simulated, run: MeasuredRun, price_per_hour: float) -> Forecast:
    seconds = simulated.seconds
    return replace(
        found,
        step_s=seconds / simulated.batches,
        new_tokens_per_s=simulated.computed_tokens / seconds,
        sampled_tokens_per_s=simulated.sampled_tokens / seconds,
        learned_tokens_per_s=simulated.learned_tokens * run.update_share / seconds,
        busy=simulated.busy,
        bottleneck=bottleneck(simulated),
        episodes_per_hour=3600 * simulated.episodes / seconds,
        cost=1000 * found.devices * price_per_hour * seconds / 3600 / simulated.episodes,
    )


def bottleneck(simulated: Simulated) -> str:
    """The stage that limits the rate: learner, publication, or growth if it takes longer than both.

    In growth it is the stage with the largest busy share. If that is below half of the time of growth, turns wait for
    each other: "latency".
    """
    growth = simulated.grow_s * simulated.batches / simulated.seconds
    busy = simulated.busy
    serial = max(("learner", "publication"), key=lambda name: busy[name])
    if busy[serial] >= growth:
        return serial
    stage = max(("engine", "environment", "loop"), key=lambda name: busy[name])
    return stage if busy[stage] >= growth / 2 else "latency"
