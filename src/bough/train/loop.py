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
from bough.curate import Admit, select
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.learner.learner import Diverged
from bough.learner.loss_inputs import Aids
from bough.reward import Reward, pay
from bough.rollout import Grown, Stuck
from bough.train.evaluation import Score, measure
from bough.train.health import DeadRun, check_gap, check_paths, check_signal, feel, is_flat
from bough.train.pipeline import Ahead, newest
from bough.train.recorder import Journal, Memory, Progress
from bough.train.runtime import Workshop
from bough.train.stopwatch import Stopwatch
from bough.train.summary import summarize
from bough.train.teacher_paths import taught
from bough.train.turn_entropy import add_entropies, usual
from bough.train.warmup import warm_up
from bough.tree import Credited, Rewarded, Tree, derive, groups
from bough.tree.needs import PATHS, needs_of

STOPS = (DeadRun, Diverged, Stuck, EnvFault, EngineFault)
"""Errors after which the state in memory is consistent, so that a checkpoint is written."""


async def train(shop: Workshop, journal: Journal) -> str:
    """Train from where the journal left off to the end of the run.

    A run that is stopped after its warm-up first writes a checkpoint and `final/`. A step counts once its first trees
    are grown; a step stopped earlier is repeated by `resume`.

    Returns:
        The reason for ending before the last step; "" otherwise.

    Raises:
        DeadRun: when the run cannot learn.
        Diverged: when a loss, a gradient or a weight is not finite.
        Stuck: when something that was waited for did not come.
        EnvFault, EngineFault: when the environment or the engine breaks outside of a path.
    """
    run, progress, ahead = shop.run, Progress(), Ahead()
    memories = {**shop.memories, **({"ahead": ahead} if run.world.execution.staleness else {})}
    resumed = journal.restore(shop.learner, progress, shop.reference, memories)
    await shop.sync(moved=False)
    if not resumed:
        journal.note(shop.env_metrics())
        if run.warmup_steps:
            await warm_up(shop, journal)
        shop.reference.take()
        progress.step = run.warmup_steps
    try:
        if run.warmup_steps and not resumed:
            await shop.sync(moved=True)
        await _reinforce(shop, journal, progress, ahead, memories)
        check_signal(progress.pulse, run.health)
    except STOPS:
        journal.stop(shop.learner, progress, shop.reference, memories)
        raise
    done = progress.step - run.warmup_steps
    if done >= run.world.schedule.steps:
        return ""
    return (
        f"ended after step {done} of {run.world.schedule.steps}: every path of the last {progress.pulse.flat} batches "
        "succeeded, so nothing is left to learn from these tasks (health.dead_batches)"
    )


async def _reinforce(
    shop: Workshop, journal: Journal, progress: Progress, ahead: Ahead, memories: Mapping[str, Memory]
) -> None:
    """Run the remaining steps of reinforcement, each with its evaluation, rows and checkpoint."""
    run, before = shop.run, shop.run.warmup_steps

    def is_last() -> bool:
        return progress.step >= before + run.world.schedule.steps or is_flat(progress.pulse, run.health)

    def is_due(every: int) -> bool:
        return (progress.step - before) % every == 0 or is_last()

    async def close(credited: Sequence[Credited] = ()) -> None:
        if is_due(run.world.evaluation.every):
            await _evaluate(shop, journal, progress.step)
        journal.write_step(progress.step, credited, last=is_last())
        if is_due(run.checkpointing.every):
            journal.save(shop.learner, progress, shop.reference, memories)

    if is_due(run.world.evaluation.every) and not journal.evaluated(progress.step):
        await close()
    experts = await shop.show()
    while not is_last():
        await close(await _step(shop, journal, progress, experts, ahead))


