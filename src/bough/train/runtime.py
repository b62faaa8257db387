"""The heavy pieces of a run, built and wired: model, engine, environment, learner."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from bough.context import conversation
from bough.engine import Engine
from bough.env import EnvFault, EnvHost, InProcessHost, Workers
from bough.env.workers import to_stderr
from bough.explore import Demonstration
from bough.hooks.hook import Hooks
from bough.learner.estimates import add_estimates
from bough.learner.learner import Learner
from bough.learner.memory_budget import MemoryBudget
from bough.learner.memory_meter import return_freed
from bough.learner.reference import Reference
from bough.learner.state_values import StateValues
from bough.policy.policy import Policy
from bough.rollout import Agent, Deadlines, RoleModel, RolloutRunner
from bough.store.atomic import explain_full_disk
from bough.train.canary import Canary
from bough.train.check import refuse_overlap
from bough.train.event_loop import run_coroutine
from bough.train.health import check_paths, count_solved
from bough.train.models import role_model
from bough.train.opening import TimedHost, open_run
from bough.train.recorder import Checkpointable
from bough.train.revise import Reader
from bough.train.run import Run
from bough.train.summary import cut_by_context
from bough.train.teacher import way
from bough.tree import AgentAction, Rewarded, Task, Tree, counted, derive, fault_in
from bough.tree.needs import BATCH_INVARIANCE, ENTROPY, FINAL_VALUES, REFERENCE, Head, gives_of, names_of, needs_of
from bough.view import cause

CLOSE_S = 60.0
"""How long processes may take to end."""

CANARY_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
"""Largest difference between engine and learner, nats, by dtype; 0.1 in lower precision."""


class Runtime:
    """Everything that a run needs in memory. Built from the run alone, so that a resumed run has the same."""

    def __init__(
        self,
        run: Run,
        assets: Path,
        deadlines: Deadlines,
        notify: Callable[[str], None] = to_stderr,
        *,
        trains: bool = True,
    ) -> None:
        """Build.

        Args:
            run: What to train.
            assets: A folder for what the policy must keep.
            deadlines: The run's register of pending awaits; a watchdog should look at it.
            notify: Called with a line about faults before the first step, replaced workers, and large values.
            trains: Whether the policy will be trained; held-out tasks must then not be training tasks.

        Raises:
            ConfigError: when held-out tasks are trained on, or pieces do not fit.
            EnvFault: when no task can be played.
        """
        self.run = run
        self.deadlines = deadlines
        self.notify = notify
        self.host = make_host(run, notify)
        self.timed = TimedHost(host=self.host, deadlines=deadlines, deadline_s=run.world.limits.env_deadline_s)
        self._cuts_reported = self._faults_reported = False
        self._counted = {"env/faults": 0, "env/replaced": 0}
        try:
            self._build(assets, trains=trains)
        except BaseException:
            run_coroutine(self.host.close())
            raise

    def _build(self, assets: Path, *, trains: bool) -> None:
        """Open the environment, then make the policy, the engine and the learner."""
        run = self.run
        if run.world.execution.threads:
            torch.set_num_threads(run.world.execution.threads)
        if run.world.optimizer.memory_gib is not None:
            return_freed()
        self.opening = run_coroutine(open_run(run, self.timed))
        self.train_tasks, self.heldout_tasks = self.opening.train_tasks, self.opening.heldout_tasks
        if trains:
            refuse_overlap(self.train_tasks, self.heldout_tasks)
        if self.opening.line:
            self.notify(self.opening.line)
        with explain_full_disk(assets, None):
            self.policy: Policy = run.world.policy.build(self.opening.texts, assets)
        self.engine: Engine = run.world.execution.engine.build(self.policy.replica())
        own = RoleModel(engine=self.engine, renderer=self.policy.renderer)
        self.models = {role: role_model(source, self.policy, own) for role, source in run.models.items()}
        self.policy.recompute(run.world.optimizer.recompute)
        reference = REFERENCE in needs_of(run.loss) | needs_of(run.method.credit)
        self.budget = self._budget(reference=reference)
        if self.budget is not None:
            optimizer = replace(run.world.optimizer, micro_tokens=self.budget.micro_tokens)
            self.run = run = run.replace(optimizer=optimizer)
        width = self.policy.head()[0].shape[1]
        self.critic = None if run.method.critic is None else run.method.critic.build(width).to(self.policy.device)
        self.valuer = self._valuer()
        self.learner = Learner(
            self.policy,
            run.world.optimizer,
            total_updates=run.world.schedule.steps * run.world.optimizer.epochs * run.world.optimizer.minibatches,
            temperature=run.world.sampling.temperature,
            critic=self.critic,
            seed=derive(run.seed, "optimizer") % 2**31,
        )
        self.hooks = Hooks(
            run.method.hooks, vocab_tokens=self.policy.vocab_tokens, device=str(self.policy.device), seed=run.seed
        )
        self.reference = Reference(self.policy, wanted=reference)
        self.canary = self._canary()

    @property
    def rollouts(self) -> RolloutRunner:
        """Where training trees grow."""
        run = self.run
        agent = Agent(
            engine=self.engine,
            renderer=self.policy.renderer,
            context=run.world.context,
            parser=run.world.parser,
            sampling=run.world.sampling,
            critic=self.valuer,
            models=self.models,
        )
        return RolloutRunner(
            agent=agent,
            host=self.host,
            instructions=run.world.env.instructions,
            limits=run.world.limits,
            deadlines=self.deadlines,
            max_concurrent=run.world.schedule.batch_tasks,
        )

    @property
    def memories(self) -> Mapping[str, Checkpointable]:
        """What must outlive this process besides policy and optimizer, by the name it has in a checkpoint."""
        return self.hooks.memories | ({} if self.critic is None else {"critic": self.critic})

    def add_estimates(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """Trees for credit, with the critic's values and reference log-probabilities where the rule needs them.

        Hooks run first, since a hook may put other paths into the batch.
        """
        rewarded = self.hooks.transform(rewarded, seed)
        needs = needs_of(self.run.method.credit)
        values, reference = bool(names_of(needs, Head)), REFERENCE in needs
        if not (values or reference):
            return rewarded
        return add_estimates(
            rewarded,
            self.policy,
            critic=self.critic if values else None,
            bootstrap=FINAL_VALUES in needs,
            reference=self.reference.model if reference else None,
            temperature=self.run.world.sampling.temperature,
            micro_tokens=self.run.world.optimizer.micro_tokens,
        )

    async def show(self) -> list[Tree]:
        """The demonstrations that are mixed into batches."""
        count = self.run.method.demonstrations.count
        return await self.demonstrate(count, "demonstrations.count") if count else []

    async def demonstrate(self, count: int, field: str) -> list[Tree]:
        """The oracle's demonstrations of the first training tasks, without the tasks that fail in all retries.

        Args:
            count: Number of tasks.
            field: The setting with this number, for messages.

        Raises:
            NoLearningSignal: when all of them fail.
            ValueError: when there are fewer tasks, or the environment has no oracle.
        """
        if count > len(self.train_tasks):
            raise ValueError(f"{field}: got {count}; need at most tasks.count, which is {len(self.train_tasks)}")
        seed = derive(self.run.seed, "demonstrations")
        grown = await self.rollouts.run(Demonstration(), self.train_tasks[:count], seed=seed)
        check_paths(grown.trees, grown.unstarted)
        if lost := list(grown.unstarted.values()):
            self.notify(f"{field}: {len(lost)} of {count} failed and are left out. The last fault: {lost[-1]}")
        if (solved := count_solved(grown.trees)) < len(grown.trees):
            remedy = "" if solved else "; check `plan` of the environment, and limits.turns"
            self.notify(f"{field}: {solved} of {len(grown.trees)} demonstrations solve their task{remedy}")
        return list(grown.trees)

    def revise(self, rewarded: Sequence[Rewarded]) -> list[Tree]:
        """What is made of the mistakes in some trees, if anything is to be."""
        rule, room = self.run.method.demonstrations.revise, self.policy.context_tokens
        reader = Reader(
            renderer=self.policy.renderer, context=self.run.world.context, parser=self.run.world.parser, room=room
        )
        return [] if rule is None else [each.tree for each in rule(rewarded, reader)]

    async def tasks_from(self, first: int) -> list[Task]:
        """The next batch of training tasks after `first`; every pass over the pool has its own order.

        With task weights from a hook, tasks are drawn by these weights, each at most once. Then hooks may rewrite
        tasks: another start, or another task.
        """
        return await self.hooks.rewrite(self._draw(first), self._teach, derive(self.run.seed, "begin", first))

    async def _teach(self, task: Task) -> tuple[AgentAction, ...]:
        """The oracle's actions for a task; () when it has none, or the environment fails in all retries."""
        try:
            return await self.timed.retried(lambda: way(self.timed, task))
        except EnvFault as fault:
            self.notify(f"task {task.id}: got no demonstration, the environment failed: {fault}")
            return ()

    def report_cuts(self, trees: Sequence[Tree]) -> None:
        """Report the first paths truncated by the model's context."""
        cuts = cut_by_context(trees)
        if not cuts or self._cuts_reported:
            return
        self._cuts_reported = True
        self.notify(
            f"{len(cuts)} of {sum(len(counted(tree)) for tree in trees)} paths were truncated: the model reads "
            f"{self.engine.context_tokens:,} tokens, up to {max(cuts):,} were to be read. Shorten the observations, "
            "take context=Window(...), or a longer context; metrics count them as paths/truncated_context"
        )

    def report_faults(self, trees: Sequence[Tree]) -> None:
        """Report the first faults that ended paths of trees, with the most frequent cause."""
        recorded = [fault for tree in trees for info in tree.info if (fault := fault_in(info)) is not None]
        faults = {str(number): fault for number, fault in enumerate(recorded)}
        if not faults or self._faults_reported:
            return
        self._faults_reported = True
        self.notify(f"{len(faults)} paths of a batch failed and do not count (paths/failed): {cause(faults)}")

    def env_metrics(self) -> dict[str, float]:
        """The faults of the environment since the last call; empty without any.

        Returns:
            "env/replaced", the workers that hung or died, and "env/faults", the faults outside of trees: before the
            first step, and in the oracle's demonstrations for hooks.
        """
        now = {"env/faults": len(self.timed.faults), "env/replaced": self.host.replaced}
        new = {name: float(count - self._counted[name]) for name, count in now.items()}
        self._counted = now
        return {name: count for name, count in new.items() if count}

    def _draw(self, first: int) -> list[Task]:
        """The next batch from the pool."""
        weights = self.hooks.weigh([task.id for task in self.train_tasks])
        if weights is not None:
            generator = np.random.default_rng(derive(self.run.seed, "draw", first))
            drawn = generator.choice(
                len(self.train_tasks), self.run.world.schedule.batch_tasks, replace=False, p=weights
            )
            return [self.train_tasks[place] for place in drawn.tolist()]
        size = len(self.train_tasks)
        places = range(first, first + self.run.world.schedule.batch_tasks)
        orders = {epoch: self._order(epoch) for epoch in {place // size for place in places}}
        return [self.train_tasks[orders[place // size][place % size]] for place in places]

    async def sync(self, *, moved: bool) -> float:
        """Give the engine the policy's weights and check that they arrived; returns the canary's gap, nats."""
        self.engine.load_weights(self.policy.weights(), self.learner.updates)
        deadline_s = self.run.world.limits.engine_deadline_s
        return await self.canary.check(self.engine, self.policy, self.deadlines, moved=moved, deadline_s=deadline_s)

    def reset_caches(self) -> None:
        """Empty the caches of all engines.

        A resumed run has empty caches; cached results may differ from computed ones in their lowest bits.
        """
        for engine in (self.engine, *(model.engine for model in self.models.values())):
            engine.reset_cache()

    async def close(self) -> None:
        """Let go of processes and memory."""
        closing: dict[str, Awaitable[None]] = {"environment": self.host.close(), "engine": self.engine.close()}
        closing |= {f"engine of the role {role}": model.engine.close() for role, model in self.models.items()}
        for thing, closed in closing.items():
            await self.deadlines.until(closed, owner="end of the run", thing=f"{thing} to close", deadline_s=CLOSE_S)

    def _order(self, epoch: int) -> Sequence[int]:
        generator = np.random.default_rng(derive(self.run.seed, "order", epoch))
        return generator.permutation(len(self.train_tasks)).tolist()

    def _budget(self, *, reference: bool) -> MemoryBudget | None:
        """What the run's bound on memory allows, if it has one."""
        optimizer, entropy = self.run.world.optimizer, ENTROPY in needs_of(self.run.loss)
        if optimizer.memory_gib is None:
            return None
        return MemoryBudget(
            optimizer.memory_gib, optimizer, self.policy, self.engine, entropy=entropy, reference=reference
        )

    def _valuer(self) -> StateValues | None:
        """The critic for searches; None without a critic."""
        if self.critic is None:
            return None
        micro_tokens, alone = (
            self.run.world.optimizer.micro_tokens,
            BATCH_INVARIANCE in gives_of(self.run.world.execution.engine),
        )
        return StateValues(self.policy, self.critic, micro_tokens=micro_tokens, alone=alone)

    def _canary(self) -> Canary:
        """A real first prompt and a few tokens of the environment's own language after it."""
        first = self.opening.first
        prompt = self.policy.renderer.render(
            conversation(self.run.world.env.instructions, (), first.observation), first.tools
        )
        tolerance = CANARY_TOLERANCE.get(self.policy.dtype, 0.1)
        room = min(self.policy.context_tokens, self.engine.context_tokens)
        return Canary(prompt[: max(1, room - 8)], prompt[: min(8, room - 1)], tolerance=tolerance)


def make_host(run: Run, notify: Callable[[str], None] = to_stderr) -> EnvHost:
    """The host of a run's environment: in this process, or in `execution.workers` processes."""
    env, settings = run.world.env, run.world.execution
    if not settings.workers:
        return InProcessHost(env=env)
    return Workers(env=env, count=settings.workers, deadline_s=settings.worker_deadline_s, notify=notify)
