"""The loop: from tasks to a better policy, one line of stages.

    tasks -> grow -> reward -> credit -> admit -> pack -> learn -> sync -> tasks ...

Steps count over the whole run. The epochs of the warm-up come first, then `run.steps` batches of reinforcement. With
`run.staleness` trees of the next step grow during `learn`, from the policy before it (see `pipeline`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bough.batch import Batch, pack
from bough.curate import Admit
from bough.explore import Grown, derive
from bough.reward import Reward, pay
from bough.train.columns import Aids
from bough.train.deadrun import check_gap, check_paths, feel
from bough.train.habit import add_entropies, usual
from bough.train.heldout import Score, measure
from bough.train.journal import Journal, Progress
from bough.train.pipeline import Ahead, newest
from bough.train.stopwatch import Stopwatch
from bough.train.summary import summarize
from bough.train.taught import taught
from bough.train.warmup import warm_up
from bough.train.workshop import Workshop
from bough.tree import Credited, Rewarded, Tree, groups


async def train(shop: Workshop, journal: Journal) -> None:
    """Train from where the journal left off to the end of the run.

    Raises:
        DeadRun: when the run cannot learn.
        Diverged: when a loss or a gradient is not finite.
        Stuck: when something that was waited for did not come.
    """
    run, progress = shop.run, Progress()
    before = run.warmup_steps
    ahead = Ahead()
    memories = {**shop.memories, **({"ahead": ahead} if run.staleness else {})}
    resumed = journal.restore(shop.learner, progress, shop.reference, memories)
    await shop.sync(moved=False)
    if not resumed:
        journal.note(shop.env_metrics())
        if before:
            await warm_up(shop, journal)
        shop.reference.take()
        progress.step = before
        await _evaluate(shop, journal, progress.step)
        journal.write_step(progress.step)
        journal.save(shop.learner, progress, shop.reference, memories)
    experts = await shop.show()
    while progress.step < before + run.steps:
        progress.step += 1
        credited = await _step(shop, journal, progress, experts, ahead)
        last = progress.step == before + run.steps
        if last or (progress.step - before) % run.heldout.every == 0:
            await _evaluate(shop, journal, progress.step)
        journal.write_step(progress.step, credited, last=last)
        if last or (progress.step - before) % run.saving.every == 0:
            journal.save(shop.learner, progress, shop.reference, memories)


async def _step(
    shop: Workshop, journal: Journal, progress: Progress, experts: Sequence[Tree], ahead: Ahead
) -> list[Credited]:
    """One batch: grow, reward, credit, admit, pack, learn, sync."""
    run, watch = shop.run, Stopwatch()
    seed = derive(run.seed, "step", progress.step)
    # A resumed run has nothing cached; what is read from a cache may differ from what is computed in its lowest bits.
    shop.engine.forget()
    if run.reference == "step":
        shop.reference.take()
    harvest = await _gather(shop, journal, progress, watch, ahead)
    metrics = summarize(harvest.grown, unstarted=harvest.unstarted, dropped=harvest.dropped)
    shop.report_cuts([each.tree for each in harvest.grown])
    lively = sum(bool(each.gain.any() or each.lose.any()) for each in harvest.kept)
    ready, divergence = shop.advisers.ready, _still
    if ready:
        progress.pulse = feel(progress.pulse, run.guards, lively=lively, success=metrics["train/success"])
    if harvest.kept and ready:
        with watch("learn"):
            shown = _shown(shop, harvest.kept, experts, seed, metrics)
            batch = pack(harvest.kept, paths="paths" in run.objective.needs, experts=shown).to(shop.policy.device)
            stale = run.staleness > 0 and newest(harvest.kept) < shop.learner.updates
            before = shop.learner.logprobs(batch) if stale and run.advisers else batch.behaviour
        learned = await _learn(shop, journal, progress, watch, batch, ahead)
        if shop.budget is not None:
            metrics |= shop.budget.note(shop.learner.extent)
        divergence = partial(shop.learner.divergence, replace(batch, behaviour=before))
        if stale:
            # The weights that sampled are no more, so nobody can say what they think; the canary still watches.
            learned["policy/drift"] = learned.pop("policy/gap")
        else:
            check_gap(learned["policy/gap"], run.guards)
        with watch("sync"):
            metrics["policy/canary_gap"] = await shop.sync(moved=learned["optimizer/gradient_norm"] > 0)
        metrics |= learned
    metrics |= shop.advisers.observe(divergence)
    progress.entropies = add_entropies(progress.entropies, harvest.grown)
    metrics |= shop.env_metrics() | watch.metrics(tokens=metrics["speed/sampled_tokens"])
    journal.note(metrics | {"phase": "rl"})
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
        progress=(step - 1 - run.warmup_steps) / run.steps,
    )

    def update() -> dict[str, float]:
        with watch("learn"):
            seed = derive(run.seed, "step", step)
            return shop.learner.learn(batch, run.objective, run.share, seed=seed, aids=aids)

    if not run.staleness or step == run.warmup_steps + run.steps:
        return update()
    growth = _grow(shop, journal, progress, watch, step + 1)
    return await ahead.beside(update, growth, shop.waits, owner=f"step {step}")


async def _grow(
    shop: Workshop, journal: Journal, progress: Progress, watch: Stopwatch, step: int, number: int = 0
) -> Grown:
    """A round of a step's trees."""
    run, seed = shop.run, derive(shop.run.seed, "step", step)
    with watch("grow", engine=shop.engine, env=shop.host):
        tasks = await shop.tasks_from(progress.drawn)
        progress.drawn += run.batch_tasks
        shelf = journal.shelf(step, number) if run.saving.as_grown else None
        return await shop.grove.grow(run.explorer, tasks, seed=derive(seed, number) if number else seed, shelf=shelf)


async def _gather(shop: Workshop, journal: Journal, progress: Progress, watch: Stopwatch, ahead: Ahead) -> _Harvest:
    """Grow, reward, credit and admit, in rounds, until the batch is full or the rounds are over."""
    run, harvest = shop.run, _Harvest()
    seed = derive(run.seed, "step", progress.step)
    rewarded: list[Rewarded] = []
    for number in range(run.rounds):
        grown = ahead.take() or await _grow(shop, journal, progress, watch, progress.step, number)
        check_paths(grown.trees, grown.unstarted)
        harvest.unstarted += len(grown.unstarted)
        with watch("credit"):
            fresh = reward(grown.trees, run.rewards)
            harvest.grown += fresh
            rewarded += shop.appraise(fresh, derive(seed, number) if number else seed)
            harvest.credited = run.credit(rewarded)
            harvest.kept, harvest.dropped = admit(harvest.credited, run.admit)
        if len(groups(harvest.kept)) >= run.batch_tasks:
            break
    harvest.kept = [each for group in groups(harvest.kept)[: run.batch_tasks] for each in group]
    return harvest


def _still() -> float:
    """How far the policy moved in a step without an update."""
    return 0.0


def _shown(
    shop: Workshop, kept: Sequence[Credited], experts: Sequence[Tree], seed: int, metrics: dict[str, float]
) -> list[Tree]:
    """The demonstrations of a batch: some of those of the start, others at every step, and what the trees teach."""
    mixed = shop.run.experts
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
        result = await measure(shop.grove, shop.heldout_tasks, temperature=run.heldout.temperature, seed=seed)
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
        admitted = rule(kept)
        kept = list(admitted.trees)
        for reason, count in admitted.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return kept, dropped
