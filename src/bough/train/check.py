"""Combinations that cannot work are refused before anything is built."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce

from bough.config.config import ConfigError
from bough.config.fields import leaf_fields
from bough.config.finite import check_finite
from bough.credit import needs_of
from bough.env import Branching, Oracle, Replay, State
from bough.objective import Dpo, Imitation, Reinforce, Sum
from bough.train.run import Run
from bough.tree import Task


def check(run: Run) -> None:
    """Refuse a run whose pieces do not fit together.

    Raises:
        ConfigError: says which two, why, and what to do.
    """
    # Fields of environments are not restricted.
    paths = leaf_fields(Run)
    check_finite({name: reduce(getattr, path, run) for name, path in paths.items() if name != "env"})
    _check_tasks(run)
    _check_credit(run)
    _check_objective(run)
    _check_explorer(run)
    _check_ratio(run)
    _check_staleness(run)


def _check_tasks(run: Run) -> None:
    """Refuse a batch larger than the task pool, in which tasks would repeat."""
    schedule, count = run.world.schedule, run.world.tasks.count
    if schedule.steps and schedule.batch_tasks > count:
        raise ConfigError(
            f"batch_tasks: got {schedule.batch_tasks} with tasks.count={count}; need at most as many tasks in a "
            "batch as there are; lower batch_tasks, or raise tasks.count"
        )


def _check_credit(run: Run) -> None:
    """What the credit rule asks for, as `needs_of` says it."""
    rule, needs = type(run.method.credit).__name__, needs_of(run.method.credit)
    heads = () if run.method.critic is None else run.method.critic.heads
    for name in sorted(need.removeprefix("critic.") for need in needs if need.startswith("critic.")):
        if name not in heads:
            raise ConfigError(
                f"credit={rule}: needs the head {name!r} of a critic; got "
                f"{'no critic' if not heads else f'a critic with {list(heads)}'}; give the run "
                f"critic=ValueHead(heads=(..., {name!r})) and an objective with ValueClip"
            )
    marks: Iterable[str] = getattr(run.world.parser, "marks", ())
    given = set(marks)
    for name in sorted(need.removeprefix("mark.") for need in needs if need.startswith("mark.")):
        if name not in given:
            raise ConfigError(
                f"credit={rule}: needs turns annotated with {name!r}; got the parser "
                f"{type(run.world.parser).__name__} with {sorted(given) or 'no annotations'}; take one that finds it"
            )
    advice = {name for recipe in run.method.hooks for name in getattr(recipe, "gives", ())}
    for name in sorted(need.removeprefix("adviser.") for need in needs if need.startswith("adviser.")):
        if name not in advice:
            raise ConfigError(
                f"credit={rule}: needs the estimate {name!r} of an adviser; got advisers that give "
                f"{sorted(advice) or 'nothing'}; put one that gives it into hooks=(...)"
            )
    if "quality" in needs and "quality" not in getattr(run.method.explorer, "gives", ()):
        raise ConfigError(
            f"credit={rule}: needs the quality of actions before they are executed; got "
            f"{type(run.method.explorer).__name__}, which rates none; take explorer=Slate(quality=...)"
        )
    if "entropy" in needs and not run.world.sampling.entropies:
        raise ConfigError(f"credit={rule}: needs the entropies of what was sampled; set sampling.entropies=true")


def _check_objective(run: Run) -> None:
    """What the objective asks for, and whether it can tell demonstrations from samples."""
    loss = run.loss.needs
    if "mean_turn_entropy" in loss and not run.world.sampling.entropies:
        raise ConfigError("the objective: needs the entropies of what was sampled; set sampling.entropies=true")
    if "values" in loss and run.method.critic is None:
        raise ConfigError("the objective has a loss on values; got no critic; set critic=ValueHead()")
    mixed, objective = run.method.demonstrations, type(run.method.objective).__name__
    if "experts" in loss and not (mixed.count or mixed.from_trees or mixed.revise):
        raise ConfigError(
            f"objective={objective}: needs demonstrations beside samples; got none; set demonstrations.count, "
            "demonstrations.revise, or with a teacher in the explorer demonstrations.from_trees"
        )
    if mixed.count and "experts" not in loss:
        raise ConfigError(
            f"demonstrations.count: got {mixed.count} and objective={objective}, which takes demonstrations for "
            "samples; take Chord or SftMix, or use warmup.demonstrations"
        )
    if mixed.from_trees and "experts" not in loss and not isinstance(run.loss, Dpo | Imitation):
        raise ConfigError(
            f"demonstrations.from_trees: got true and objective={objective}, which takes a teacher's turns for "
            "samples; take Dpo or Imitation, or an objective that separates them (Chord, SftMix)"
        )
    if mixed.revise and "experts" not in loss and not isinstance(run.loss, Imitation):
        raise ConfigError(
            f"demonstrations.revise: got a rule and objective={objective}, which takes demonstrations for samples; "
            "take Imitation, or an objective that separates them (Chord, SftMix)"
        )


def _check_explorer(run: Run) -> None:
    """Whether states can be stepped as it steps them, and what it, or a piece of it, asks for: its `needs`."""
    if getattr(run.method.explorer, "forks", False) and run.world.env.branching is Branching.NONE:
        raise ConfigError(
            f"explorer={type(run.method.explorer).__name__}: steps a state more than once, and "
            f"{type(run.world.env).__name__} cannot do that; wrap the environment, env=Replay(env=...), or take "
            "explorer=Chains()"
        )
    needs = {need: piece for piece in _pieces(run.method.explorer) for need in getattr(piece, "needs", ())}
    if "critic" in needs and run.method.critic is None:
        raise ConfigError(
            f"explorer: {type(needs['critic']).__name__} asks a critic what places are worth; got none; set "
            "critic=ValueHead() and an objective with ValueClip, or take another evaluate, such as RolloutValue()"
        )
    if "entropy" in needs and not run.world.sampling.entropies:
        raise ConfigError(
            f"explorer: {type(needs['entropy']).__name__} goes by the entropies of what was sampled; set "
            "sampling.entropies=true"
        )
    inner = run.world.env.env if isinstance(run.world.env, Replay) else run.world.env
    if "oracle" in needs and not isinstance(inner, Oracle):
        raise ConfigError(
            f"explorer: {type(needs['oracle']).__name__} asks the environment's oracle; {type(inner).__name__} has "
            "none (a method `plan(state)`); take another evaluate, such as RolloutValue()"
        )


def _pieces(piece: object) -> Iterator[object]:
    """A piece and every piece inside it."""
    if isinstance(piece, tuple):
        for each in piece:  # pyright: ignore[reportUnknownVariableType]
            yield from _pieces(each)  # pyright: ignore[reportUnknownArgumentType]
    elif is_dataclass(piece):
        yield piece
        for each in fields(piece):
            yield from _pieces(getattr(piece, each.name))


def check_state(run: Run, state: State) -> None:
    """Refuse a rule that compares states in an environment that does not name them.

    Raises:
        ConfigError: when the first state has no key.
    """
    if "state_key" in needs_of(run.method.credit) and not state.key:
        raise ConfigError(
            f"credit={type(run.method.credit).__name__}: compares turns taken in the same state; "
            f"{type(run.world.env).__name__} gives its states no key; set State.key in the environment, or take a rule "
            "without state keys"
        )


def refuse_overlap(train: Sequence[Task], heldout: Sequence[Task]) -> None:
    """Refuse held-out tasks that are also training tasks: same id, or same data, seed and start.

    Tasks without data, seed and start are compared by id only.

    Raises:
        ConfigError: when there are any; has their number and one example.
    """
    names = {task.id: task.id for task in train} | {text: task.id for task in train if (text := _content(task))}
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
    return next((key for key in (task.id, _content(task)) if key in names), None)


def _content(task: Task) -> str:
    """The data, seed and start of a task as canonical JSON; "" when all are empty."""
    if not (task.data or task.seed or task.start):
        return ""
    return json.dumps([task.data, task.seed, task.start], sort_keys=True, default=repr)


def _check_ratio(run: Run) -> None:
    for piece in _pieces(run.loss):
        ratio = getattr(piece, "ratio", "token")
        if ratio != "token" and "reference" in needs_of(run.method.credit):
            raise ConfigError(
                f"objective={type(piece).__name__}(ratio={ratio!r}) with credit={type(run.method.credit).__name__} and "
                f"a KL in the reward: the KL gives every token an advantage of its own, a ratio over a whole {ratio} "
                "has one for all of them; put the KL into the loss (Kl), or take ratio='token'"
            )


def _check_staleness(run: Run) -> None:
    """Whether trees may grow beside the update, and be a version old when they are learned from."""
    if not run.world.execution.staleness:
        return
    asking = next((piece for piece in _pieces(run.method.explorer) if "critic" in getattr(piece, "needs", ())), None)
    if asking is not None:
        raise ConfigError(
            f"staleness=1: explorer: {type(asking).__name__} asks the critic what places are worth, which the update "
            "changes at the same time; set staleness=0, or take another evaluate, such as RolloutValue()"
        )
    if run.world.optimizer.momentum != "adam":
        raise ConfigError(
            f"staleness=1: optimizer.momentum={run.world.optimizer.momentum!r} takes gradients where the batch was "
            "sampled; set staleness=0, or momentum='adam'"
        )
    terms = run.loss.terms if isinstance(run.loss, Sum) else (run.loss,)
    if any(isinstance(term, Reinforce) for term in terms):
        raise ConfigError(
            "staleness=1: the objective Reinforce has no ratio to correct for the policy that sampled; set "
            "staleness=0, or take objective=Tis(objective=Reinforce()), or one with a ratio, such as PpoClip"
        )