async def _step(
    shop: Workshop, journal: Journal, progress: Progress, experts: Sequence[Tree], ahead: Ahead
) -> list[Credited]:
    """One batch: grow, reward, credit, admit, pack, learn, sync."""
    run, watch = shop.run, Stopwatch()
    seed = derive(run.seed, "step", progress.step + 1)
    # A resumed run has nothing cached; what is read from a cache may differ from what is computed in its lowest bits.
    shop.engine.forget()
    if run.method.reference == "step":
        shop.reference.take()
    harvest = await _gather(shop, journal, progress, watch, ahead)
    metrics = summarize(harvest.grown, unstarted=harvest.unstarted, dropped=harvest.dropped)
    shop.report_cuts([each.tree for each in harvest.grown])
    shop.report_faults([each.tree for each in harvest.grown])
    journal.note(metrics)
    ready, divergence = shop.advisers.ready, _still
    batch = _pack(shop, harvest, experts, seed, watch, metrics) if ready else None
    if ready:
        lively = 0 if batch is None else sum(bool(each.gain.any() or each.lose.any()) for each in harvest.kept)
        progress.pulse = feel(progress.pulse, lively=lively, success=metrics["train/success"])
    if batch is not None:
        with watch("learn"):
            stale = run.world.execution.staleness > 0 and newest(harvest.kept) < shop.learner.updates
            before = shop.learner.logprobs(batch) if stale and run.method.hooks else batch.behaviour
        learned = await _learn(shop, journal, progress, watch, batch, ahead)
        if shop.budget is not None:
            metrics |= shop.budget.note(shop.learner.extent)
        metrics |= learned
        divergence = partial(shop.learner.divergence, replace(batch, behaviour=before))
        if stale:
            # The sampling weights are overwritten, so this is drift, not the engine gap; the canary checks the engine.
            metrics["policy/drift"] = metrics.pop("policy/gap")
        journal.note(metrics)
        with watch("sync"):
            metrics["policy/canary_gap"] = await shop.sync(moved=learned["optimizer/gradient_norm"] > 0)
    metrics |= shop.advisers.observe(divergence)
    progress.entropies = add_entropies(progress.entropies, harvest.grown)
    metrics |= shop.env_metrics() | watch.metrics(tokens=metrics["speed/sampled_tokens"])
    journal.note(metrics | {"phase": "rl"})
    check_gap(metrics.get("policy/gap", 0.0), run.health)
    return harvest.credited


@dataclass(slots=True, kw_only=True)
class _Harvest:
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
    shop: Workshop, journal: Journal, progress: Progress, watch: Stopwatch, batch: Batch, ahead: Ahead
) -> dict[str, float]:
    """Update the policy; meanwhile, where the run allows it, trees of the next step grow."""
    run, step = shop.run, progress.step
    aids = Aids(
        reference=shop.reference.model,
        usual_entropy=usual(progress.entropies, shop.policy.device),
        progress=(step - 1 - run.warmup_steps) / run.world.schedule.steps,
    )

    def update() -> dict[str, float]:
        with watch("learn"):
            seed = derive(run.seed, "step", step)
            return shop.learner.learn(batch, run.loss, run.method.normalizer, seed=seed, aids=aids)

    if not run.world.execution.staleness or step == run.warmup_steps + run.world.schedule.steps:
        return update()
    growth = _grow(shop, journal, watch, step + 1, progress.drawn)
    return await ahead.beside(update, growth, shop.waits, owner=f"step {step}")


async def _grow(shop: Workshop, journal: Journal, watch: Stopwatch, step: int, drawn: int, number: int = 0) -> Grown:
    """Grow one round of a step's trees, on the tasks from number `drawn` on."""
    run, seed = shop.run, derive(shop.run.seed, "step", step)
    with watch("grow", engine=shop.engine, env=shop.host):
        tasks = await shop.tasks_from(drawn)
        shelf = journal.shelf(step, number) if run.checkpointing.as_grown else None
        return await shop.grove.grow(
            run.method.explorer, tasks, seed=derive(seed, number) if number else seed, shelf=shelf
        )


