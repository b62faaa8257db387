"""The warm-up: imitates demonstrations before reinforcement learning."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bough.batch import pack_demonstrations
from bough.batch.packed_tree import trained_nodes
from bough.learner.learner import Diverged, Learner
from bough.objective import Imitation, Normalizer
from bough.schedule import LinearSchedule
from bough.train.first_draw import first_tasks
from bough.train.recorder import RunRecorder
from bough.train.runtime import Runtime
from bough.train.settings import Warmup
from bough.train.stopwatch import Stopwatch
from bough.train.trained import TrainedPolicy
from bough.tree import Source, Task, Tree, counted, derive


async def warm_up(runtime: Runtime, recorder: RunRecorder) -> None:
    """Behaviour cloning of the oracle on the run's first training tasks, and of a file of conversations.

    Each part of the warm-up has its own optimizer, and reinforcement starts with fresh moments. The first evaluation
    completes the row of the last epoch.

    Raises:
        NoLearningSignal: when the environment fails in every demonstration.
        ValueError: when the environment has no oracle, or the oracle does not solve a task.
    """
    before, parts = 0, runtime.run.world.warmup.parts()
    for field, settings in parts.items():
        if settings.env is None:
            # Before the first part, whose training would be lost.
            first_tasks(runtime.train_tasks, settings.demonstrations, f"{field}.demonstrations")
    for field, settings in parts.items():
        await _warm_up(runtime, recorder, settings, field, before)
        before += settings.epochs


async def _warm_up(runtime: Runtime, recorder: RunRecorder, settings: Warmup, field: str, before: int) -> None:
    """One part of the warm-up; `before` counts the epochs of the parts before it."""
    run, watch = runtime.run, Stopwatch()
    with watch("grow"):
        trees = [*await _demonstrations(runtime, settings, field), *runtime.logged(f"{field}.file")]
    lessons = [_Imitation(each, trees, settings, field) for each in runtime.trained]
    with runtime.asleep():
        for epoch in range(1, settings.epochs + 1):
            step = before + epoch
            for each in lessons:
                # Ctrl-C is handled in the thread of the event loop.
                await asyncio.sleep(0)
                with watch("learn"):
                    recorder.log(each.epoch(epoch, derive(run.seed, "warm-up", step)))
            recorder.log(watch.metrics() | {"phase": "warmup"})
            if step < run.warmup_steps:
                recorder.write_step(step)
            watch = Stopwatch()


async def adapt(runtime: Runtime, tasks: Sequence[Task]) -> None:
    """Few-shot adaptation: imitate the oracle on these tasks, with the settings of the warm-up, and sync the engines.

    Shortcuts are left out: no reinforcement learning follows that would correct them.

    Raises:
        NoLearningSignal: when the environment fails in every demonstration.
        ValueError: when the environment has no oracle.
    """
    run, field = runtime.run, "shots"
    settings = run.world.warmup
    trees = await runtime.demonstrate_tasks(tasks, field)
    lessons = [_Imitation(each, trees, settings, field) for each in runtime.trained]
    with runtime.asleep():
        for epoch in range(1, settings.epochs + 1):
            for each in lessons:
                await asyncio.sleep(0)
                each.epoch(epoch, derive(run.seed, "adaptation", epoch))
    await runtime.sync(moved=True)


async def _demonstrations(runtime: Runtime, settings: Warmup, part: str) -> list[Tree]:
    """The oracle's demonstrations, in the warm-up's own environment where it has one."""
    count, field = settings.demonstrations, f"{part}.demonstrations"
    if not count:
        return []
    if settings.env is None:
        return await runtime.demonstrate(count, field, settings.shortcuts)
    return await runtime.demonstrate_in(settings.env, count, field, settings.shortcuts)


class _Imitation:
    """The imitation of demonstrations by one policy."""

    def __init__(self, trained: TrainedPolicy, trees: Sequence[Tree], settings: Warmup, field: str) -> None:
        """Pack the demonstrations of the policy's seats.

        Raises:
            ValueError: when its seats act in none of them.
        """
        self.role, self.field, self.learning_rate = trained.role, field, settings.learning_rate
        views = self.role.views(trees)
        if not views:
            raise ValueError(
                f"{field}: got {len(trees)} demonstrations in which the seats "
                f"{list(self.role.seats)} do not act; need an oracle whose plans have actions of every seat"
            )
        self.epochs = settings.epochs
        self.parts = [pack_demonstrations(each).to(trained.policy.device) for each in by_difficulty(views, settings)]
        tokens = sum(part.tokens.numel() for part in self.parts) / len(self.parts)
        minibatches = max(1, round(tokens / settings.batch_tokens))
        optimizer = replace(
            trained.run.world.optimizer,
            learning_rate=settings.learning_rate,
            momentum="adam",
            schedule=LinearSchedule(start=1.0, end=0.0),
            epochs=1,
            minibatches=minibatches,
            warmup_steps=0,
        )
        updates = settings.epochs * minibatches
        self.learner = Learner(trained.policy, optimizer, total_updates=updates, temperature=1.0, ranks=trained.ranks)

    def epoch(self, number: int, seed: int) -> dict[str, float]:
        """One pass over the demonstrations of a stage; returns its metrics.

        Args:
            number: Of the epoch, from 1.
            seed: Of its order.

        Raises:
            Diverged: when a loss, a gradient or a weight is not finite.
        """
        part = self.parts[(number - 1) * len(self.parts) // self.epochs]
        try:
            metrics = self.learner.learn(part, Imitation(), Normalizer(), seed=self.role.seed(seed))
        except Diverged as error:
            raise Diverged(
                f"{self.field}: the imitation of demonstrations with learning_rate={self.learning_rate:g}: {error}"
            ) from error
        metrics.pop("policy/gap")
        return {self.role.metric(name): value for name, value in metrics.items()}


def by_difficulty(trees: Sequence[Tree], settings: Warmup) -> list[list[Tree]]:
    """The demonstrations in `stages` parts of nearly equal size, easiest first; fewer when there are fewer trees."""
    if settings.stages == 1:
        return [list(trees)]
    actions = [trained_nodes(tree, counted(tree), Source.TEACHER) for tree in trees]
    size = [(int(acts.sum()), int(np.diff(tree.span)[acts].sum())) for tree, acts in zip(trees, actions, strict=True)]
    order = sorted(range(len(trees)), key=lambda at: size[at])
    parts = np.array_split(np.asarray(order), min(settings.stages, len(trees)))
    return [[trees[at] for at in map(int, part)] for part in parts]
