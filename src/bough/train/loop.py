"""The loop: from tasks to a better policy, one line of stages.

    tasks -> grow -> reward -> credit -> admit -> pack -> learn -> sync -> tasks ...

Steps count over the whole run. The epochs of the warm-up come first, then `schedule.steps` batches of reinforcement.
With `execution.staleness` trees of the next step grow during `learn`, from the policy before it (see `pipeline`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bough.batch import Batch, pack
from bough.credit import compute_credit
from bough.curate import Filter, select
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.learner.learner import Diverged
from bough.learner.loss_inputs import ObjectiveContext
from bough.reward import Reward, compute_rewards
from bough.rollout import DeadlineExceeded, Rollouts
from bough.train.evaluation import HeldoutResult, measure
from bough.train.health import NoLearningSignal, check_gap, check_paths, check_signal, is_flat, next_health
from bough.train.pipeline import PrefetchedRollouts, newest
from bough.train.recorder import Checkpointable, RunRecorder, TrainState
from bough.train.runtime import Runtime
from bough.train.stopwatch import Stopwatch
from bough.train.summary import summarize
from bough.train.teacher_paths import teacher_paths
from bough.train.turn_entropy import add_entropies, mean_turn_entropies
from bough.train.warmup import warm_up
from bough.tree import Credited, Rewarded, Tree, derive, groups
from bough.tree.needs import PATHS, needs_of

STOPS = (NoLearningSignal, Diverged, DeadlineExceeded, EnvFault, EngineFault)
"""Errors after which the state in memory is consistent, so that a checkpoint is written."""


async def train(runtime: Runtime, recorder: RunRecorder) -> str:
    """Train from where the journal left off to the end of the run.

    A run that is stopped after its warm-up first writes a checkpoint and `final/`. A step counts once its first trees
    are grown; a step stopped earlier is repeated by `resume`.

    Returns:
        The reason for ending before the last step; "" otherwise.

    Raises:
        NoLearningSignal: when the run cannot learn.
        Diverged: when a loss, a gradient or a weight is not finite.
        DeadlineExceeded: when something that was waited for did not come.
        EnvFault, EngineFault: when the environment or the engine breaks outside of a path.
    """
    run, progress, prefetched = runtime.run, TrainState(), PrefetchedRollouts()
    memories = {**runtime.memories, **({"ahead": prefetched} if run.world.execution.staleness else {})}
    resumed = recorder.restore(runtime.learner, progress, runtime.reference, memories)
    await runtime.sync(moved=False)
    if not resumed:
        recorder.log(runtime.env_metrics())
        if run.warmup_steps:
            await warm_up(runtime, recorder)
        runtime.reference.take()
        progress.step = run.warmup_steps
    try:
        if run.warmup_steps and not resumed:
            await runtime.sync(moved=True)
        await _reinforce(runtime, recorder, progress, prefetched, memories)
        check_signal(progress.health, run.health)
    except STOPS:
        recorder.stop(runtime.learner, progress, runtime.reference, memories)
        raise
    done = progress.step - run.warmup_steps
    if done >= run.world.schedule.steps:
        return ""
    return (
        f"ended after step {done} of {run.world.schedule.steps}: every path of the last {progress.health.flat} batches "
        "succeeded, so nothing is left to learn from these tasks (health.dead_batches)"
    )


async def _reinforce(
    runtime: Runtime,
    recorder: RunRecorder,
    progress: TrainState,
    prefetched: PrefetchedRollouts,
    memories: Mapping[str, Checkpointable],
) -> None:
    """Run the remaining steps of reinforcement, each with its evaluation, rows and checkpoint."""
    run, before = runtime.run, runtime.run.warmup_steps

    def is_last() -> bool:
        return progress.step >= before + run.world.schedule.steps or is_flat(progress.health, run.health)

    def is_due(every: int) -> bool:
        return (progress.step - before) % every == 0 or is_last()

    async def close(credited: Sequence[Credited] = ()) -> None:
        if is_due(run.world.evaluation.every):
            await _evaluate(runtime, recorder, progress.step)
        recorder.write_step(progress.step, credited, last=is_last())
        if is_due(run.checkpointing.every):
            recorder.save(runtime.learner, progress, runtime.reference, memories)

    if is_due(run.world.evaluation.every) and not recorder.evaluated(progress.step):
        await close()
    experts = await runtime.show()
    while not is_last():
        await close(await _step(runtime, recorder, progress, experts, prefetched))


async def _step(
    runtime: Runtime,
    recorder: RunRecorder,
    progress: TrainState,
    experts: Sequence[Tree],
    prefetched: PrefetchedRollouts,
) -> list[Credited]:
    """One batch: grow, reward, credit, admit, pack, learn, sync."""
    run, watch = runtime.run, Stopwatch()
    seed = derive(run.seed, "step", progress.step + 1)
    # A resumed run has nothing cached; what is read from a cache may differ from what is computed in its lowest bits.
    runtime.engine.reset_cache()
    if run.method.reference == "step":
        runtime.reference.take()
    data = await _gather(runtime, recorder, progress, watch, prefetched)
    metrics = summarize(data.grown, unstarted=data.unstarted, dropped=data.dropped)
    runtime.report_cuts([each.tree for each in data.grown])
    runtime.report_faults([each.tree for each in data.grown])
    recorder.log(metrics)
    ready, divergence = runtime.hooks.ready, _still
    batch = _pack(runtime, data, experts, seed, watch, metrics) if ready else None
    if ready:
        lively = 0 if batch is None else sum(not each.is_zero for each in data.kept)
        progress.health = next_health(progress.health, lively=lively, success=metrics["train/success"])
    if batch is not None:
        with watch("learn"):
            stale = run.world.execution.staleness > 0 and newest(data.kept) < runtime.learner.updates
            before = runtime.learner.logprobs(batch) if stale and run.method.hooks else batch.rollout_logprob
        learned = await _learn(runtime, recorder, progress, watch, batch, prefetched)
        if runtime.budget is not None:
            metrics |= runtime.budget.note(runtime.learner.extent)
        metrics |= learned
        divergence = partial(runtime.learner.divergence, replace(batch, rollout_logprob=before))
        if stale:
            # The sampling weights are overwritten, so this is drift, not the engine gap; the canary checks the engine.
            metrics["policy/drift"] = metrics.pop("policy/gap")
        recorder.log(metrics)
        with watch("sync"):
            metrics["policy/canary_gap"] = await runtime.sync(moved=learned["optimizer/gradient_norm"] > 0)
    metrics |= runtime.hooks.observe(divergence)
    progress.entropies = add_entropies(progress.entropies, data.grown)
    metrics |= runtime.env_metrics() | watch.metrics(tokens=metrics["speed/sampled_tokens"])
    recorder.log(metrics | {"phase": "rl"})
    check_gap(metrics.get("policy/gap", 0.0), run.health)
    return data.credited


@dataclass(slots=True, kw_only=True)
class StepData:
    """What a step has to learn from.

    Attributes:
        grown: What was grown.
        credited: What was credited; the same, but for what an adviser put in its place.
        kept: What was admitted.
        dropped: How many groups were not, by reason.
        unstarted: How many tasks did not start.
    """

    grown: list[Rewarded] = field(default_factory=list[Rewarded])
    credited: list[Credited] = field(default_factory=list[Credited])
    kept: list[Credited] = field(default_factory=list[Credited])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    unstarted: int = 0


async def _learn(
    runtime: Runtime,
    recorder: RunRecorder,
    progress: TrainState,
    watch: Stopwatch,
    batch: Batch,
    prefetched: PrefetchedRollouts,
) -> dict[str, float]:
    """Update the policy; meanwhile, where the run allows it, trees of the next step grow."""
    run, step = runtime.run, progress.step
    context = ObjectiveContext(
        reference=runtime.reference.model,
        mean_turn_entropy=mean_turn_entropies(progress.entropies, runtime.policy.device),
        progress=(step - 1 - run.warmup_steps) / run.world.schedule.steps,
    )

    def update() -> dict[str, float]:
        with watch("learn"):
            seed = derive(run.seed, "step", step)
            return runtime.learner.learn(batch, run.loss, run.method.normalizer, seed=seed, context=context)

    if not run.world.execution.staleness or step == run.warmup_steps + run.world.schedule.steps:
        return update()
    builder = _grow(runtime, recorder, watch, step + 1, progress.drawn)
    return await prefetched.beside(update, builder, runtime.deadlines, owner=f"step {step}")


async def _grow(
    runtime: Runtime, recorder: RunRecorder, watch: Stopwatch, step: int, drawn: int, number: int = 0
) -> Rollouts:
    """Grow one round of a step's trees, on the tasks from number `drawn` on."""
    run, seed = runtime.run, derive(runtime.run.seed, "step", step)
    with watch("grow", engine=runtime.engine, env=runtime.host):
        tasks = await runtime.tasks_from(drawn)
        shelf = recorder.partial_trees(step, number) if run.checkpointing.as_grown else None
        return await runtime.rollouts.run(
            run.method.explorer, tasks, seed=derive(seed, number) if number else seed, shelf=shelf
        )


