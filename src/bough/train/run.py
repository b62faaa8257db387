"""A run: a method on a world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypedDict, Unpack

from bough.appraise import Appraiser
from bough.config.fields import GROUP, set_fields
from bough.config.kinds import check_kinds
from bough.context import Context, Full, Parser, Plain
from bough.credit import Credit, Grpo
from bough.critics import ValueHead
from bough.curate import Filter, NonZeroAdvantage, Ties
from bough.engine import OwnModel, Sampling
from bough.env import Env
from bough.explore import Chains
from bough.guard import Guard
from bough.hooks.hook import HookRecipe
from bough.launch import Placement
from bough.learner.optimizer import Optimizer
from bough.loggers import Logger
from bough.needs import CRITIC, POLICY, Need, needs_of, roles
from bough.objective import Normalizer, Objective, PpoClip, add, regularises
from bough.piece import AtLeast, piece
from bough.reward import EnvReward, Reward
from bough.roles.models import ModelSource
from bough.roles.recipes import EngineRecipe, PolicyRecipe
from bough.roles.seat_policy import SeatPolicy
from bough.rollout import Explorer, Limits
from bough.tracing import OpenTelemetry
from bough.train.settings import Checkpointing, Demonstrations, Evaluation, Execution, Health, Schedule, Tasks, Warmup
from bough.varying import fields_of_group, samples_of, settings_at
from bough.view.named_step import named_step

NAME_BYTES = 255
"""Longest name of a folder on common file systems, in UTF-8."""


class WorldSettings(TypedDict, total=False):
    """The fields of a world and of its groups, by their short names, without the policy."""

    env: Env
    context: Context
    parser: Parser
    guard: Guard | None
    limits: Limits
    sampling: Sampling
    appraisers: Sequence[Appraiser]
    rewards: Sequence[Reward]
    regularizers: Sequence[Objective]
    filters: Sequence[Filter]
    tasks: Tasks
    evaluation: Evaluation
    warmup: Warmup
    optimizer: Optimizer
    schedule: Schedule
    steps: int
    batch_tasks: int
    stop_tokens: int | None
    stop_actions: int | None
    stop_seconds: float | None
    execution: Execution
    engine: EngineRecipe
    workers: int
    worker_deadline_s: float
    worker_placement: Placement
    staleness: int
    threads: int
    ranks: int
    min_ranks: int | None
    rank_placement: Placement
    shard: bool
    rank_deadline_s: float
    metrics_port: int


class WorldFields(WorldSettings, total=False):
    """The fields of a world and of its groups, by their short names."""

    name: str
    policy: PolicyRecipe


class RunSettings(WorldSettings, total=False):
    """The fields of a run and of its groups, by their short names, without the policy."""

    name: str
    world: "World"
    method: "Method"
    explorer: Explorer
    hooks: Sequence[HookRecipe]
    models: Mapping[str, ModelSource | OwnModel]
    policies: Mapping[str, SeatPolicy]
    credit: Credit
    max_sampling_rounds: int
    objective: Objective
    normalizer: Normalizer
    critic: ValueHead | None
    reference: Literal["start", "step"]
    demonstrations: Demonstrations
    checkpointing: Checkpointing
    loggers: Sequence[Logger]
    tracing: OpenTelemetry | None
    health: Health
    seed: int


class RunFields(RunSettings, total=False):
    """The fields of a run and of its groups, by their short names."""

    policy: PolicyRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An environment and a policy, with the settings that were tuned for the two.

    Attributes:
        name: Of the world; the default name of its runs.
        env: The environment.
        policy: The model.
        context: Selects the past turns in the policy's prompt.
        parser: Finds the action in the policy's text.
        guard: Decides about each action before it is executed; None allows all.
        limits: Budgets of a path and of a tree.
        sampling: How training paths are sampled.
        appraisers: Ask models about the grown trees; rewards read their columns.
        rewards: The reward channels.
        regularizers: Terms added to the objective, such as `Kl`.
        filters: Choose the groups of a batch that are trained on, in order.
        tasks: Training tasks.
        evaluation: Held-out tasks, and when they are evaluated.
        warmup: Imitation before reinforcement.
        optimizer: How the loss is minimised.
        schedule: Length of a run.
        execution: Engine, processes and threads.
    """

    name: str
    env: Env
    policy: PolicyRecipe
    context: Context = Full()
    parser: Parser = Plain()
    guard: Guard | None = None
    limits: Limits = Limits()
    sampling: Sampling = Sampling()
    appraisers: Sequence[Appraiser] = ()
    rewards: Sequence[Reward] = (EnvReward(),)
    regularizers: Sequence[Objective] = ()
    filters: Sequence[Filter] = (NonZeroAdvantage(),)
    tasks: Tasks = field(default_factory=lambda: Tasks(split="train", count=1000))
    evaluation: Evaluation = field(default_factory=Evaluation)
    warmup: Warmup = Warmup()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = field(default=Schedule(), metadata=GROUP)
    execution: Execution = field(default=Execution(), metadata=GROUP)

    def __post_init__(self) -> None:
        check_kinds(self)
        if 0 in samples_of(self.sampling.temperature):
            raise ValueError("World.sampling.temperature: got 0; need more than 0, or all paths of a group are equal")

    def replace(self, **fields: Unpack[WorldFields]) -> "World":
        """A copy with fields replaced; `steps=50` replaces `schedule.steps`."""
        return set_fields(self, fields)

    @property
    def max_turns(self) -> int:
        """Most turns of a path, at any step of the run."""
        return max(map(round, samples_of(self.limits.turns)))

    @property
    def max_path_tokens(self) -> int:
        """Most sampled tokens of a path, at any step of the run: `max_turns` times `sampling.max_tokens`."""
        return self.max_turns * self.sampling.max_tokens

    def at(self, progress: float, driven: Mapping[str, float] | None = None) -> "World":
        """Replaces the schedules of `sampling` and `limits` by their numbers at a progress of the run.

        Args:
            progress: From 0, the first step, to 1, the end.
            driven: By setting, such as "limits.turns", numbers of hooks, in the place of its number or schedule.
        """
        groups = {"sampling": self.sampling, "limits": self.limits}
        return replace(
            self,
            **{name: settings_at(group, progress, fields_of_group(driven, name)) for name, group in groups.items()},
        )

    def run(self, **fields: Unpack[RunFields]) -> "Run":
        """A run on this world. Fields that are not given have their defaults, which are GRPO's.

        world.run(credit=Gigpo(), objective=PpoClip(high=0.28), rewards=(*world.rewards, InvalidAction()))

        A method is for worlds of any size: `batch_tasks` is at most the number of the world's tasks.
        """
        run = Run(name=self.name, world=self).replace(**fields)
        pool = run.world.tasks.count
        return run.replace(batch_tasks=pool) if run.world.schedule.batch_tasks > pool else run


