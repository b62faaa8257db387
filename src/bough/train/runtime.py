"""The heavy pieces of a run, built and wired: model, engine, environment, learner."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from bough.engine import Engine, Remote
from bough.engine.engine import Replacing, Sleeping
from bough.engine.gated import GatedEngine
from bough.env import Env, EnvFault, seats_of
from bough.env.hosts.workers import to_stderr
from bough.env.script import Script
from bough.explore import Demonstration
from bough.hooks.run_hooks import RunHooks
from bough.launch import check_connected
from bough.learner.memory_meter import return_freed
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.policy.policy import Policy
from bough.rewrite.message_trees import message_trees
from bough.roles.models import EarlierVersion, role_model
from bough.roles.oracle_actions import oracle_actions
from bough.roles.seat_models import model_agent, seat_sources
from bough.roles.seat_policy import OwnPolicy
from bough.rollout import Agent, Deadlines, RoleModel, RolloutRunner, SeatAgent
from bough.store import Checkpoint
from bough.train.check import refuse_drivers, refuse_overlap
from bough.train.checked_engine import CheckedEngine
from bough.train.checkpointable import Checkpointable
from bough.train.earlier import EarlierWeights
from bough.train.event_loop import run_coroutine
from bough.train.first_draw import TimedHost, begun_lines, draw_tasks, first_tasks, open_run
from bough.train.health import check_paths, count_solved, unsolved_reason
from bough.train.judge_versions import judge_versions
from bough.train.next_tasks import next_tasks
from bough.train.notices import Notices
from bough.train.processes import leading_rank, make_host
from bough.train.resolve import check_task_fields
from bough.train.run import Run
from bough.train.seats import policy_seats, seat_run
from bough.train.trained import PolicyRole, TrainedPolicy
from bough.train.unused import missing_fields
from bough.tree import AgentAction, Task, Tree, derive
from bough.units import number_of
from bough.varying import constant

CLOSE_S = 60.0
"""How long processes may take to end."""


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
        self.run, self.deadlines, self.notify = run, deadlines, notify
        self.notices = Notices(report=lambda alarm: notify(str(alarm)), health=run.health)
        self.host = make_host(run, notify)
        self.timed = TimedHost(host=self.host, deadlines=deadlines, deadline_s=run.world.limits.env_deadline_s)
        self.ranks: Ranks = SINGLE_RANK
        self._counted = dict[str, int]()
        try:
            self._build(assets, trains=trains)
        except BaseException:
            self.ranks.close()
            run_coroutine(self.host.close())
            raise

    def _build(self, assets: Path, *, trains: bool) -> None:
        """Open the environment, then make the policy, the engine and the learner."""
        run = self.run
        if run.world.execution.threads:
            torch.set_num_threads(run.world.execution.threads)
        if run.world.optimizer.memory_gib is not None:
            return_freed()
        heldout = not trains or run.world.evaluation.every > 0
        self.first_draw = run_coroutine(open_run(run, self.timed, heldout=heldout))
        self.train_tasks, self.heldout_tasks = self.first_draw.train_tasks, self.first_draw.heldout_tasks
        if trains:
            refuse_overlap(self.train_tasks, self.heldout_tasks)
            check_task_fields(run, self.train_tasks)
        missing = missing_fields(run, self.train_tasks) if trains else ()
        for line in (*begun_lines(run, self.first_draw), self.first_draw.line, *missing):
            if line:
                self.notify(line)
        if trains and run.world.execution.ranks > 1:
            self.ranks = leading_rank(run, self.notify)
        self.trained = self._trained(assets)
        self.run_hooks = RunHooks([(each.role, each.hooks) for each in self.learning])
        refuse_drivers(run, self.run_hooks)
        own, policy = RoleModel(engine=self.main.gated, renderer=self.policy.renderer), self.main.policy
        self.models = {role: role_model(source, policy, own) for role, source in run.models.items()}
        self.seat_models = {seat: role_model(each, policy, own) for seat, each in seat_sources(run.policies).items()}
        self.earlier = self._earlier()
        self.judges = judge_versions(
            run.models, self.models, self.policy, [*self.main.hooks.members.values()], self._checked
        )

    def _checked(self, engine: GatedEngine, name: str) -> CheckedEngine:
        """An engine of the policy's model, whose loads are checked."""
        return self.main.checked_engine(engine, self.first_draw, name)

    def _earlier(self) -> dict[str, EarlierWeights]:
        """The earlier versions of the policy among the models, by the name of their state in a checkpoint."""
        seats = seat_sources(self.run.policies)
        models = {f"earlier-role-{role}": (source, self.models[role]) for role, source in self.run.models.items()}
        models |= {f"earlier-seat-{seat}": (each, self.seat_models[seat]) for seat, each in seats.items()}
        return {
            name: EarlierWeights(source.every, self._checked(model.engine, f"the model {name}"), self.policy)
            for name, (source, model) in models.items()
            if isinstance(source, EarlierVersion) and isinstance(model.engine, GatedEngine)
        }

    async def begin_step(self, number: int) -> None:
        """Before step `number` of reinforcement: set schedules, refresh due earlier versions, and empty the caches.

        Caches that are in use, because trees grow over several steps, stay. Raises `ClusterGone` as `check_connected`.
        """
        check_connected()
        driven = self.run_hooks.drive()
        for policy in self.trained:
            policy.progress, policy.driven = self.run.world.schedule.progress(number), driven
        for each in (*self.earlier.values(), *self.judges):
            await each.begin_step(number, self.main.learner.updates)
        if self.run.world.execution.staleness <= 1:
            self.reset_caches()

    def _trained(self, assets: Path) -> tuple[TrainedPolicy, ...]:
        """The trained policies; the first is the run's `policy`, the others have seats of their own."""
        run = self.run.replace(threads=torch.get_num_threads())
        policy_roles = [(PolicyRole(run=run, seats=policy_seats(run)), assets)]
        for name, each in run.policies.items():
            if isinstance(each, OwnPolicy):
                role = PolicyRole(run=seat_run(run, name), name=name, seats=(name,), frozen=each.frozen)
                policy_roles.append((role, assets / name))
        return tuple(
            TrainedPolicy(role, self.first_draw, folder, self.deadlines, self.ranks) for role, folder in policy_roles
        )

    @property
    def main(self) -> TrainedPolicy:
        """The run's `policy`."""
        return self.trained[0]

    @property
    def learning(self) -> Sequence[TrainedPolicy]:
        """The policies whose hooks are called: all but frozen ones."""
        return [each for each in self.trained if not each.role.frozen]

    @property
    def policy(self) -> Policy:
        """The model of the run's `policy`."""
        return self.main.policy

    @property
    def engine(self) -> Engine:
        """The engine of the run's `policy`."""
        return self.main.engine

    @property
    def rollouts(self) -> RolloutRunner:
        """Where held-out trees grow."""
        return self.runner()

    def runner(self, progress: float = 1.0, *, demonstrates: bool = False) -> RolloutRunner:
        """The runner at a progress of the run; with `demonstrates` the oracle acts for seats with their own weights."""
        run, env = self.run, self.run.world.env
        seats = {
            seat: SeatAgent(
                instructions=instructions,
                agent=self._agent(seat, progress),
                automatic=not self._explored(seat, demonstrates=demonstrates),
            )
            for seat, instructions in seats_of(env).items()
        }
        return RolloutRunner(
            agent=self.main.agent(self.models, progress),
            host=self.host,
            instructions=env.instructions,
            limits=self.main.world_at(progress).limits,
            deadlines=self.deadlines,
            seats=seats,
            seat=self.main.role.seat,
            max_concurrent=run.world.schedule.batch_tasks,
        )

    def _agent(self, seat: str, progress: float) -> Agent | Script:
        """The agent of a seat."""
        policy, main = self.run.policies.get(seat), self.main.agent(self.models, progress)
        if policy is None:
            return main
        if isinstance(policy, Script):
            return policy
        if isinstance(policy, OwnPolicy):
            return next(each.agent(self.models, progress) for each in self.trained if each.role.name == seat)
        return model_agent(main, policy, self.seat_models[seat])

    def _explored(self, seat: str, *, demonstrates: bool) -> bool:
        """Whether explorers act for a seat."""
        policy = self.run.policies.get(seat)
        return policy is None or (isinstance(policy, OwnPolicy) and (demonstrates or not policy.frozen))

    @property
    def memories(self) -> Mapping[str, Checkpointable]:
        """Returns all checkpointed state except policies and optimizers, by name."""
        return {name: memory for each in self.trained for name, memory in each.memories.items()} | self.earlier

    def load(self, checkpoint: Checkpoint) -> None:
        """Load the weights of all policies from a checkpoint."""
        for each in self.trained:
            each.load(checkpoint)

    async def show(self) -> list[Tree]:
        """The demonstrations that are mixed into batches."""
        count = self.run.method.demonstrations.count
        shown = await self.demonstrate(count, "demonstrations.count") if count else []
        return [*shown, *self.logged("demonstrations.file")]

    def logged(self, field: str) -> list[Tree]:
        """The demonstrations of a file that fit the model's context; none without a file.

        Args:
            field: The setting with the file.

        Raises:
            ValueError: when none fits, or a conversation does not fit the run's parser.
        """
        conversations = self.first_draw.conversations.get(field, [])
        found = message_trees(conversations, self.main.policy_format)
        if found.too_long:
            self.notify(f"{field}: {found.too_long} of {len(conversations)} exceed the context and are left out")
        if conversations and not found.trees:
            raise ValueError(f"{field}: got conversations that all exceed the model's context; need shorter ones")
        return list(found.trees)

    async def demonstrate(self, count: int, field: str, shortcuts: float = 0.0) -> list[Tree]:
        """The oracle's demonstrations of the first training tasks, without the tasks that fail in all retries.

        Args:
            count: Number of tasks.
            field: The setting with this number, for messages.
            shortcuts: As of `Demonstration`.

        Raises:
            NoLearningSignal: when all of them fail.
            ValueError: when there are fewer tasks, or the environment has no oracle.
        """
        return await self.demonstrate_tasks(first_tasks(self.train_tasks, count, field), field, shortcuts)

    async def demonstrate_tasks(self, tasks: Sequence[Task], field: str, shortcuts: float = 0.0) -> list[Tree]:
        """As `demonstrate`, of given tasks."""
        return await self._demonstrate(self.runner(demonstrates=True), tasks, field, shortcuts)

    async def demonstrate_in(self, env: Env, count: int, field: str, shortcuts: float = 0.0) -> list[Tree]:
        """As `demonstrate`, on tasks of the same split of another environment.

        Raises:
            ConfigError: when some of them are held-out tasks.
            EnvFault: when no tasks can be drawn.
        """
        run = self.run.replace(env=env, tasks=replace(self.run.world.tasks, count=count, file=None))
        host = make_host(run, self.notify)
        try:
            timed = TimedHost(host=host, deadlines=self.deadlines, deadline_s=run.world.limits.env_deadline_s)
            tasks = await draw_tasks(run, run.world.tasks, timed, field, seed=run.seed)
            refuse_overlap(tasks, self.heldout_tasks)
            runner = replace(self.runner(demonstrates=True), host=host, instructions=env.instructions)
            return await self._demonstrate(runner, tasks, field, shortcuts)
        finally:
            await host.close()

    async def _demonstrate(
        self, runner: RolloutRunner, tasks: Sequence[Task], field: str, shortcuts: float
    ) -> list[Tree]:
        count, seed = len(tasks), derive(self.run.seed, "demonstrations")
        grown = await runner.run(Demonstration(shortcuts=shortcuts), tasks, seed=seed)
        check_paths(grown.trees, grown.unstarted)
        if lost := list(grown.unstarted.values()):
            self.notify(f"{field}: {len(lost)} of {count} failed and are left out. The last fault: {lost[-1]}")
        if (solved := count_solved(grown.trees)) < len(grown.trees):
            self.notify(
                f"{field}: {solved} of {len(grown.trees)} demonstrations solve their task"
                f"{unsolved_reason(grown.trees, constant(self.run.world.at(1.0).limits.turns))}"
            )
        return list(grown.trees)

    async def tasks_from(self, first: int) -> list[Task]:
        """The next batch of training tasks after `first`; every pass over the pool has its own order.

        With task weights from hooks, of any policy in training, tasks are drawn by the product of these weights, each
        at most once. Then hooks may rewrite tasks: another start, or another task.
        """
        count = self.run.world.schedule.batch_tasks
        weights = self.run_hooks.weigh(self.train_tasks)
        tasks = next_tasks(self.train_tasks, weights, first, count, self.run.seed)
        return await self.run_hooks.rewrite(tasks, self._teach, derive(self.run.seed, "begin", first))

    async def _teach(self, task: Task) -> tuple[AgentAction, ...]:
        """The oracle's actions for a task; () when it has none, or the environment fails in all retries."""
        try:
            return await self.timed.retried(lambda: oracle_actions(self.timed, task))
        except EnvFault as fault:
            self.notify(f"task {task.id}: got no demonstration, the environment failed: {fault}")
            return ()

    def fault_metrics(self) -> dict[str, float]:
        """What failed, was started again, lost or joined since the last call, and the number of elastic ranks.

        "env/faults" are those outside of trees: before the first step, and in demonstrations for hooks.
        """
        now = {
            "env/faults": len(self.timed.faults),
            "env/replaced": self.host.replaced,
            "engine/replaced": sum(each.replaced for each in self._engines.values() if isinstance(each, Replacing)),
            **{f"rank/{event}": count for event, count in self.ranks.events.items()},
        }
        new = {name: float(count - self._counted.get(name, 0)) for name, count in now.items()}
        self._counted = now
        if lost := new["engine/replaced"]:
            self.notify(f"replaced {number_of(lost, 'engine process')} that died or hung (engine/replaced)")
        if self.run.world.execution.min_ranks is not None:
            new["rank/world_size"] = float(self.ranks.world_size)
        return {name: count for name, count in new.items() if count}

    async def sync(self, *, moved: bool) -> float:
        """Give the engines their policies' weights and check that they arrived; returns the largest gap, nats.

        Engines of earlier versions get those of a checkpoint that was restored.
        """
        for each in self.earlier.values():
            await each.load_restored()
        return max([await each.sync(moved=moved) for each in self.trained])

    @contextmanager
    def asleep(self) -> Generator[None]:
        """A time without requests, in which engines that sleep free the device for learning."""
        sleeping = [each for each in self._engines.values() if isinstance(each, Sleeping)]
        try:
            for each in sleeping:
                each.sleep()
            yield
        finally:
            for each in sleeping:
                each.wake()

    def reset_caches(self) -> None:
        """Empty the caches of all engines.

        A resumed run has empty caches; cached results may differ from computed ones in their lowest bits.
        """
        for engine in self._engines.values():
            engine.reset_cache()

    @property
    def _engines(self) -> dict[str, Engine]:
        """All engines, by what they belong to."""
        engines = {f"engine of {each.role.name or 'policy'}": each.engine for each in self.trained}
        engines |= {f"engine of the role {role}": model.engine for role, model in self.models.items()}
        return engines | {f"engine of the seat {seat}": model.engine for seat, model in self.seat_models.items()}

    async def check_servers(self) -> None:
        """Check that the servers of roles and seats answer.

        Raises:
            EngineFault: when one does not answer, refuses the key, or has no such model.
        """
        for engine in self._engines.values():
            if isinstance(engine, Remote):
                await engine.check()

    async def close(self) -> None:
        """Let go of processes and memory."""
        closing: dict[str, Awaitable[None]] = {"environment": self.host.close()}
        closing |= {name: engine.close() for name, engine in self._engines.items()}
        self.ranks.close()
        for thing, closed in closing.items():
            await self.deadlines.until(closed, owner="end of the run", thing=f"{thing} to close", deadline_s=CLOSE_S)
