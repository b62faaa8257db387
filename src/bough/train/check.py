"""Combinations that cannot work are refused before anything is built."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce

from bough.config.config import ConfigError
from bough.config.fields import leaf_fields
from bough.config.values import check_values
from bough.hooks.distinct import refuse_repeats
from bough.hooks.run_hooks import RunHooks
from bough.learner.optimizer import check_sharding
from bough.loggers import NeedsPackages
from bough.roles.recipes import FilesRecipe
from bough.roles.seat_policy import OwnPolicy
from bough.rollout import paths_of
from bough.train.resolve import resolve, run_pieces
from bough.train.run import Run
from bough.train.seats import check_seats, seat_run
from bough.tree import Task

MOST_PATHS = 1_000_000
"""Paths of a batch."""


def check(run: Run) -> None:
    """Refuse a run whose pieces do not fit together, or whose values or tasks do not.

    Raises:
        ConfigError: names the field, what it needs, what the run has, and what to change.
    """
    # Environments check their own settings.
    paths = leaf_fields(Run)
    check_values({name: reduce(getattr, path, run) for name, path in paths.items() if name != "env"})
    _check_tasks(run)
    _check_paths(run)
    _check_writers(run)
    check_seats(run)
    resolve(run)
    _check_shard(run)
    for name, policy in run.policies.items():
        if isinstance(policy, OwnPolicy):
            _check_own(name, run)


def check_trained_sampling(run: Run) -> None:
    """Refuse training on tokens that were sampled from a part of the vocabulary.

    The learner's log-probabilities are those of the whole vocabulary, so they would not be the engine's.

    Raises:
        ConfigError: names the field.
    """
    own = {f"policies.{name}.sampling": seat_run(run, name) for name, each in run.policies.items() if _is_trained(each)}
    for name, each in ({"sampling": run} | own).items() if run.world.schedule.steps else ():
        if (top_p := each.world.sampling.top_p) < 1:
            raise ConfigError(
                f"{name}.top_p: got {top_p} in training; need 1, as the learner's log-probabilities "
                "are those of the whole vocabulary; lower sampling.temperature instead. `bough eval` and "
                "requests to `bough serve` may set it"
            )


def _is_trained(policy: object) -> bool:
    return isinstance(policy, OwnPolicy) and not policy.frozen


def _check_writers(run: Run) -> None:
    """Refuse rewards and hooks that write the same channel or estimate."""
    try:
        refuse_repeats((*run.world.rewards, *run.method.hooks))
    except ValueError as error:
        raise ConfigError(f"rewards, hooks: {error}") from error
    checks = run.world.evaluation.checks
    try:
        refuse_repeats(checks)
    except ValueError as error:
        raise ConfigError(f"evaluation.checks: {error}") from error
    if trained := [type(each).__name__ for each in checks if each in run.world.rewards]:
        raise ConfigError(
            f"evaluation.checks: got {trained[0]}, which is one of the rewards too; need a check that is not trained "
            "on: remove it from one of the two"
        )


def _check_own(name: str, run: Run) -> None:
    try:
        resolve(seat_run(run, name))
        _check_shard(seat_run(run, name))
    except ConfigError as error:
        raise ConfigError(f"policies.{name}: {error}") from error


def check_files(run: Run) -> None:
    """Refuse a policy or another piece whose files are missing.

    Raises:
        ConfigError: has the missing file.
    """
    for piece in run_pieces(run):
        if isinstance(piece.value, FilesRecipe):
            try:
                piece.value.check_files()
            except OSError as error:
                raise ConfigError(f"{piece.place}: {error}") from error


def check_packages(run: Run) -> None:
    """Refuse loggers and tracing without their packages.

    Raises:
        ConfigError: has the extra.
    """
    for piece in run_pieces(run):
        if isinstance(piece.value, NeedsPackages):
            try:
                piece.value.check_packages()
            except (ImportError, ValueError) as error:
                raise ConfigError(f"{piece.place}: {error}") from error


def _check_shard(run: Run) -> None:
    """Refuse a number of ranks and settings of the optimizer that sharded weights do not support."""
    if run.world.execution.shard:
        if run.world.execution.ranks < 2:
            raise ConfigError(
                f"shard: got True with ranks={run.world.execution.ranks}; need at least 2 ranks, or shard=False"
            )
        try:
            check_sharding(run.world.optimizer)
        except ValueError as error:
            raise ConfigError(str(error)) from error


def _check_tasks(run: Run) -> None:
    """Refuse a batch larger than the task pool, in which tasks would repeat."""
    schedule, count = run.world.schedule, run.world.tasks.count
    if schedule.steps and schedule.batch_tasks > count:
        raise ConfigError(
            f"batch_tasks={schedule.batch_tasks} is larger than tasks.count={count}; lower batch_tasks, or raise "
            "tasks.count"
        )


def _check_paths(run: Run) -> None:
    """Refuse more paths in a batch than memory holds."""
    paths = paths_of(run.method.explorer) or 1
    if paths * run.world.schedule.batch_tasks > MOST_PATHS:
        raise ConfigError(
            f"explorer: got {paths:,} episodes a task and batch_tasks={run.world.schedule.batch_tasks}; need at most "
            f"{MOST_PATHS:,} episodes in a batch: lower explorer.n, or batch_tasks"
        )


def refuse_overlap(train: Sequence[Task], heldout: Sequence[Task]) -> None:
    """Refuse held-out tasks that are also training tasks: same id, or same data, seed and start.

    A task from a later start (`Task.after`) is the task itself. Tasks without data, seed and start are compared by id.

    Raises:
        ConfigError: when there are any; has their number and one example.
    """
    names = {task.base_id: task.id for task in train} | {text: task.id for task in train if (text := _content(task))}
    shared = [(task.id, names[key]) for task in heldout if (key := _shared(task, names))]
    if shared:
        one, other = shared[0]
        example = f"{one!r}" if one == other else f"{one!r}, which is the training task {other!r}"
        raise ConfigError(
            f"evaluation.tasks: got {len(shared)} of {len(heldout)} tasks that are trained on, such as {example}; need "
            "tasks that are not: set evaluation.tasks to another split than tasks, or to a file without these"
        )


def _shared(task: Task, names: Mapping[str, str]) -> str | None:
    """The id or content of a task, whichever is a key of `names`; None when neither is."""
    return next((key for key in (task.base_id, _content(task)) if key in names), None)


def _content(task: Task) -> str:
    """The data, seed and own start of a task as canonical JSON; "" when all are empty."""
    start = task.start if task.base_id == task.id else ()
    if not (task.data or task.seed or start):
        return ""
    return json.dumps([task.data, task.seed, start], sort_keys=True, default=repr)


def refuse_drivers(run: Run, hooks: RunHooks) -> None:
    """Refuse hooks that drive settings where the trees of a step grow before it.

    Raises:
        ConfigError: has the staleness.
    """
    if hooks.drives and run.world.execution.staleness:
        got = run.world.execution.staleness
        raise ConfigError(f"execution.staleness: got {got} with a hook that drives settings; need 0")