@piece
class Method:
    """An algorithm: everything of a run that a paper describes. The defaults are GRPO (arXiv 2402.03300).

    Attributes:
        explorer: Grows the tree of a task.
        hooks: Keep state across steps, and run in order between reward and credit. A hook that adds paths of earlier
            steps comes first, so that later hooks get them too.
        credit: Computes advantages.
        max_sampling_rounds: How often a step samples `batch_tasks` trees to fill a batch from which `filters` dropped
            groups; dynamic sampling (DAPO, arXiv 2503.14476) uses 10.
        objective: The loss, without the world's regularizers.
        normalizer: The weight of a token in the mean of a batch.
        critic: Value heads, for rules, losses and searches that need them.
        reference: The reference policy: the policy after the warm-up ("start"), or at the start of each step ("step"),
            for rounds of self-training.
        demonstrations: Demonstrations mixed into batches.
    """

    explorer: Explorer = Chains()
    hooks: Sequence[HookRecipe] = ()
    credit: Credit = Grpo()
    max_sampling_rounds: Annotated[int, AtLeast(1)] = 1
    objective: Objective = PpoClip()
    normalizer: Normalizer = Normalizer()
    critic: ValueHead | None = None
    reference: Literal["start", "step"] = "start"
    demonstrations: Demonstrations = Demonstrations()

    def __post_init__(self) -> None:
        check_kinds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A method on a world: everything from the task to the loss.

    Attributes:
        name: Of the run and of its directory.
        world: Environment, policy, and their settings.
        method: The algorithm.
        models: The models of other roles than "policy", by role: `{"judge": OpenAi(...)}`. They belong to the run: an
            address or a folder is neither part of the environment nor of the algorithm.
        policies: The policies of seats, by seat, in an environment for several agents: `{"executor": OwnPolicy()}`.
            `policy` acts for the seats without one.
        checkpointing: Checkpoints and files of trees.
        loggers: Where else the metrics go, beside `metrics.jsonl`.
        tracing: Spans of the rollouts for OpenTelemetry; None for none.
        health: When to stop a run that learns nothing.
        seed: Seed of all random numbers, except those of held-out tasks (`evaluation.seed`).
    """

    name: str
    world: World = field(metadata=GROUP)
    method: Method = field(default=Method(), metadata=GROUP)
    models: Mapping[str, ModelSource | OwnModel] = field(default_factory=dict[str, ModelSource | OwnModel])
    policies: Mapping[str, SeatPolicy] = field(default_factory=dict[str, SeatPolicy])
    checkpointing: Checkpointing = Checkpointing()
    loggers: Sequence[Logger] = ()
    tracing: OpenTelemetry | None = None
    health: Health = Health()
    seed: int = 0

    def __post_init__(self) -> None:
        check_kinds(self)
        if POLICY in self.models:
            raise ValueError(
                f"Run.models: got a model for the role {POLICY!r}; need other roles: the policy is set by `policy`"
            )
        if self.name in ("", ".", "..") or "/" in self.name or not self.name.isprintable():
            raise ValueError(
                f"Run.name: got {self.name!r}; need a name that can be a folder's: without '/', line breaks and "
                "control characters"
            )
        if len(self.name.encode()) > NAME_BYTES:
            raise ValueError(
                f"Run.name: got {len(self.name.encode())} bytes, {self.name[:20]!r}...; need at most {NAME_BYTES}, the "
                "longest name of a folder"
            )

    def replace(self, **fields: Unpack[RunFields]) -> "Run":
        """A copy with fields replaced; `steps=50` replaces `world.schedule.steps`."""
        return set_fields(self, fields)

    @property
    def gives(self) -> frozenset[Need]:
        """The roles with a model."""
        return roles(*self.models)

    @property
    def loss(self) -> Objective:
        """The objective with the world's regularizers."""
        return add(self.method.objective, self.world.regularizers)

    @property
    def ties(self) -> Ties:
        """What happens to tied groups: further rounds replace them, terms of the loss train on them, or they count."""
        if self.method.max_sampling_rounds > 1:
            return "leave"
        return "train" if CRITIC in needs_of(self.loss) or regularises(self.loss) else "count"

    def named_step(self, step: int) -> str:
        """See `bough.view.named_step`."""
        return named_step(step, epochs=self.warmup_steps, steps=self.world.schedule.steps)

    @property
    def last_step(self) -> int:
        """The number of the last step: the epochs of the warm-up, and `steps` more."""
        return self.warmup_steps + self.world.schedule.steps

    @property
    def warmup_steps(self) -> int:
        """Number of steps that are epochs of the warm-up; those of reinforcement follow."""
        return sum(part.epochs for part in self.world.warmup.parts().values())