async def _gather(
    runtime: Runtime, recorder: RunRecorder, progress: TrainState, watch: Stopwatch, prefetched: PrefetchedRollouts
) -> StepData:
    """Grow, reward, credit and admit, in rounds, until the batch is full or the rounds are over."""
    run, data, step = runtime.run, StepData(), progress.step + 1
    seed = derive(run.seed, "step", step)
    rewarded: list[Rewarded] = []
    for number in range(run.method.max_sampling_rounds):
        grown = prefetched.take() or await _grow(runtime, recorder, watch, step, progress.drawn, number)
        if number == 0:
            check_paths(grown.trees, grown.unstarted)
        # The step counts from here on: advisers observe its trees.
        progress.step, progress.drawn = step, progress.drawn + run.world.schedule.batch_tasks
        data.unstarted += len(grown.unstarted)
        with watch("credit"):
            fresh = reward(grown.trees, run.world.rewards)
            data.grown += fresh
            rewarded += runtime.add_estimates(fresh, derive(seed, number) if number else seed)
            data.credited = compute_credit(run.method.credit, rewarded)
            data.kept, data.dropped = apply_filters(data.credited, run.world.filters)
        if len(groups(data.kept)) >= run.world.schedule.batch_tasks:
            break
    data.kept = [each for group in groups(data.kept)[: run.world.schedule.batch_tasks] for each in group]
    return data


