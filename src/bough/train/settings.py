"""Smaller groups of settings: tasks, warm-up, schedule, evaluation, demonstrations, execution, checkpoints, health."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from bough.checks import INFINITE
from bough.config.kinds import check_kinds
from bough.engine import TEMPERATURE, Local
from bough.env import Env, Split
from bough.launch import Placement, ThisMachine
from bough.needs import (
    DEMONSTRATIONS,
    IDLE_UPDATES,
    ON_POLICY,
    ORACLE,
    SEPARATE_DEMONSTRATIONS,
    TEACHER_TURNS,
    Need,
)
from bough.piece import Above, AtLeast, Between, piece
from bough.reward import Reward
from bough.rewrite.rewrite import PathRewriter
from bough.roles.recipes import EngineRecipe


@piece
class Tasks:
    """The source of tasks: a split of the environment, or a file.

    Attributes:
        split: The environment's split, used without a file.
        count: Number of tasks.
        file: JSON lines of tasks, `{"id": ..., "data": {...}}`; its first `count` tasks are used.
        actions_left: The oracle begins each task, until its plan has this many actions left; then the agent goes on.
            The oracle's turns are in the agent's context, and are not trained on (reverse curriculum, R3, arXiv
            2402.05808). A task with a shorter plan, or with none, begins at its start. None for all of them.
    """

    split: Split
    count: Annotated[int, AtLeast(1)]
    file: str | None = None
    actions_left: Annotated[int | None, AtLeast(1)] = None

    def __post_init__(self) -> None:
        if self.count > MAX_TASKS:
            raise ValueError(f"Tasks.count: got {self.count:,}; need at most {MAX_TASKS:,}, which memory holds")

    @property
    def needs(self) -> frozenset[Need]:
        """An oracle, to begin tasks."""
        return frozenset(() if self.actions_left is None else {ORACLE.or_else("actions_left=none")})


@piece
class Warmup:
    """Imitation of demonstrations before reinforcement learning.

    Attributes:
        demonstrations: Number of training tasks that the oracle demonstrates.
        file: JSON lines of conversations in OpenAI's form, which are imitated as well; see `read_conversations`. Rows
            with "success": false are left out. Without demonstrations and file there is no warm-up.
        epochs: Passes over the demonstrations.
        learning_rate: Peak learning rate; falls to zero linearly.
        batch_tokens: Approximate number of tokens of one optimizer step.
        shortcuts: Probability in [0, 1), at each turn of a demonstration, of taking the last action of the oracle's
            plan at once, such as an answer before the search. Most of these paths fail. They are imitated too, and
            reinforcement learning corrects them.
        stages: Parts of the demonstrations, by difficulty: those with the fewest turns first, ties with the fewest
            tokens. The epochs are divided among the parts, so `epochs` must be as many or more. 1 imitates all in every
            epoch.
        env: The environment of the demonstrations, such as the world's with easier tasks, whose training split they are
            from. It needs the same seats. None for the world's own.
        then: A second warm-up after this one, with its own demonstrations and optimizer, such as one on harder tasks.
            Without demonstrations and file here, it is left out too.
    """

    demonstrations: Annotated[int, AtLeast(0)] = 0
    epochs: Annotated[int, AtLeast(1)] = 10
    learning_rate: Annotated[float, Above(0)] = 1e-3
    batch_tokens: Annotated[int, AtLeast(1)] = 8192
    file: str | None = None
    shortcuts: Annotated[float, Between(0, 1, "at least 0 and less than 1", below=True)] = 0.0
    stages: int = 1
    env: Env | None = None
    then: "Warmup | None" = None

    def __post_init__(self) -> None:
        if not 1 <= self.stages <= self.epochs:
            raise ValueError(
                f"Warmup.stages: got {self.stages} and epochs={self.epochs}; need at least 1 and at most the epochs"
            )

    @property
    def imitates(self) -> bool:
        """Whether there is a warm-up."""
        return self.demonstrations > 0 or self.file is not None

    def parts(self, field: str = "warmup") -> "dict[str, Warmup]":
        """This warm-up and those after it, in order, by the name of the setting, as far as each imitates."""
        if not self.imitates:
            return {}
        return {field: self} | (self.then.parts(f"{field}.then") if self.then else {})

    @property
    def needs(self) -> frozenset[Need]:
        """An oracle, for demonstrations."""
        shown = [name for name, part in self.parts().items() if part.demonstrations]
        return frozenset(ORACLE.or_else(f"{name}.demonstrations=0") for name in shown)


@piece
class Schedule:
    """Length of a run.

    Attributes:
        steps: Number of batches of reinforcement learning.
        batch_tasks: Number of tasks, hence trees, of a batch.
        stop_tokens: The run ends after the step with which it has sampled as many tokens; None for all steps. Schedules
            of other settings are over `steps`.
        stop_actions: The same for actions of the policies, hence steps of environments.
        stop_seconds: The same for wall time; where such a run ends depends on the machine.
    """

    steps: Annotated[int, AtLeast(0)] = 100
    batch_tasks: Annotated[int, AtLeast(1)] = 16
    stop_tokens: Annotated[int | None, AtLeast(1)] = None
    stop_actions: Annotated[int | None, AtLeast(1)] = None
    stop_seconds: Annotated[float | None, Above(0)] = None

    def progress(self, number: int) -> float:
        """The progress of a run at a step of reinforcement, 0 for the first: from 0 to below 1."""
        return number / max(1, self.steps)

    def __post_init__(self) -> None:
        if self.steps > MAX_STEPS:
            raise ValueError(f"Schedule.steps: got {self.steps}; need at most {MAX_STEPS:,}")


@piece
class Evaluation:
    """Evaluation on held-out tasks, one path each.

    Attributes:
        tasks: The held-out tasks.
        every: Steps between evaluations; the policy before the first step and after the last is evaluated too. 0 for
            none: the run draws no held-out tasks, and `bough eval` can still measure them.
        temperature: Sampling temperature; 0 is greedy.
        seed: Seed of the held-out tasks and of their episodes, whatever the run's seed: runs of several seeds are
            compared on the same tasks.
        checks: Rewards that are measured on the trees of every training step and on held-out episodes, and never
            trained on: a second look at what the trained rewards pay for. Metrics `check/NAME` have their means. A
            check may read the columns of appraisers; held-out episodes have none, so it is not measured there.
    """

    tasks: Tasks = field(default_factory=lambda: Tasks(split="test", count=300))
    every: Annotated[int, AtLeast(0, "0 (none) or more")] = 10
    temperature: Annotated[float, TEMPERATURE] = 1.0
    seed: int = 0
    checks: Sequence[Reward] = ()

    def __post_init__(self) -> None:
        check_kinds(self)


@piece
class Demonstrations:
    """Demonstrations mixed with samples in every batch, for objectives with demonstrations.

    Attributes:
        count: Number of training tasks that the oracle demonstrates, once, at the start; 0 for none.
        per_step: Number of them in each batch.
        from_trees: Whether successful turns of a teacher in the step's trees are demonstrations too, for explorers
            with a teacher (`Guided`, `Correct`).
        revise: Makes demonstrations from the step's trees: recoveries from mistakes (`Revise`), refined answers
            (`Refined`), search traces (`SearchTraces`), parallel calls (`ParallelPaths`), or observations
            (`PredictObservations`).
        file: JSON lines of conversations, as `Warmup.file`; their trees are demonstrations too.
    """

    count: Annotated[int, AtLeast(0)] = 0
    per_step: Annotated[int, AtLeast(1)] = 8
    from_trees: bool = False
    revise: PathRewriter | None = None
    file: str | None = None

    @property
    def needs(self) -> frozenset[Need]:
        """An objective for each used source except `revise`, which has its own needs, and an oracle for `count`."""
        separate = self.count or self.file is not None
        sources = {SEPARATE_DEMONSTRATIONS: separate, TEACHER_TURNS: self.from_trees}
        oracle = {ORACLE.or_else("demonstrations.count=0"): self.count}
        return frozenset(need for need, used in (sources | oracle).items() if used)

    @property
    def gives(self) -> frozenset[Need]:
        """Demonstrations beside samples, where there are any."""
        return frozenset({DEMONSTRATIONS} if self.count or self.from_trees or self.revise or self.file else ())


MAX_STALENESS = 8
MAX_THREADS = 1024
MAX_PORT = 2**16 - 1
MAX_STEPS = 10**9
MAX_TASKS = 10_000_000
"""Upper bounds of settings."""


@piece
class Execution:
    """The execution of a run: engine, processes, threads.

    Attributes:
        engine: Generates text.
        workers: Number of processes that run the environment; 0 runs it in this process. With workers, timing decides
            which requests share a forward pass, and so the last bits of results; see `Local.deterministic`.
        worker_deadline_s: Longest time of one call of a worker, in seconds; then the worker is replaced.
        worker_placement: Where the workers start: `ThisMachine()`, or `Ray()` for a cluster.
        staleness: Maximum number of updates between the weights that sample a token and the weights that the token
            trains, 0 to 8. With 1 the trees of the next step grow during the update, and new weights wait for them.
            From 2 on up to so many further batches grow while a step waits, and new weights are loaded meanwhile: a
            path goes on with them at its next turn (with `Vllm` at its next token), and timing decides at which.
        threads: CPU threads; 0 is PyTorch's number, one a core. See `optimizer.cpu_workers` for their use.
        ranks: Processes that compute the gradients of each batch, this one included: each on its own GPU for
            a policy on CUDA, else with its part of the threads. Each has the weights and the optimizer's moments, and
            a part of the batch's trees. Gradients differ from those of one process by rounding. Under torchrun it is
            the number of torchrun's processes.
        min_ranks: Fewest ranks with which the run begins, and goes on when others do not come back, this one included:
            the batch is divided over the running ranks, and ranks that come later join at an update. None for all
            ranks: then the run stops. torchrun has `--nnodes=MIN:MAX` for it.
        rank_placement: Where the other ranks start: `ThisMachine()`, or `Ray()` for a cluster.
        shard: Whether each rank has a part of the weights, gradients and moments (FSDP2), and gathers each layer for
            its forward and backward pass. Rank 0 has whole weights and moments too: the weights on `policy.device`, the
            moments on the CPU. Needs `optimizer.momentum="adam"`, `cpu_workers=1` and `memory_gib=None`.
        rank_deadline_s: Longest time of one exchange between the ranks during an update, in seconds; then a rank counts
            as dead, all start again, and the update is repeated.
        metrics_port: The port at which Prometheus reads the newest metrics (extra `prometheus`), on loopback or at the
            address of `BOUGH_BIND`; 0 for none.
    """

    engine: EngineRecipe = Local(slots=256)
    workers: Annotated[int, AtLeast(0)] = 0
    worker_deadline_s: Annotated[float, Above(0, "a finite number above 0, seconds")] = 60.0
    worker_placement: Placement = ThisMachine()
    staleness: Annotated[int, Between(0, MAX_STALENESS, f"0 to {MAX_STALENESS}")] = 0
    threads: Annotated[int, Between(0, MAX_THREADS, f"0 to {MAX_THREADS}; 0 is PyTorch's number")] = 0
    ranks: Annotated[int, AtLeast(1)] = 1
    min_ranks: int | None = None
    rank_placement: Placement = ThisMachine()
    shard: bool = False
    rank_deadline_s: Annotated[float, Above(0, "a finite number above 0, seconds")] = 600.0
    metrics_port: Annotated[int, Between(0, MAX_PORT, f"1 to {MAX_PORT}, or 0 for none")] = 0

    def __post_init__(self) -> None:
        if self.min_ranks is not None and not 1 <= self.min_ranks <= self.ranks:
            raise ValueError(
                f"Execution.min_ranks: got {self.min_ranks}; need 1 to ranks={self.ranks}, or None for all ranks"
            )
        check_kinds(self)

    @property
    def gives(self) -> frozenset[Need]:
        """Rollouts of the current weights, and updates of an idle engine, unless trees grow during the update."""
        return frozenset(() if self.staleness else {ON_POLICY, IDLE_UPDATES})


@piece
class Checkpointing:
    """Files that a run keeps.

    Attributes:
        every: Steps between checkpoints; the last step always saves one.
        keep: Number of newest checkpoints to keep.
        trees_every: Steps between files of trees; 0 writes only the trees of the last step.
        as_grown: Whether each tree of a step is written as soon as it is complete, and loaded by `resume`: for long
            searches. With a non-deterministic engine the last bits of the trees that `resume` grows may differ.
        copy_to: A folder for copies of the newest checkpoints and of what `resume` needs beside them, as a URL of
            fsspec (extra `copies`): "s3://bucket/runs". Copied while the run goes on; "" for none.
    """

    every: Annotated[int, AtLeast(1)] = 10
    keep: Annotated[int, AtLeast(1)] = 2
    trees_every: Annotated[int, AtLeast(0)] = 10
    as_grown: bool = False
    copy_to: str = ""


@piece
class Health:
    """Limits that stop a run which learns nothing, and the check for rewards that rise without success.

    Attributes:
        dead_batches: Consecutive batches without a non-zero advantage or a revised path. If every path of these batches
            succeeded, the run ends with status 0.
        cut_share: Share of actions cut off at `sampling.max_tokens`, above 0 and up to 1, from which a batch counts as
            cut. The first one is reported.
        cut_batches: Consecutive cut batches after which the run stops; 0 for runs in which actions without an end are
            normal.
        gap: Largest mean difference, in nats, between the engine's log-probabilities and the learner's on the same
            tokens and weights; inf disables the check.
        stuck_s: Seconds between a missed deadline and the end of the process.
        reward_window: Steps of a window over which a reward channel that rises while success does not is reported, at
            least 4; 0 for no report.
    """

    dead_batches: Annotated[int, AtLeast(1)] = 10
    cut_share: Annotated[float, Between(0, 1, above=True)] = 0.5
    cut_batches: Annotated[int, AtLeast(0)] = 20
    gap: Annotated[float, Above(0)] = field(default=0.2, metadata=INFINITE)
    stuck_s: Annotated[float, AtLeast(0)] = 30.0
    reward_window: int = 20

    def __post_init__(self) -> None:
        if self.reward_window and self.reward_window < 4:
            raise ValueError(
                f"Health.reward_window: got {self.reward_window}; need at least 4 steps, or 0 for no report"
            )
