"""The training loop, in the order in which it runs.

    tasks -> rollout -> appraise -> reward -> estimate -> credit -> filter -> pack -> update -> sync -> tasks ...

Steps count over the whole run: the epochs of the warm-up come first, then `schedule.steps` steps of reinforcement.
The trees of a step may grow while an earlier step trains (`execution.staleness`; see `growing`):

    staleness 0    grow 1 | update 1 | grow 2 | update 2 | ...
                   The update waits for all trees of its step, and growth for the weights of the update.

    staleness 1    grow 1 | update 1 | update 2 | ...
                          | grow 2   | grow 3   | ...
                   Growth of a step begins with the update of the step before it. Each waits for the end of the other,
                   so that all trees of a step have the same weights: the run does not depend on timing.

    staleness k    grow 1 | update 1 | update 2 | ...
                   grow 2 ...  | grow 3 ...     | grow k+2
                   As many tasks as a batch has grow at once, of the oldest step first; weights are loaded while they
                   grow. An update waits for its own trees; a tree waits for a free place, and begins at most k updates
                   ahead.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import numpy as np

from bough.batch import Batch, pack
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.learner.learner import Diverged
from bough.learner.loss_inputs import ObjectiveContext
from bough.needs import PATHS, needs_of
from bough.rewrite.teacher_paths import teacher_paths
from bough.rollout import DeadlineExceeded, Rollouts
from bough.store.answers import Answers
from bough.train.checks import check_metrics
from bough.train.evaluation import measure
from bough.train.growing import GrowingBatch, GrowingBatches
from bough.train.health import NoLearningSignal, check_gap, check_paths, check_signal, is_over, mostly_cut, next_health
from bough.train.in_thread import in_thread, uncancelled
from bough.train.notices import faults_of
from bough.train.recorder import RunRecorder, TrainState
from bough.train.run_questions import RunQuestions
from bough.train.runtime import Runtime
from bough.train.stages import run_stages
from bough.train.step_data import StepData
from bough.train.stopwatch import Stopwatch
from bough.train.summary import summarize
from bough.train.turn_entropy import add_entropies, mean_turn_entropies
from bough.train.warmup import warm_up
from bough.tree import Tree, count_actions, derive, groups

STOPS = (NoLearningSignal, Diverged, DeadlineExceeded, EnvFault, EngineFault)
"""Errors after which the state in memory is consistent, so that a checkpoint is written."""


async def train(runtime: Runtime, recorder: RunRecorder) -> str:
    """Train from the newest checkpoint, or from the start, to the end of the run.

    A run that stops after its warm-up first writes a checkpoint and `final/`. A step counts once its first trees are
    complete; `resume` repeats a step that stopped earlier.

    Returns:
        The reason for ending before the last step; "" otherwise.

    Raises:
        NoLearningSignal: when the run cannot learn.
        Diverged: when a loss, a gradient or a weight is not finite.
        DeadlineExceeded: when an await passes its deadline.
        EnvFault, EngineFault: when the environment or the engine breaks outside of a path.
    """
    return await _Loop(runtime, recorder).run()


class _Loop:
    """The loop of one run. Methods follow each other in the order in which they run."""

    def __init__(self, runtime: Runtime, recorder: RunRecorder) -> None:
        self.runtime, self.recorder = runtime, recorder
        self.settings, self.world, self.method = runtime.run, runtime.run.world, runtime.run.method
        self.state, self.growing = TrainState(), GrowingBatches(self.grow)
        self.watch = Stopwatch()
        self.staleness = self.world.execution.staleness
        self.slots = asyncio.Semaphore(self.world.schedule.batch_tasks) if self.staleness > 1 else None
        stale = {"ahead": self.growing} if self.staleness or runtime.run_hooks.rewrites else {}
        self.checkpointed = {**runtime.memories, **stale}
        self.questions = RunQuestions(runtime, self.state, Answers(recorder.directory.answers))
        for each in runtime.learning:
            each.ask_models = self.questions.query_client(each)
        self.first = self.settings.warmup_steps
        self.dropped: Mapping[str, int] = {}
        self.last = self.settings.last_step

    # --- the run

    async def run(self) -> str:
        """Warm up, then reinforce; see `train`."""
        runtime, state = self.runtime, self.state
        resumed = self.recorder.restore(runtime.trained, state, self.checkpointed)
        await runtime.sync(moved=False)
        if not resumed:
            self.recorder.log(runtime.fault_metrics())
            if self.first:
                await warm_up(runtime, self.recorder)
            self.freeze_references()
            state.step = self.first
        try:
            if self.first and not resumed:
                await runtime.sync(moved=True)
            await self.reinforce()
            check_signal(state.health, self.settings.health, self.dropped)
        except (*STOPS, asyncio.CancelledError) as error:
            await self.growing.stop(keep=self.staleness > 1)
            final, last = not isinstance(error, asyncio.CancelledError), self._is_last()
            self.recorder.stop(runtime.trained, state, self.checkpointed, last=last, final=final)
            raise
        finally:
            await self.growing.stop(keep=False)
        if state.step >= self.last:
            return ""
        return f"ended after {self.settings.named_step(state.step)}: " + (
            state.spent.reached(self.world.schedule)
            or f"every path of the last {state.health.flat} batches succeeded, so nothing is left to learn from these "
            "tasks (health.dead_batches)"
        )

    async def reinforce(self) -> None:
        """Run the remaining steps, each with its evaluation, metrics and checkpoint."""
        if self._is_due(self.world.evaluation.every) and not self.recorder.evaluated(self.state.step):
            await self.close_step()
        demonstrations = await self.runtime.show()
        while not self._is_last():
            await uncancelled(self.step(await self.begin_step(), demonstrations))
            await self.close_step()
        if not any(each.hooks.ready for each in self.runtime.trained):
            self.runtime.notify(
                "no step updated the policy: its hooks still collected data or trained a model of their own; take more "
                "steps, or fewer of the hook's, such as warmup_steps"
            )

    # --- one step

    async def begin_step(self) -> Rollouts:
        """Sample the first trees of the next step. An interrupt until then leaves the state that of the last step."""
        self.watch = Stopwatch()
        await self.runtime.begin_step(self.state.step - self.first)
        if self.method.reference == "step":
            self.freeze_references()
        return await self.next_trees(self.state.step + 1, 0)

    async def step(self, rollouts: Rollouts, demonstrations: Sequence[Tree]) -> None:
        """Reward, estimate, credit, filter, pack, update, sync."""
        runtime, state, watch = self.runtime, self.state, self.watch
        parts = await self.gather(rollouts)
        for data in parts:
            data.metrics = summarize(data.episodes, unstarted=data.unstarted, dropped=data.trees.dropped)
            data.metrics["groups/without_signal"] = float(data.silent_groups)
            checks = self.world.evaluation.checks
            data.metrics |= check_metrics([each.tree for each in data.trees.rewarded], checks)
            if data.policy.role.seats:
                data.metrics["paths/without_turn"] = float(data.without_turn)
            self.log(data)
        trees = [each.tree for data in parts for each in data.trees.rewarded]
        health = self.settings.health
        runtime.notices.of_batch(trees, runtime.engine.context_tokens)
        totals = [(data.silent_groups, int(data.metrics["groups/total"])) for data in parts]
        runtime.notices.groups(*(sum(each) for each in zip(*totals, strict=True)))
        ready = [data for data in parts if data.policy.hooks.ready]
        for data in ready:
            data.batch = self.pack(data, demonstrations, watch)
        if ready:
            self.dropped = parts[0].trees.dropped
            signals = sum(data.signals for data in ready)
            success, cut = parts[0].metrics.get("train/success", 0.0), mostly_cut(count_actions(trees), health)
            state.health = next_health(state.health, signals=signals, success=success, cut=cut)
        await self.update(ready, watch)
        for data in parts:
            data.metrics |= data.policy.hooks.observe(data.divergence)
            data.policy.entropies = add_entropies(data.policy.entropies, data.trees.rewarded)
        sampled = sum(data.metrics["speed/sampled_tokens"] for data in parts)
        parts[0].metrics |= runtime.fault_metrics() | watch.metrics(tokens=sampled)
        state.spent.add([data.metrics for data in parts], parts[0].metrics["time/step_s"])
        for data in parts:
            self.log(data)
            check_gap(data.metrics.get("policy/gap", 0.0), health)
        self.recorder.log({"phase": "rl"})

    def freeze_references(self) -> None:
        """Make the present policies the references."""
        for each in self.runtime.trained:
            each.reference.freeze()

    def log(self, data: StepData) -> None:
        """Log the metrics of a policy."""
        self.recorder.log({data.policy.role.metric(name): value for name, value in data.metrics.items()})

    async def gather(self, rollouts: Rollouts) -> list[StepData]:
        """Reward, estimate, credit, filter: rounds of sampling until the batches are full or the rounds are over."""
        step, batch_tasks = self.state.step + 1, self.world.schedule.batch_tasks
        parts = [StepData(policy=each) for each in self.runtime.learning]
        for round_number in range(self.method.max_sampling_rounds):
            if round_number:
                rollouts = await self.next_trees(step, round_number)
            else:
                check_paths(rollouts.trees, rollouts.unstarted)
            self.recorder.log_faults([*rollouts.unstarted.values(), *faults_of(rollouts.trees)])
            # The step counts from here on: hooks observe its trees.
            self.state.step, self.state.drawn = step, self.state.drawn + batch_tasks
            seed = derive(self._seed(step), round_number) if round_number else self._seed(step)
            with self.watch("credit"):
                for data in parts:
                    if views := data.views(rollouts):
                        estimate = partial(data.policy.add_estimates, seed=seed)
                        data.trees = run_stages(data.policy.run, views, estimate, data.trees)
            self.recorder.log_trees([each for data in parts for each in data.trees.credited])
            if all(data.groups >= data.most(batch_tasks) for data in parts):
                break
        for data in parts:
            kept = groups(data.trees.kept)[: data.most(batch_tasks)]
            data.trees = replace(data.trees, kept=[each for group in kept for each in group])
        return parts

    async def next_trees(self, step: int, round_number: int) -> Rollouts:
        """The trees of one round of a step; with staleness above 1, those of later steps grow meanwhile."""
        if round_number:
            with self.grow_time():
                return await self.roll_out(GrowingBatch(step=step, drawn=self.undrawn), round_number)
        if self.staleness != 1:
            for later in range(step, min(step + self.staleness, self.last) + 1):
                self.growing.start(later, self.undrawn)
            with self.grow_time():
                return await self.growing.take(step)
        self.growing.start(step, self.undrawn)
        return await self.growing.take(step)

    @property
    def undrawn(self) -> int:
        """The number of training tasks drawn for all batches so far."""
        return self.state.drawn + len(self.growing) * self.world.schedule.batch_tasks

    async def grow(self, batch: GrowingBatch) -> Rollouts:
        """Grow the first round of a batch."""
        if self.staleness != 1:
            # The step that waits for it measures its time.
            return await self.roll_out(batch, 0)
        with self.grow_time():
            return await self.roll_out(batch, 0)

    def grow_time(self) -> AbstractContextManager[None]:
        """Times growth."""
        return self.watch("grow", engine=self.runtime.engine, env=self.runtime.host)

    async def roll_out(self, batch: GrowingBatch, round_number: int) -> Rollouts:
        """Grow the trees of one round of a step that the batch does not have yet."""
        seed, recorder, step = self._seed(batch.step), self.recorder, batch.step
        batch.tasks = batch.tasks or await self.runtime.tasks_from(batch.drawn)
        batch.disk = recorder.partial_trees(step, round_number) if self.settings.checkpointing.as_grown else None
        runner = self.runtime.runner(self.world.schedule.progress(step - 1 - self.first))
        return await runner.run(
            self.method.explorer,
            batch.tasks,
            seed=derive(seed, round_number) if round_number else seed,
            store=batch,
            after=self.questions.appraise_stage(runner.agent, step) if self.world.appraisers else None,
            slots=None if round_number else self.slots,
        )

    def pack(self, data: StepData, demonstrations: Sequence[Tree], watch: Stopwatch) -> Batch | None:
        """The batch of the update; None when the filters keep no group, or no kept token is trained."""
        if not data.trees.kept:
            return None
        with watch("learn"):
            shown = self.choose_demonstrations(data, data.policy.role.views(demonstrations))
            paths = PATHS in needs_of(data.policy.run.loss) | needs_of(data.policy.run.world.optimizer)
            batch = pack(data.trees.kept, paths=paths, experts=shown, counted_only=data.trees.counted_only)
        if not len(batch.at):
            data.metrics["groups/dropped_untrained"] = float(data.groups)
            data.metrics["groups/dropped"] += data.metrics["groups/dropped_untrained"]
            return None
        return batch.to(data.policy.policy.device)

    def choose_demonstrations(self, data: StepData, demonstrations: Sequence[Tree]) -> list[Tree]:
        """The demonstrations of a batch: a sample of the run's, a teacher's paths, and revised mistakes."""
        mixed = self.method.demonstrations
        seed = derive(self._seed(self.state.step), "experts")
        order = np.random.default_rng(seed).permutation(len(demonstrations))
        shown: list[Tree] = [demonstrations[i] for i in order[: mixed.per_step]]
        shown += teacher_paths(data.trees.kept) if mixed.from_trees else []
        if mixed.revise:
            revised = data.policy.revise([each.rewarded for each in data.trees.kept])
            data.metrics["train/revisions"] = float(len(revised))
            shown += revised
        return shown

    async def update(self, parts: Sequence[StepData], watch: Stopwatch) -> None:
        """Update the policies that have a batch, and load their weights into the engines."""
        updated = [data for data in parts if data.batch is not None]
        if not updated:
            return
        for data in updated:
            stale = self.staleness > 0 and data.newest < data.policy.learner.updates
            data.stale = stale
            data.metrics |= data.staleness() if self.staleness else {}
            if stale and self.method.hooks:
                with watch("learn"):
                    temperature = data.policy.temperature
                    data.before = data.policy.learner.logprobs(data.packed, temperature=temperature)
        await self.learn(updated, watch)
        for data in updated:
            policy = data.policy
            if policy.budget is not None:
                data.metrics |= policy.budget.note(policy.learner.chunk_shape)
            if data.stale:
                # The sampling weights are overwritten: this is drift, not the engine gap; the canary checks the engine.
                data.metrics["policy/drift"] = data.metrics.pop("policy/gap")
            self.log(data)
            self.runtime.notices.shares(data.metrics)
            with watch("sync"):
                moved = data.metrics["optimizer/gradient_norm"] > 0
                data.metrics["policy/canary_gap"] = await policy.sync(moved=moved)

    async def learn(self, parts: Sequence[StepData], watch: Stopwatch) -> None:
        """The learners' optimizer steps on their batches; with staleness the trees of the next step grow meanwhile."""
        runtime, step = self.runtime, self.state.step

        def update() -> None:
            with watch("learn"):
                for data in parts:
                    data.metrics |= self.optimize(data)

        if self.staleness == 1 and step < self.last:
            self.growing.start(step + 1, self.undrawn)
        if not len(self.growing):
            with runtime.asleep():
                update()
            return
        await in_thread(update, runtime.deadlines, owner=f"step {step}", thing="end of the update")
        if self.staleness == 1:
            # All trees of a step come from the same weights, so the run does not depend on timing.
            await self.growing.complete(step + 1)

    def optimize(self, data: StepData) -> dict[str, float]:
        """The optimizer steps of one policy; returns its metrics."""
        policy, step = data.policy, self.state.step
        done, optimizer = step - 1 - self.first, policy.run.world.optimizer
        context = ObjectiveContext(
            reference=policy.reference.model,
            mean_turn_entropy=mean_turn_entropies(policy.entropies, policy.policy.device),
            progress=policy.progress,
            temperature=policy.temperature,
            schedule=policy.driven.get("optimizer.schedule"),
            scheduled_update=done * optimizer.epochs * optimizer.minibatches,
        )
        loss, normalizer = policy.run.loss, policy.normalizer
        seed = policy.role.seed(self._seed(step))
        return policy.learner.learn(data.packed, loss, normalizer, seed=seed, context=context)

    async def close_step(self) -> None:
        """Evaluate where it is due, write the step's metrics and trees, and save a checkpoint where it is due."""
        if self._is_due(self.world.evaluation.every):
            await self.evaluate()
        self.recorder.write_step(self.state.step, last=self._is_last())
        if self._is_due(self.settings.checkpointing.every):
            self.recorder.save(self.runtime.trained, self.state, self.checkpointed)

    async def evaluate(self) -> None:
        """Measure the held-out tasks. Seeds are those of every evaluation, so that only the policy differs."""
        watch, runtime, evaluation = Stopwatch(), self.runtime, self.world.evaluation
        with watch("evaluate"):
            result = await measure(
                runtime.rollouts,
                self.method.explorer,
                runtime.heldout_tasks,
                temperature=evaluation.temperature,
                seed=derive(evaluation.seed, "heldout"),
                rewards=self.world.rewards,
                checks=evaluation.checks,
                seat=runtime.main.role.seat,
            )
        self.recorder.log_evaluation(self.state.step, result)
        runtime.notices.cuts(result.trees, runtime.engine.context_tokens)
        self.recorder.log(watch.metrics())

    # --- when

    def _is_last(self) -> bool:
        if self.state.step >= self.last or is_over(self.state.health, self.settings.health):
            return True
        return bool(self.state.spent.reached(self.world.schedule))

    def _is_due(self, every: int) -> bool:
        return every > 0 and ((self.state.step - self.first) % every == 0 or self._is_last())

    def _seed(self, step: int) -> int:
        return derive(self.settings.seed, "step", step)
