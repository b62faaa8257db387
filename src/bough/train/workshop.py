"""The heavy pieces of a run, built and wired: model, engine, environment, learner."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import torch

from bough.credit import needs_of
from bough.engine import Engine
from bough.env import Host, Inline, Workers
from bough.explore import Agent, Demonstration, Grove, Waits, derive
from bough.policy.policy import Policy
from bough.store import read_tasks
from bough.store.atomic import explain_full_disk
from bough.train.adviser import Advisers
from bough.train.appraise import appraise
from bough.train.budget import Budget
from bough.train.canary import Canary
from bough.train.check import check_state
from bough.train.config import ConfigError
from bough.train.gauge import return_freed
from bough.train.journal import Memory
from bough.train.learner import Learner
from bough.train.reference import Reference
from bough.train.revise import Reader
from bough.train.run import Run, Tasks
from bough.train.teacher import way
from bough.train.texts import collect
from bough.train.valuer import Valuer
from bough.tree import Rewarded, Task, Tree

TEXT_TASKS = 256
"""How many training tasks show the environment's language to a tokenizer."""

CLOSE_S = 60.0
"""How long processes may take to end."""

CANARY_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
"""Largest difference between engine and learner, nats, by dtype; 0.1 in lower precision."""


class Workshop:
    """Everything that a run needs in memory. Built from the run alone, so that a resumed run has the same."""

    def __init__(self, run: Run, assets: Path, waits: Waits) -> None:
        """Build.

        Args:
            run: What to train.
            assets: A folder for what the policy must keep.
            waits: The run's register of pending awaits; a watchdog should look at it.
        """
        if run.threads:
            torch.set_num_threads(run.threads)
        if run.optimizer.memory_gib is not None:
            return_freed()
        self.run = run
        self.waits = waits
        with self._asking_env("tasks"):
            self.train_tasks = draw_tasks(run, run.tasks)
            self.heldout_tasks = draw_tasks(run, run.heldout.tasks)
            check_state(run, run.env.start(self.train_tasks[0]))
        with self._asking_env("first words"):
            texts = list(collect(run.env, self.train_tasks[:TEXT_TASKS], run.parser, turns=run.limits.turns))
            texts += [run.experts.revise.thought] if run.experts.revise else []
        with explain_full_disk(assets, None):
            self.policy: Policy = run.policy.build(texts, assets)
        self.engine: Engine = run.engine.build(self.policy.replica())
        self.policy.recompute(run.optimizer.recompute)
        if run.optimizer.compile:
            self.policy.compile()
        reference = "reference" in run.objective.needs | needs_of(run.credit)
        self.budget = self._budget(reference=reference)
        if self.budget is not None:
            self.run = run = replace(run, optimizer=replace(run.optimizer, micro_tokens=self.budget.micro_tokens))
        self.host: Host = (
            Workers(env=run.env, count=run.workers, deadline_s=run.worker_deadline_s)
            if run.workers
            else Inline(env=run.env)
        )
        width = self.policy.head()[0].shape[1]
        self.critic = None if run.critic is None else run.critic.build(width).to(self.policy.device)
        self.valuer = (
            None
            if self.critic is None
            else Valuer(
                self.policy,
                self.critic,
                micro_tokens=run.optimizer.micro_tokens,
                alone=getattr(run.engine, "deterministic", False),
            )
        )
        self.learner = Learner(
            self.policy,
            run.optimizer,
            total_updates=run.steps * run.optimizer.epochs * run.optimizer.parts,
            temperature=run.sampling.temperature,
            critic=self.critic,
        )
        self.advisers = Advisers(
            run.advisers, vocab_tokens=self.policy.vocab_tokens, device=str(self.policy.device), seed=run.seed
        )
        self.reference = Reference(self.policy, wanted=reference)
        self.canary = self._canary()

    @property
    def grove(self) -> Grove:
        """Where training trees grow."""
        run = self.run
        agent = Agent(
            engine=self.engine,
            renderer=self.policy.renderer,
            context=run.context,
            parser=run.parser,
            sampling=run.sampling,
            critic=self.valuer,
        )
        return Grove(
            agent=agent,
            host=self.host,
            instructions=run.env.instructions,
            limits=run.limits,
            waits=self.waits,
            at_once=run.batch_tasks,
        )

    @property
    def memories(self) -> Mapping[str, Memory]:
        """What must outlive this process besides policy and optimizer, by the name it has in a checkpoint."""
        return self.advisers.memories | ({} if self.critic is None else {"critic": self.critic})

    def appraise(self, rewarded: Sequence[Rewarded], seed: int) -> list[Rewarded]:
        """The trees that are credited, with what the run's rule needs to know from models other than the policy.

        The advisers come first: those that put other paths into the batch do so before these are looked at.
        """
        rewarded = self.advisers.advise(rewarded, seed)
        needs = needs_of(self.run.credit)
        values, reference = any(need.startswith("critic.") for need in needs), "reference" in needs
        if not (values or reference):
            return rewarded
        return appraise(
            rewarded,
            self.policy,
            critic=self.critic if values else None,
            reference=self.reference.model if reference else None,
            temperature=self.run.sampling.temperature,
            micro_tokens=self.run.optimizer.micro_tokens,
        )

    async def show(self) -> list[Tree]:
        """The demonstrations that are mixed into batches."""
        count = self.run.experts.demonstrations
        if not count:
            return []
        if count > len(self.train_tasks):
            raise ValueError(
                f"experts.demonstrations: got {count}; need at most tasks.count, which is {len(self.train_tasks)}"
            )
        seed = derive(self.run.seed, "demonstrations")
        return list((await self.grove.grow(Demonstration(), self.train_tasks[:count], seed=seed)).trees)

    def revise(self, rewarded: Sequence[Rewarded]) -> list[Tree]:
        """What is made of the mistakes in some trees, if anything is to be."""
        rule, room = self.run.experts.revise, self.policy.context_tokens
        reader = Reader(renderer=self.policy.renderer, context=self.run.context, parser=self.run.parser, room=room)
        return [] if rule is None else rule(rewarded, reader)

    def tasks_from(self, first: int) -> list[Task]:
        """The next batch of training tasks after `first`: the pool in a new order whenever it was gone through.

        Where an adviser weighs tasks, they are drawn by its weights instead, each at most once. Then advisers may have
        them begin elsewhere, or put others in their place.
        """
        with self._asking_env("teacher"):
            return self.advisers.begin(self._draw(first), self._teach, derive(self.run.seed, "begin", first))

    def _teach(self, task: Task) -> tuple[str, ...]:
        return way(self.run.env, task)

    def _draw(self, first: int) -> list[Task]:
        """The next batch from the pool."""
        weights = self.advisers.weigh([task.id for task in self.train_tasks])
        if weights is not None:
            generator = np.random.default_rng(derive(self.run.seed, "draw", first))
            drawn = generator.choice(len(self.train_tasks), self.run.batch_tasks, replace=False, p=weights)
            return [self.train_tasks[place] for place in drawn.tolist()]
        size = len(self.train_tasks)
        places = range(first, first + self.run.batch_tasks)
        orders = {epoch: self._order(epoch) for epoch in {place // size for place in places}}
        return [self.train_tasks[orders[place // size][place % size]] for place in places]

    async def sync(self, *, moved: bool) -> float:
        """Give the engine the policy's weights and check that they arrived; returns the canary's gap, nats."""
        self.engine.sync(self.policy.weights(), self.learner.updates)
        deadline_s = self.run.limits.engine_deadline_s
        return await self.canary.check(self.engine, self.policy, self.waits, moved=moved, deadline_s=deadline_s)

    async def close(self) -> None:
        """Let go of processes and memory."""
        closing: dict[str, Awaitable[None]] = {"environment": self.host.close(), "engine": self.engine.close()}
        for thing, closed in closing.items():
            await self.waits.until(closed, owner="end of the run", thing=f"{thing} to close", deadline_s=CLOSE_S)

    def _asking_env(self, thing: str) -> AbstractContextManager[None]:
        """The environment is asked in this process, so nothing but the watchdog can end a call that hangs."""
        deadline_s = self.run.limits.env_deadline_s
        return self.waits.during(owner="start of the run", thing=f"environment {thing}", deadline_s=deadline_s)

    def _order(self, epoch: int) -> Sequence[int]:
        generator = np.random.default_rng(derive(self.run.seed, "order", epoch))
        return generator.permutation(len(self.train_tasks)).tolist()

    def _budget(self, *, reference: bool) -> Budget | None:
        """What the run's bound on memory allows, if it has one."""
        optimizer, entropy = self.run.optimizer, "entropy" in self.run.objective.needs
        if optimizer.memory_gib is None:
            return None
        return Budget(optimizer.memory_gib, optimizer, self.policy, self.engine, entropy=entropy, reference=reference)

    def _canary(self) -> Canary:
        """A real first prompt and a few tokens of the environment's own language after it."""
        env, renderer = self.run.env, self.policy.renderer
        prompt = renderer.render(env.instructions, (), env.start(self.train_tasks[0]).observation)
        tolerance = CANARY_TOLERANCE.get(self.policy.dtype, 0.1)
        room = min(self.policy.context_tokens, self.engine.context_tokens)
        return Canary(prompt[: max(1, room - 8)], prompt[: min(8, room - 1)], tolerance=tolerance)


def draw_tasks(run: Run, tasks: Tasks) -> list[Task]:
    """The tasks that a run names.

    Raises:
        ConfigError: when a file can't be read, has a broken line, or too few tasks; names the field.
        ValueError: when the environment returns something else.
    """
    if tasks.file is None:
        drawn: object = run.env.tasks(tasks.split, tasks.count, derive(run.seed, "tasks", tasks.split))
        return _tasks(f"{type(run.env).__name__}.tasks({tasks.split!r}, {tasks.count}, ...)", drawn, tasks.count)
    field = "heldout.tasks" if tasks is run.heldout.tasks else "tasks"
    try:
        found = read_tasks(Path(tasks.file))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{field}.file: cannot read {tasks.file}: {reason}; need a file of tasks") from error
    except ValueError as error:
        raise ConfigError(f"{field}.file: {error}") from error
    if len(found) < tasks.count:
        raise ConfigError(
            f"{field}.file: {tasks.file}: got {len(found)} tasks; need {tasks.count} (the run's {field}.count)"
        )
    return found[: tasks.count]


def _tasks(call: str, drawn: object, count: int) -> list[Task]:
    """What an environment returned, when it is what was asked for."""
    items = list(cast("Iterable[object]", drawn)) if isinstance(drawn, Iterable) else [drawn]
    wrong = [item for item in items if not isinstance(item, Task)]
    if wrong:
        raise ValueError(f"{call}: got {wrong[0]!r} of type {type(wrong[0]).__name__}; need a list of Task")
    tasks = cast("list[Task]", items)
    different = len({task.id for task in tasks})
    if (len(tasks), different) != (count, count):
        raise ValueError(f"{call}: got {len(tasks)} tasks with {different} different ids; need {count} of each")
    return tasks