async def _gather(shop: Workshop, journal: Journal, progress: Progress, watch: Stopwatch, ahead: Ahead) -> _Harvest:
    """Grow, reward, credit and admit, in rounds, until the batch is full or the rounds are over."""
    run, harvest, step = shop.run, _Harvest(), progress.step + 1
    seed = derive(run.seed, "step", step)
    rewarded: list[Rewarded] = []
    for number in range(run.method.max_sampling_rounds):
        grown = ahead.take() or await _grow(shop, journal, watch, step, progress.drawn, number)
        if number == 0:
            check_paths(grown.trees, grown.unstarted)
        # The step counts from here on: advisers observe its trees.
        progress.step, progress.drawn = step, progress.drawn + run.world.schedule.batch_tasks
        harvest.unstarted += len(grown.unstarted)
        with watch("credit"):
            fresh = reward(grown.trees, run.world.rewards)
            harvest.grown += fresh
            rewarded += shop.appraise(fresh, derive(seed, number) if number else seed)
            harvest.credited = compute_credit(run.method.credit, rewarded)
            harvest.kept, harvest.dropped = admit(harvest.credited, run.world.filters)
        if len(groups(harvest.kept)) >= run.world.schedule.batch_tasks:
            break
    harvest.kept = [each for group in groups(harvest.kept)[: run.world.schedule.batch_tasks] for each in group]
    return harvest


def _pack(
    shop: Workshop,
    harvest: _Harvest,
    experts: Sequence[Tree],
    seed: int,
    watch: Stopwatch,
    metrics: dict[str, float],
) -> Batch | None:
    """The batch of the update; None when no group is admitted, or no admitted token is trained."""
    if not harvest.kept:
        return None
    run = shop.run
    with watch("learn"):
        shown = _shown(shop, harvest.kept, experts, seed, metrics)
        paths = PATHS in needs_of(run.loss) | needs_of(run.world.optimizer)
        batch = pack(harvest.kept, paths=paths, experts=shown)
    if not len(batch.at):
        metrics["groups/dropped_untrained"] = float(len(groups(harvest.kept)))
        metrics["groups/dropped"] += metrics["groups/dropped_untrained"]
        return None
    return batch.to(shop.policy.device)


def _still() -> float:
    """How far the policy moved in a step without an update."""
    return 0.0


def _shown(
    shop: Workshop, kept: Sequence[Credited], experts: Sequence[Tree], seed: int, metrics: dict[str, float]
) -> list[Tree]:
    """The demonstrations of a batch: some of those of the start, others at every step, and what the trees teach."""
    mixed = shop.run.method.demonstrations
    order = np.random.default_rng(derive(seed, "experts")).permutation(len(experts))
    shown: list[Tree] = [experts[i] for i in order[: mixed.per_step]]
    shown += taught(kept) if mixed.from_trees else []
    if mixed.revise:
        revised = shop.revise([each.rewarded for each in kept])
        metrics["train/revisions"] = float(len(revised))
        shown += revised
    return shown


async def _evaluate(shop: Workshop, journal: Journal, step: int) -> Score:
    """Measure the held-out tasks. Always with the same seeds, so that only the policy differs between evaluations."""
    run, watch = shop.run, Stopwatch()
    with watch("evaluate"):
        seed = derive(run.seed, "heldout")
        result = await measure(shop.grove, shop.heldout_tasks, temperature=run.world.evaluation.temperature, seed=seed)
    journal.note_score(step, result)
    shop.report_cuts(result.trees)
    journal.note(watch.metrics())
    return result


def reward(trees: Sequence[Tree], rewards: Sequence[Reward]) -> list[Rewarded]:
    """Reward the trees of each task together."""
    return [rewarded for group in groups(trees) for rewarded in pay(group, rewards)]


def admit(credited: Sequence[Credited], admits: Sequence[Admit]) -> tuple[list[Credited], dict[str, int]]:
    """Let every rule choose in turn; returns what is left and how many groups were dropped, by reason."""
    kept, dropped = list(credited), dict[str, int]()
    for rule in admits:
        admitted = select(rule, kept)
        kept = list(admitted.trees)
        for reason, count in admitted.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return kept, dropped
