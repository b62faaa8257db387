"""A run: every piece and every number of a training, in one value."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_type_hints, runtime_checkable

from bough.context import Context, Full, Parser, Plain
from bough.credit import Credit, Grpo
from bough.curate import Admit, Signal, Tracker
from bough.engine import Engine, Local, Sampling
from bough.env import Env, Split
from bough.explore import Chains, Explorer, Limits
from bough.objective import Normalizer, Objective, PpoClip
from bough.policy import UtteranceCritic, ValueHead
from bough.reward import EnvReward, Reward
from bough.train.adviser import AdviserRecipe
from bough.train.finite import INFINITE
from bough.train.kinds import wants_piece, wrong_kind
from bough.train.revise import Revise

if TYPE_CHECKING:
    from bough.engine.model import Model
    from bough.policy.policy import Policy

NAME_BYTES = 255
"""Longest name of a folder on common file systems, in UTF-8."""


@runtime_checkable
class PolicyRecipe(Protocol):
    """Builds a policy: `Tiny` or `Pretrained`."""

    def build(self, texts: Iterable[str], assets: Path | None = None) -> "Policy":
        """The policy. `texts` show the environment's language; `assets` is a folder for what must be kept."""
        ...


@runtime_checkable
class EngineRecipe(Protocol):
    """Builds an engine: `Local`, or one of your own that wraps it."""

    def build(self, model: "Model") -> Engine:
        """An engine over a frozen copy of the policy's model, which becomes the engine's own."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Where tasks come from: a split of the environment, or a file.

    Attributes:
        split: The environment's split, when there is no file.
        count: How many tasks.
        file: JSON lines of tasks, `{"id": ..., "data": {...}}`; its first `count` tasks are used.
    """

    split: Split
    count: int
    file: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Tasks.count: got {self.count}; need at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Imitation of a few oracle demonstrations before reinforcement begins.

    Attributes:
        demonstrations: How many training tasks the oracle shows; 0 for no warm-up.
        epochs: How often each demonstration is seen.
        learning_rate: Peak learning rate; falls to zero linearly.
        batch_tokens: Tokens of one optimizer step, about.
    """

    demonstrations: int = 0
    epochs: int = 10
    learning_rate: float = 1e-3
    batch_tokens: int = 8192

    def __post_init__(self) -> None:
        if self.demonstrations < 0 or self.epochs < 1 or self.batch_tokens < 1 or not 0 < self.learning_rate < math.inf:
            raise ValueError(
                f"Warmup: got demonstrations={self.demonstrations}, epochs={self.epochs}, batch_tokens="
                f"{self.batch_tokens}, learning_rate={self.learning_rate}; need 0 or more, 1 or more, 1 or more, > 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Demonstrations that lie in every batch beside what the policy sampled, for objectives that mix the two.

    Attributes:
        demonstrations: How many training tasks the oracle shows, once, at the start; 0 for none.
        per_step: How many of them are in each batch.
        from_trees: Whether what a teacher wrote in the trees of a step is in its batch too, where it led to success:
            for explorers that let one help (`Guided`, `Correct`).
        revise: Makes more of them out of the trees of a step: mistakes, and how to come back from them.
    """

    demonstrations: int = 0
    per_step: int = 8
    from_trees: bool = False
    revise: Revise | None = None

    def __post_init__(self) -> None:
        if self.demonstrations < 0 or self.per_step < 1:
            raise ValueError(
                f"Experts: got demonstrations={self.demonstrations}, per_step={self.per_step}; need 0 or more, 1 or "
                "more"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """AdamW (arXiv 1711.05101), or a normalised gradient, and how a batch becomes optimizer steps.

    Attributes:
        learning_rate: After the warm-up of the schedule. With "igt" and "harpg" the length of a step in the space of
            all weights.
        momentum: The update rule: AdamW, or N-PG-IGT (arXiv 2302.01734; see `bough.train.igt`), a step of
            fixed length along a mean of gradients that are each taken ahead of the iterate. With "igt" the policy's
            weights are that point ahead: it is what is sampled from, saved and evaluated. Take one step per batch
            (`epochs=1`, `minibatches=1`), so that it is also where the batch was sampled. "harpg" is that paper's
            N-HARPG (see `bough.train.harpg`): every other batch, sampled between two iterates, gives a
            Hessian-vector product that corrects the mean; needs `epochs=1` and `minibatches=1`. The warm-up and the
            heads of a critic always use AdamW.
        igt_weight: Least weight of the newest gradient in the mean of "igt" and "harpg", in (0, 1].
        betas: Decay of the two moments.
        epsilon: Added to the root of the second moment.
        weight_decay: Decoupled; matrices only, not biases and norms.
        schedule: What the learning rate does after its warm-up: stay, or fall to zero at the last step.
        warmup_steps: Optimizer steps over which the learning rate rises from zero.
        clip_norm: Largest norm of the gradient; larger ones are scaled down. The policy's is not clipped with "harpg".
        epochs: How often each batch is gone through.
        minibatches: How many optimizer steps one pass over a batch makes.
        micro_tokens: Most tokens of one forward pass; has no influence on the gradient.
        memory_gib: What a run may take on the policy's device, beside the program itself: `micro_tokens` is then chosen
            as large as that allows, and a run that needs more is refused. None sets no bound.
        recompute: Whether activations are computed again going backward, instead of kept: a third more arithmetic, for
            a small part of the memory.
        cpu_workers: Threads that go through a batch together, on a CPU: each reads some of its trees, with gradients of
            its own, and has its part of the run's `threads`. Faster than one where there are as many cores.
        compile: Whether updates run the model's layers as compiled code, attention aside: on one thread a few per
            cent faster. Takes tens of seconds to make once on a machine; on a CPU it needs a C++ compiler.
    """

    learning_rate: float = 1e-4
    momentum: Literal["adam", "igt", "harpg"] = "adam"
    igt_weight: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: int = 0
    clip_norm: float = 1.0
    epochs: int = 1
    minibatches: int = 1
    micro_tokens: int = 16384
    memory_gib: float | None = None
    recompute: bool = False
    cpu_workers: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        for name in ("learning_rate", "clip_norm", "epsilon"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"Optimizer.{name}: got {getattr(self, name)}; need a finite number above 0")
        for name, least in (
            ("epochs", 1),
            ("minibatches", 1),
            ("micro_tokens", 1),
            ("cpu_workers", 1),
            ("warmup_steps", 0),
            ("weight_decay", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"Optimizer.{name}: got {getattr(self, name)}; need at least {least}")
        if self.memory_gib is not None and not self.memory_gib > 0:
            raise ValueError(f"Optimizer.memory_gib: got {self.memory_gib}; need a number above 0, or None")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"Optimizer.betas: got {self.betas}; need two numbers from 0 to below 1")
        if not 0 < self.igt_weight <= 1:
            raise ValueError(f"Optimizer.igt_weight: got {self.igt_weight}; need a number above 0 and up to 1")
        named = f"with momentum={self.momentum!r}"
        if self.momentum != "adam" and self.weight_decay:
            raise ValueError(f"Optimizer.weight_decay: got {self.weight_decay} {named}; need 0")
        if self.momentum == "harpg" and (self.epochs, self.minibatches) != (1, 1):
            raise ValueError(
                f"Optimizer: got epochs={self.epochs}, minibatches={self.minibatches} {named}, of which each "
                "step takes a batch sampled by the present weights; need epochs=1, minibatches=1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heldout:
    """Evaluation on tasks that are never trained on, one path each.

    Attributes:
        tasks: Which tasks.
        every: Steps between evaluations; the first and the last step are always evaluated.
        temperature: Of the evaluated policy; 0 is greedy, 1 is the policy as it trains.
    """

    tasks: Tasks = field(default_factory=lambda: Tasks(split="test", count=300))
    every: int = 10
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.every < 1 or self.temperature < 0:
            raise ValueError(
                f"Heldout: got every={self.every}, temperature={self.temperature}; need 1 or more, 0 or more"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a run keeps on disk.

    Attributes:
        every: Steps between checkpoints; the last step always makes one.
        keep: How many of the newest checkpoints stay.
        trees_every: Steps between the trees that are written; 0 for none but the last.
        as_grown: Whether every tree of a step is written as soon as it is finished, and a run that is resumed takes it
            from there: for steps that search for long. With an engine that is not deterministic a resumed step then
            differs from an uninterrupted one in the last bits of what it has to grow anew.
    """

    every: int = 10
    keep: int = 2
    trees_every: int = 10
    as_grown: bool = False

    def __post_init__(self) -> None:
        if self.every < 1 or self.keep < 1 or self.trees_every < 0:
            raise ValueError(
                f"Saving: got every={self.every}, keep={self.keep}, trees_every={self.trees_every}; "
                "need every >= 1, keep >= 1, trees_every >= 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """When a run that learns nothing is stopped.

    Attributes:
        dead_batches: Consecutive batches without a non-zero advantage. If every path of these batches succeeded, the
            run ends with status 0.
        gap: Largest mean difference, in nats, between the engine's log-probabilities and the learner's on the same
            tokens and weights; inf disables the guard.
        stuck_s: Grace after a missed deadline before the process is ended.
    """

    dead_batches: int = 10
    gap: float = field(default=0.2, metadata=INFINITE)
    stuck_s: float = 30.0

    def __post_init__(self) -> None:
        if self.dead_batches < 1 or not self.gap > 0 or self.stuck_s < 0:
            raise ValueError(
                f"Guards: got dead_batches={self.dead_batches}, gap={self.gap}, stuck_s={self.stuck_s}; "
                "need 1 or more, a number above 0, 0 or more"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything a training is, from the task to the loss. The defaults are GRPO.

    Attributes:
        name: Of the run and of its directory.
        env: The world.
        policy: The model.
        context: What of the past the policy reads.
        parser: Finds the action in what the policy writes.
        explorer: Grows the tree of one task.
        limits: Budgets of a path and a tree.
        sampling: How training paths are sampled.
        engine: Generates.
        workers: Processes that run the environment; 0 runs it in this one.
        worker_deadline_s: How long a worker may take over one call before it is replaced.
        rewards: What is paid.
        advisers: What remembers across steps, asked in order between reward and credit. One that puts paths of earlier
            steps into the batch comes first, so that the others see them too.
        credit: Who earned it.
        admit: What is worth learning from, in order.
        objective: The loss.
        critic: Heads that say what a state is worth, for rules, losses and searches that need them.
        reference: Which policy is the reference of rules and losses that need one: as reinforcement began ("start"), or
            as each step begins ("step"), for rounds of self-training.
        share: What one token counts in the mean of a batch.
        optimizer: How the loss is minimised.
        warmup: Imitation before reinforcement.
        experts: Demonstrations mixed into the batches of reinforcement.
        steps: Batches of reinforcement.
        batch_tasks: Tasks, hence trees, of one batch.
        rounds: How often a step may grow `batch_tasks` trees to fill a batch from which `admit` dropped groups; 1
            trains on what is left of the first (dynamic sampling, DAPO, arXiv 2503.14476, allows 10).
        staleness: By how many batches the policy that samples may be behind the one that learns: 0, or 1 to grow the
            trees of the next step while the policy learns from those of this one.
        tasks: Training tasks.
        heldout: Evaluation.
        saving: Checkpoints and trees.
        guards: When to stop a dead run.
        seed: Of everything random.
        threads: CPU threads of PyTorch; 0 leaves its choice.
    """

    name: str
    env: Env
    policy: PolicyRecipe
    context: Context = Full()
    parser: Parser = Plain()
    explorer: Explorer = Chains()
    limits: Limits = Limits()
    sampling: Sampling = Sampling()
    engine: EngineRecipe = Local(slots=256)
    workers: int = 0
    worker_deadline_s: float = 60.0
    rewards: Sequence[Reward] = (EnvReward(),)
    # The last two say in which rooms a name given as text is looked up.
    advisers: Sequence[AdviserRecipe | Tracker | UtteranceCritic] = ()
    credit: Credit = Grpo()
    admit: Sequence[Admit] = (Signal(),)
    objective: Objective = PpoClip()
    critic: ValueHead | None = None
    reference: Literal["start", "step"] = "start"
    share: Normalizer = Normalizer()
    optimizer: Optimizer = Optimizer()
    warmup: Warmup = Warmup()
    experts: Experts = Experts()
    steps: int = 100
    batch_tasks: int = 16
    rounds: int = 1
    staleness: int = 0
    tasks: Tasks = field(default_factory=lambda: Tasks(split="train", count=1000))
    heldout: Heldout = field(default_factory=Heldout)
    saving: Saving = Saving()
    guards: Guards = Guards()
    seed: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
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
        for name, least in (("workers", 0), ("steps", 0), ("batch_tasks", 1), ("rounds", 1), ("threads", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"Run.{name}: got {getattr(self, name)}; need at least {least}")
        if self.staleness not in (0, 1):
            raise ValueError(f"Run.staleness: got {self.staleness}; need 0 or 1")
        if self.sampling.temperature == 0:
            raise ValueError("Run.sampling.temperature: got 0; need more than 0, or every path of a group is the same")
        for name, annotation in _kinds().items():
            value: object = getattr(self, name)
            several = isinstance(value, (list, tuple))
            for place, piece in enumerate(cast("Sequence[object]", value) if several else [value]):
                if wrong := wrong_kind(annotation, type(piece)):
                    raise ValueError(f"Run.{name}{f'.{place}' if several else ''}: {wrong}")

    @property
    def warmup_steps(self) -> int:
        """How many steps of the run are epochs of the warm-up; those of reinforcement come after them."""
        return self.warmup.epochs if self.warmup.demonstrations else 0


@cache
def _kinds() -> dict[str, Any]:
    """The types of the fields of a run that hold pieces."""
    return {name: annotation for name, annotation in get_type_hints(Run).items() if wants_piece(annotation)}