def _pack(
    runtime: Runtime,
    data: StepData,
    experts: Sequence[Tree],
    seed: int,
    watch: Stopwatch,
    metrics: dict[str, float],
) -> Batch | None:
    """The batch of the update; None when no group is admitted, or no admitted token is trained."""
    if not data.kept:
        return None
    run = runtime.run
    with watch("learn"):
        shown = _shown(runtime, data.kept, experts, seed, metrics)
        paths = PATHS in needs_of(run.loss) | needs_of(run.world.optimizer)
        batch = pack(data.kept, paths=paths, experts=shown)
    if not len(batch.at):
        metrics["groups/dropped_untrained"] = float(len(groups(data.kept)))
        metrics["groups/dropped"] += metrics["groups/dropped_untrained"]
        return None
    return batch.to(runtime.policy.device)


def _still() -> float:
    """How far the policy moved in a step without an update."""
    return 0.0


def _shown(
    runtime: Runtime, kept: Sequence[Credited], experts: Sequence[Tree], seed: int, metrics: dict[str, float]
) -> list[Tree]:
    """The demonstrations of a batch: some of those of the start, others at every step, and what the trees teach."""
    mixed = runtime.run.method.demonstrations
    order = np.random.default_rng(derive(seed, "experts")).permutation(len(experts))
    shown: list[Tree] = [experts[i] for i in order[: mixed.per_step]]
    shown += teacher_paths(kept) if mixed.from_trees else []
    if mixed.revise:
        revised = runtime.revise([each.rewarded for each in kept])
        metrics["train/revisions"] = float(len(revised))
        shown += revised
    return shown


async def _evaluate(runtime: Runtime, recorder: RunRecorder, step: int) -> HeldoutResult:
    """Measure the held-out tasks. Always with the same seeds, so that only the policy differs between evaluations."""
    run, watch = runtime.run, Stopwatch()
    with watch("evaluate"):
        seed = derive(run.seed, "heldout")
        result = await measure(
            runtime.rollouts, runtime.heldout_tasks, temperature=run.world.evaluation.temperature, seed=seed
        )
    recorder.log_evaluation(step, result)
    runtime.report_cuts(result.trees)
    recorder.log(watch.metrics())
    return result


def reward(trees: Sequence[Tree], rewards: Sequence[Reward]) -> list[Rewarded]:
    """Reward the trees of each task together."""
    return [rewarded for group in groups(trees) for rewarded in compute_rewards(group, rewards)]


def apply_filters(credited: Sequence[Credited], admits: Sequence[Filter]) -> tuple[list[Credited], dict[str, int]]:
    """Let every rule choose in turn; returns what is left and how many groups were dropped, by reason."""
    kept, dropped = list(credited), dict[str, int]()
    for rule in admits:
        admitted = select(rule, kept)
        kept = list(admitted.trees)
        for reason, count in admitted.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return kept, dropped
