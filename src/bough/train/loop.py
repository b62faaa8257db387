"""The training loop, in the order in which it runs.

    tasks -> rollout -> appraise -> reward -> estimates -> credit -> filter -> pack -> update -> sync -> tasks ...

Steps count over the whole run: the epochs of the warm-up come first, then `schedule.steps` steps of reinforcement.
With `execution.staleness=1` the trees of the next step grow during the update (see `pipeline`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bough.batch import Batch, pack
from bough.credit import compute_credit
from bough.curate import apply_filters
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.learner.learner import Diverged
from bough.learner.loss_inputs import ObjectiveContext
from bough.reward import reward_trees
from bough.rollout import Agent, DeadlineExceeded, Rollouts
from bough.store.answers import Answers
from bough.train.asker import AppraiseStage, Asker, required_columns
from bough.train.evaluation import measure
from bough.train.health import NoLearningSignal, check_gap, check_paths, check_signal, is_flat, next_health
from bough.train.pipeline import PrefetchedRollouts, newest
from bough.train.recorder import RunRecorder, TrainState
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


@dataclass(slots=True, kw_only=True)
class StepData:
    """The trees of a step, by stage.

    Attributes:
        rewarded: All trees of the step.
        credited: The same trees with advantages, unless a hook has replaced some.
        kept: The trees that pass the filters.
        dropped: Number of dropped groups by reason.
        unstarted: Number of tasks that did not start.
    """

    rewarded: list[Rewarded] = field(default_factory=list[Rewarded])
    credited: list[Credited] = field(default_factory=list[Credited])
    kept: list[Credited] = field(default_factory=list[Credited])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    unstarted: int = 0


class _Loop:
    """The loop of one run. Methods follow each other in the order in which they run."""

    def __init__(self, runtime: Runtime, recorder: RunRecorder) -> None:
        self.runtime, self.recorder = runtime, recorder
        self.settings, self.world, self.method = runtime.run, runtime.run.world, runtime.run.method
        self.state, self.prefetched = TrainState(), PrefetchedRollouts()
        stale = {"ahead": self.prefetched} if self.world.execution.staleness else {}
        self.checkpointed = {**runtime.memories, **stale}
        self.answers = Answers(recorder.directory.answers)
        self.first = self.settings.warmup_steps
        self.last = self.first + self.world.schedule.steps

    # --- the run

    async def run(self) -> str:
        """Warm up, then reinforce; see `train`."""
        runtime, state = self.runtime, self.state
        resumed = self.recorder.restore(runtime.learner, state, runtime.reference, self.checkpointed)
        await runtime.sync(moved=False)
        if not resumed:
            self.recorder.log(runtime.env_metrics())
            if self.first:
                await warm_up(runtime, self.recorder)
            runtime.reference.freeze()
            state.step = self.first
        try:
            if self.first and not resumed:
                await runtime.sync(moved=True)
            await self.reinforce()
            check_signal(state.health, self.settings.health)
        except STOPS:
            self.recorder.stop(runtime.learner, state, runtime.reference, self.checkpointed)
            raise
        if state.step >= self.last:
            return ""
        return (
            f"ended after step {state.step - self.first} of {self.world.schedule.steps}: every path of the last "
            f"{state.health.flat} batches succeeded, so nothing is left to learn from these tasks (health.dead_batches)"
        )

    async def reinforce(self) -> None:
        """Run the remaining steps, each with its evaluation, metrics and checkpoint."""
        if self._is_due(self.world.evaluation.every) and not self.recorder.evaluated(self.state.step):
            await self.close_step(())
        demonstrations = await self.runtime.show()
        while not self._is_last():
            await self.close_step(await self.step(demonstrations))

    # --- one step

    async def step(self, demonstrations: Sequence[Tree]) -> list[Credited]:
        """Sample, reward, credit, filter, pack, update, sync; returns the step's credited trees."""
        runtime, state, watch = self.runtime, self.state, Stopwatch()
        runtime.reset_caches()
        if self.method.reference == "step":
            runtime.reference.freeze()
        data = await self.gather(watch)
        metrics = summarize(data.rewarded, unstarted=data.unstarted, dropped=data.dropped)
        runtime.report_cuts([each.tree for each in data.rewarded])
        runtime.report_faults([each.tree for each in data.rewarded])
        self.recorder.log(metrics)
        divergence: Callable[[], float] = float
        if runtime.hooks.ready:
            batch = self.pack(data, demonstrations, watch, metrics)
            lively = 0 if batch is None else sum(not each.is_zero for each in data.kept)
            state.health = next_health(state.health, lively=lively, success=metrics["train/success"])
            if batch is not None:
                divergence = await self.update(data, batch, watch, metrics)
        metrics |= runtime.hooks.observe(divergence)
        state.entropies = add_entropies(state.entropies, data.rewarded)
        metrics |= runtime.env_metrics() | watch.metrics(tokens=metrics["speed/sampled_tokens"])
        self.recorder.log(metrics | {"phase": "rl"})
        check_gap(metrics.get("policy/gap", 0.0), self.settings.health)
        return data.credited

    async def gather(self, watch: Stopwatch) -> StepData:
        """Sample, reward, credit and filter, in rounds, until the batch is full or the rounds are over."""
        data, step, batch_tasks = StepData(), self.state.step + 1, self.world.schedule.batch_tasks
        seed, estimated = self._seed(step), list[Rewarded]()
        for round_number in range(self.method.max_sampling_rounds):
            rollouts = self.prefetched.take() or await self.roll_out(step, self.state.drawn, watch, round_number)
            if round_number == 0:
                check_paths(rollouts.trees, rollouts.unstarted)
            # The step counts from here on: hooks observe its trees.
            self.state.step, self.state.drawn = step, self.state.drawn + batch_tasks
            data.unstarted += len(rollouts.unstarted)
            with watch("credit"):
                rewarded = reward_trees(rollouts.trees, self.world.rewards)
                data.rewarded += rewarded
                round_seed = derive(seed, round_number) if round_number else seed
                estimated += self.runtime.add_estimates(rewarded, round_seed)
                data.credited = compute_credit(self.method.credit, estimated)
                data.kept, data.dropped = apply_filters(data.credited, self.world.filters)
            if len(groups(data.kept)) >= batch_tasks:
                break
        data.kept = [each for group in groups(data.kept)[:batch_tasks] for each in group]
        return data

    async def roll_out(self, step: int, drawn: int, watch: Stopwatch, round_number: int = 0) -> Rollouts:
        """Grow the trees of one round of a step, on the training tasks from number `drawn` on."""
        seed, recorder = self._seed(step), self.recorder
        with watch("grow", engine=self.runtime.engine, env=self.runtime.host):
            tasks = await self.runtime.tasks_from(drawn)
            stored = recorder.partial_trees(step, round_number) if self.settings.checkpointing.as_grown else None
            round_seed = derive(seed, round_number) if round_number else seed
            runner = self.runtime.rollouts
            stage = self.appraise_stage(step, runner.agent) if self.world.appraisers else None
            return await runner.run(self.method.explorer, tasks, seed=round_seed, shelf=stored, after=stage)

    def appraise_stage(self, step: int, agent: Agent) -> AppraiseStage:
        """The stage that appraises the trees of a task as soon as they are complete."""
        ask = Asker(
            agent=agent, answers=self.answers, deadlines=self.runtime.deadlines, seed=self.settings.seed, step=step
        )
        return AppraiseStage(
            appraisers=self.world.appraisers, required=required_columns(self.world.rewards, self.method), ask=ask
        )

    def pack(
        self, data: StepData, demonstrations: Sequence[Tree], watch: Stopwatch, metrics: dict[str, float]
    ) -> Batch | None:
        """The batch of the update; None when the filters keep no group, or no kept token is trained."""
        if not data.kept:
            return None
        with watch("learn"):
            shown = self.choose_demonstrations(data.kept, demonstrations, metrics)
            paths = PATHS in needs_of(self.settings.loss) | needs_of(self.world.optimizer)
            batch = pack(data.kept, paths=paths, experts=shown)
        if not len(batch.at):
            metrics["groups/dropped_untrained"] = float(len(groups(data.kept)))
            metrics["groups/dropped"] += metrics["groups/dropped_untrained"]
            return None
        return batch.to(self.runtime.policy.device)

    def choose_demonstrations(
        self, kept: Sequence[Credited], demonstrations: Sequence[Tree], metrics: dict[str, float]
    ) -> list[Tree]:
        """The demonstrations of a batch: a sample of the run's, a teacher's paths, and revised mistakes."""
        mixed = self.method.demonstrations
        seed = derive(self._seed(self.state.step), "experts")
        order = np.random.default_rng(seed).permutation(len(demonstrations))
        shown: list[Tree] = [demonstrations[i] for i in order[: mixed.per_step]]
        shown += teacher_paths(kept) if mixed.from_trees else []
        if mixed.revise:
            revised = self.runtime.revise([each.rewarded for each in kept])
            metrics["train/revisions"] = float(len(revised))
            shown += revised
        return shown

    async def update(
        self, data: StepData, batch: Batch, watch: Stopwatch, metrics: dict[str, float]
    ) -> Callable[[], float]:
        """Update the policy and load its weights into the engine; returns a function for the policy's divergence."""
        runtime = self.runtime
        stale = self.world.execution.staleness > 0 and newest(data.kept) < runtime.learner.updates
        with watch("learn"):
            before = runtime.learner.logprobs(batch) if stale and self.method.hooks else batch.rollout_logprob
        learned = await self.learn(batch, watch)
        if runtime.budget is not None:
            metrics |= runtime.budget.note(runtime.learner.extent)
        metrics |= learned
        if stale:
            # The sampling weights are overwritten, so this is drift, not the engine gap; the canary checks the engine.
            metrics["policy/drift"] = metrics.pop("policy/gap")
        self.recorder.log(metrics)
        with watch("sync"):
            metrics["policy/canary_gap"] = await runtime.sync(moved=learned["optimizer/gradient_norm"] > 0)
        return partial(runtime.learner.divergence, replace(batch, rollout_logprob=before))

    async def learn(self, batch: Batch, watch: Stopwatch) -> dict[str, float]:
        """The learner's optimizer steps on a batch; with staleness the trees of the next step grow meanwhile."""
        runtime, step = self.runtime, self.state.step
        context = ObjectiveContext(
            reference=runtime.reference.model,
            mean_turn_entropy=mean_turn_entropies(self.state.entropies, runtime.policy.device),
            progress=(step - 1 - self.first) / self.world.schedule.steps,
        )

        def update() -> dict[str, float]:
            with watch("learn"):
                loss, normalizer = self.settings.loss, self.method.normalizer
                return runtime.learner.learn(batch, loss, normalizer, seed=self._seed(step), context=context)

        if not self.world.execution.staleness or step == self.last:
            return update()
        following = self.roll_out(step + 1, self.state.drawn, watch)
        return await self.prefetched.beside(update, following, runtime.deadlines, owner=f"step {step}")

    async def close_step(self, credited: Sequence[Credited]) -> None:
        """Evaluate where it is due, write the step's metrics and trees, and save a checkpoint where it is due."""
        if self._is_due(self.world.evaluation.every):
            await self.evaluate()
        self.recorder.write_step(self.state.step, credited, last=self._is_last())
        if self._is_due(self.settings.checkpointing.every):
            self.recorder.save(self.runtime.learner, self.state, self.runtime.reference, self.checkpointed)

    async def evaluate(self) -> None:
        """Measure the held-out tasks. Seeds are those of every evaluation, so that only the policy differs."""
        watch, runtime = Stopwatch(), self.runtime
        with watch("evaluate"):
            seed, temperature = derive(self.settings.seed, "heldout"), self.world.evaluation.temperature
            result = await measure(
                runtime.rollouts, self.method.explorer, runtime.heldout_tasks, temperature=temperature, seed=seed
            )
        self.recorder.log_evaluation(self.state.step, result)
        runtime.report_cuts(result.trees)
        self.recorder.log(watch.metrics())

    # --- when

    def _is_last(self) -> bool:
        return self.state.step >= self.last or is_flat(self.state.health, self.settings.health)

    def _is_due(self, every: int) -> bool:
        return (self.state.step - self.first) % every == 0 or self._is_last()

    def _seed(self, step: int) -> int:
        return derive(self.settings.seed, "step", step)
