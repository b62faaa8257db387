"""The loop: from tasks to a better policy, one line of stages.

    tasks -> grow -> reward -> credit -> admit -> pack -> learn -> sync -> tasks ...

Steps count over the whole run. The epochs of the warm-up come first, then `run.steps` batches of reinforcement.
"""

from collections.abc import Sequence

from bough.batch import pack
from bough.credit import Credit
from bough.curate import Admit
from bough.explore import derive
from bough.reward import Reward, pay
from bough.train.deadrun import check_gap, check_paths, feel
from bough.train.heldout import Score, measure
from bough.train.journal import Journal, Progress
from bough.train.reference import Reference
from bough.train.stopwatch import Stopwatch
from bough.train.summary import summarize
from bough.train.warmup import warm_up
from bough.train.workshop import Workshop
from bough.tree import Credited, Tree, groups


async def train(shop: Workshop, journal: Journal) -> None:
    """Train from where the journal left off to the end of the run.

    Raises:
        DeadRun: when the run cannot learn.
        Diverged: when a loss or a gradient is not finite.
        Stuck: when something that was waited for did not come.
    """
    run, progress = shop.run, Progress()
    reference = Reference(shop.policy, run.objective)
    before = run.warmup_steps
    resumed = journal.restore(shop.learner, progress, reference)
    await shop.sync(moved=False)
    if not resumed:
        if before:
            await warm_up(shop, journal)
        reference.take()
        progress.step = before
        await _evaluate(shop, journal, progress.step)
        journal.write_step(progress.step)
        journal.save(shop.learner, progress, reference)
    while progress.step < before + run.steps:
        progress.step += 1
        credited = await _step(shop, journal, progress, reference)
        last = progress.step == before + run.steps
        if last or (progress.step - before) % run.heldout.every == 0:
            await _evaluate(shop, journal, progress.step)
        journal.write_step(progress.step, credited, last=last)
        if last or (progress.step - before) % run.saving.every == 0:
            journal.save(shop.learner, progress, reference)


async def _step(shop: Workshop, journal: Journal, progress: Progress, reference: Reference) -> list[Credited]:
    """One batch: grow, reward, credit, admit, pack, learn, sync."""
    run, watch = shop.run, Stopwatch()
    seed = derive(run.seed, "step", progress.step)
    # A resumed run has nothing cached; what is read from a cache may differ from what is computed in its lowest bits.
    shop.engine.forget()
    with watch("grow"):
        grown = await shop.grove.grow(run.explorer, shop.tasks_of(progress.step), seed=seed)
    check_paths(grown.trees, grown.unstarted)
    with watch("credit"):
        credited = score(grown.trees, run.rewards, run.credit)
        kept, dropped = admit(credited, run.admit)
    metrics = summarize(credited, unstarted=len(grown.unstarted), dropped=dropped)
    lively = sum(bool(each.gain.any() or each.lose.any()) for each in kept)
    progress.pulse = feel(progress.pulse, run.guards, lively=lively, success=metrics["train/success"])
    if kept:
        with watch("learn"):
            batch = pack(kept).to(shop.policy.device)
            learned = shop.learner.learn(batch, run.objective, run.share, reference=reference.model, seed=seed)
        check_gap(learned["policy/gap"], run.guards)
        with watch("sync"):
            metrics["policy/canary_gap"] = await shop.sync(moved=learned["optimizer/gradient_norm"] > 0)
        metrics |= learned
    journal.note(metrics | watch.metrics(tokens=metrics["speed/sampled_tokens"]) | {"phase": "rl"})
    return credited


async def _evaluate(shop: Workshop, journal: Journal, step: int) -> Score:
    """Measure the held-out tasks. Always with the same seeds, so that only the policy differs between evaluations."""
    run, watch = shop.run, Stopwatch()
    with watch("evaluate"):
        seed = derive(run.seed, "heldout")
        result = await measure(shop.grove, shop.heldout_tasks, temperature=run.heldout.temperature, seed=seed)
    journal.note_score(step, result)
    journal.note(watch.metrics())
    return result


def score(trees: Sequence[Tree], rewards: Sequence[Reward], credit: Credit) -> list[Credited]:
    """Reward the trees of each task together, then credit all."""
    return credit([rewarded for group in groups(trees) for rewarded in pay(group, rewards)])


def admit(credited: Sequence[Credited], admits: Sequence[Admit]) -> tuple[list[Credited], dict[str, int]]:
    """Let every rule choose in turn; returns what is left and how many groups were dropped, by reason."""
    kept, dropped = list(credited), dict[str, int]()
    for rule in admits:
        admitted = rule(kept)
        kept = list(admitted.trees)
        for reason, count in admitted.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return kept, dropped
