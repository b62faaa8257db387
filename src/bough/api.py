"""The functions of `import bough`, for scripts and notebooks: train, evaluate, chat, search, train_reward, ..."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar, Unpack, cast

from bough.cli.compare import compare_targets
from bough.cli.find import evaluated, find_env_or_world, find_run, refuse_arguments, run_or_directory
from bough.compare import Comparison, Reading
from bough.config import ConfigError, override
from bough.critics import RewardModel
from bough.engine import OpenAi
from bough.env import Env
from bough.evaluate import CheckSizes, EnvReport, PolicyResult, SearchResult
from bough.evaluate.envs import check_env as check
from bough.evaluate.policy import evaluate as evaluate_policy
from bough.evaluate.search_result import search as search_heldout
from bough.roles import PolicyRecipe
from bough.store import RunDirectory
from bough.train import Run, World, start
from bough.train import resume as resume_run
from bough.train.result import Result
from bough.train.run import RunSettings
from bough.train.train_reward import RewardTraining
from bough.tree import Tree
from bough.view import counter

Kept = TypeVar("Kept")

Trained: TypeAlias = Result | str | Path
"""An existing run: its result, or its directory."""


def train(
    run: Run | str | Path | Callable[..., Run],
    changes: Sequence[str] = (),
    *,
    on: World | str | Path | None = None,
    policy: PolicyRecipe | str | Path | None = None,
    out: str | Path = "runs",
    **fields: Unpack[RunSettings],
) -> Result:
    """Train an agent and write a report.

        result = bough.train("gigpo", on="sokoban", steps=50)
        result = bough.train("dapo(high=0.3)", ["optimizer.learning_rate=3e-4"], name="first")

    Ctrl-C, or a notebook's stop button, stops the run after the operation in progress; `resume` continues it.

    Args:
        run: A run; or a function `World -> Run`; or as on the command line the name of a method or recipe, or
            `path/to/file.py:function`.
        changes: Fields to change first, each as "field=value".
        on: The world of a method: its name, `path/to/file.py:function`, or a `World`. None is FrozenLake.
        policy: A policy preset, a folder of a model, or `path/to/file.py:function`; or a policy alone, with the other
            settings of the world. None keeps the world's policy.
        out: The folder in which the run's directory is made.
        fields: Fields to replace, by their short names: `steps=50`, `credit=Grpo()`.

    Raises:
        ConfigError: when there is no such method, world or field, a field does not take its value, or pieces do not
            fit together.
        StoreError: when the directory exists already, or the disk is full.
        NoLearningSignal: when the run cannot learn.
    """
    preset = str(policy) if isinstance(policy, str | Path) else None
    if not isinstance(run, Run):
        method = str(run) if isinstance(run, Path) else run
        run = find_run(method, str(on) if isinstance(on, Path) else on, preset)
        refuse_arguments(method, changes)
    elif on is not None or preset is not None:
        raise ConfigError("got a Run with on=... or a policy preset; need a method's name, or run.replace(world=...)")
    if policy is not None and preset is None:
        run = run.replace(policy=cast("PolicyRecipe", policy))
    return Result(directory=start(override(run.replace(**fields), changes), Path(out)).path)


def resume(run: Trained, changes: Sequence[str] = (), *, accept_changes: bool = False) -> Result:
    """Continue a stopped run from its newest complete checkpoint; equals the uninterrupted run.

    Args:
        run: The run.
        changes: Fields to change first, each as "field=value"; see `bough.train.start.MAY_CHANGE`.
        accept_changes: Whether to go on when files of pieces, data or tasks changed since the run was made.

    Raises:
        StoreError: when there is no run, another process writes to it, or all its checkpoints are damaged.
        ConfigError: when config.json names pieces or fields that do not exist, or a field may not change; when files,
            data or tasks changed, without `accept_changes`.
        NoLearningSignal: when the run cannot learn.
    """
    return Result(directory=resume_run(_directory(run), changes, accept_changes=accept_changes).path)


def load(run: str | Path) -> Result:
    """Open the directory of a run that ended or was stopped.

    Raises:
        StoreError: when there is no run.
    """
    return Result(directory=RunDirectory.open(Path(run)).path)


def evaluate(
    run: Trained | Run | None = None,
    changes: Sequence[str] = (),
    *,
    on: World | str | Path | None = None,
    policy: OpenAi | Callable[[World], World] | str | Path | None = None,
    step: int | None = None,
    shots: int = 0,
    accept_changes: bool = False,
) -> PolicyResult:
    """Measure a policy on held-out tasks; nothing in a run's directory is changed.

        bough.evaluate(result, ["evaluation.tasks.count=500", "evaluation.temperature=0"])
        bough.evaluate(on="shop", policy=OpenAi(model="m", base_url="http://localhost:8000/v1"))

    Args:
        run: The run, whose checkpoint acts; None for a world. A `Run` has no weights: a policy as built acts, or a
            server's model.
        changes: Fields to change first, each as "field=value".
        on: The world without a run.
        policy: The policy in place of the run's: the model of a server, a preset, a folder of a model, or
            `path/to/file.py:function`; or a function `World -> World`.
        step: Step of the checkpoint; the newest complete one if None.
        shots: Number of held-out tasks whose demonstrations the weights imitate first; see `bough.evaluate.evaluate`.
        accept_changes: Whether to go on when files of pieces, data or tasks changed since the run was made.

    Raises:
        StoreError: when there is no such run or checkpoint.
        ConfigError: when a change is not one of the run's fields, or pieces do not fit together; when files or held-out
            tasks changed, without `accept_changes`; when there are as many shots as tasks, or a server's model.
        EngineFault: when a server does not answer, or refuses the key.
        AllFailed: when every task failed.
    """
    found, preset = evaluated(_place(run), _text(on), _text(policy))
    return evaluate_policy(found, policy=preset, step=step, shots=shots, changes=changes, accept_changes=accept_changes)


def compare(
    targets: Sequence[Trained],
    changes: Sequence[str] = (),
    *,
    on: str | Sequence[str] = (),
    policy: str | None = None,
    seeds: int | None = None,
    reading: Reading | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    retry: bool = False,
) -> Comparison:
    """Compare methods, worlds and seeds at an equal budget; or runs that are there.

        bough.compare(["grpo", "gigpo"], ["steps=50"], on="sokoban", reading=Reading(budget="tokens", amount=200_000))
        bough.compare(["runs/a", "runs/b"])

    Methods are trained in processes of their own, some at a time; what is there already is read. A run that fails is
    named in the notes. Runs whose settings differ in name and seed alone are one method.

    Args:
        targets: Methods, as text; or runs; or the folder of a comparison, which goes on.
        changes: Fields that all runs change, each as "field=value".
        on: Worlds of the methods.
        policy: A policy for all runs, as of `train`.
        seeds: Seeds of each method on each world, from 0; 5 if None.
        reading: What is held equal, sampled tokens if None; how much of it, where runs end; and what is compared.
        jobs: Runs at a time; one a core, or one with a GPU, if None.
        out: The folder of the runs and of the result; for methods `runs/compare_WORLD`, for runs none if None.
        retry: Whether runs that failed are tried again.

    Raises:
        ConfigError: when there is no such method, world or field, or fewer than two methods; when the folder has runs
            with other changes.
        StoreError: when a run has no held-out result, or runs of a world share no held-out task.
        KeyboardInterrupt: on Ctrl-C, when all runs have written a checkpoint; the same call goes on.
    """
    return compare_targets(
        [str(each.directory if isinstance(each, Result) else each) for each in targets],
        changes,
        on=[on] if isinstance(on, str) else on,
        policy=policy,
        seeds=seeds,
        reading=reading,
        jobs=jobs,
        out=None if out is None else Path(out),
        retry=retry,
    )


def chat(
    target: Trained | Run | None = None,
    changes: Sequence[str] = (),
    *,
    on: World | str | Path | None = None,
    policy: OpenAi | Callable[[World], World] | str | Path | None = None,
    task: int = 0,
    split: str | None = None,
    seed: int | None = None,
    system: str = "",
    step: int | None = None,
    out: str | Path | None = None,
    read: Callable[[str], str] | None = None,
) -> list[Tree]:
    """Watch and steer an agent in its environment, or talk to a model; `/help` shows what a line can do.

        trees = bough.chat(result, task=3)

    Args:
        target: A run; or a folder or GGUF file of a model; None with `on`, or for a server alone.
        changes: Fields to change first, each as "field=value": of the run, or of `Sampling` for a model alone.
        on: The world without a run.
        policy: The policy in place of the run's, as in `evaluate`.
        task: The number of the first held-out task, from 0.
        split: The split of the tasks; None for the run's `evaluation.tasks`.
        seed: The seed of the samples; None for `evaluation.seed`, with which the agent acts as in `evaluate`.
        system: The system prompt of a model alone.
        step: Step of the checkpoint; the newest complete one if None.
        out: The file for the trees, which ends in .safetensors.
        read: Reads a line after a prompt, and raises EOFError at the end; None for standard input.

    Returns:
        The trees, one a task or conversation; an undone turn is a branch.

    Raises:
        StoreError: when there is no such run or checkpoint.
        ConfigError: when the arguments do not fit together.
        EngineFault: when a server does not answer, or refuses the key.
    """
    from bough.cli.start_chat import start_chat

    return start_chat(
        _place(target),
        changes,
        on=_text(on),
        policy=_text(policy),
        task=task,
        split=split,
        seed=seed,
        system=system,
        step=step,
        out=None if out is None else Path(out),
        read=read,
    )


def search(
    target: Run | Trained,
    explorer: str,
    changes: Sequence[str] = (),
    *,
    step: int | None = None,
    out: str | Path | None = None,
    accept_changes: bool = False,
) -> SearchResult:
    """Solve held-out tasks by search.

        bough.search(result, "mcts(width=4)", ["limits.tree_tokens=200"])

    Args:
        target: A trained run; or a `Run` or the name of a method whose engine has its own model (`OpenAi`).
        explorer: The search, as on the command line.
        changes: Fields to change first, each as "field=value".
        step: Step of a trained run's checkpoint; the newest complete one if None.
        out: The folder for the trees and results.json; a stopped search continues from the trees in it.
        accept_changes: Whether to go on when files of pieces, data or tasks changed since the run was made.

    Raises:
        StoreError: when there is no such run or checkpoint, or the folder holds another search.
        ConfigError: when the pieces do not fit together; when files or held-out tasks changed, without
            `accept_changes`.
        AllFailed: when every task failed.
    """
    if isinstance(target, Result):
        target = target.directory
    elif isinstance(target, str):
        target = run_or_directory(target)
    edits, folder = [f"explorer={explorer}", *changes], None if out is None else Path(out)
    with counter(explorer) as tell:
        return search_heldout(target, edits, step=step, out=folder, accept_changes=accept_changes, on_progress=tell)


def train_reward(
    trees: Trained | Sequence[Trained],
    changes: Sequence[str] = (),
    *,
    out: str | Path,
    run: Trained | None = None,
    seat: str = "",
) -> RewardTraining:
    """Train a learned reward on the stored trees of runs and searches, with a calibration report.

        trained = bough.train_reward("runs/a", ["labels=soft"], out="prm")
        print(trained.report)

    Args:
        trees: A run, its directory, a folder of a search, a folder or file of trees; or several of them.
        changes: Fields of `RewardModel` to change, each as "field=value".
        out: The folder of the reward model.
        run: The run whose policy sampled the trees; None for the first of `trees` that is a run.
        seat: The seat whose turns are scored, in trees with several.

    Raises:
        StoreError: when there are no trees, or `run` is no run.
        ConfigError: when a field is unknown or does not take its value.
        ValueError: when the trees have no labels to learn from.
        OSError: when `out` holds something else.
    """
    from bough.train.train_reward import train_reward as train_on_trees

    several = [trees] if isinstance(trees, Result | str | Path) else trees
    settings = override(RewardModel(), changes)
    directory = None if run is None else _directory(run)
    return train_on_trees([_directory(each) for each in several], settings, out=out, run=directory, seat=seat)


def check_env(env: Env | World | str | Path, sizes: CheckSizes | None = None, only: Sequence[str] = ()) -> EnvReport:
    """Check an environment against its contract: determinism, branching, keys, oracle, splits, garbage, leaks.

        report = bough.check_env("shop")
        assert report.passed, report.failures

    Args:
        env: An environment; or a world, its name, or `path/to/file.py:name` of either.
        sizes: How much is played; None for the defaults.
        only: The names of the checks; () for all.

    Raises:
        ConfigError: when there is no such environment.
        ValueError: when there is no such check.
    """
    name = str(env) if isinstance(env, str | Path) else env.name if isinstance(env, World) else ""
    found = find_env_or_world(name) if isinstance(env, str | Path) else env
    turns = found.max_turns if isinstance(found, World) else None
    found = found.env if isinstance(found, World) else found
    return check(found, sizes=sizes, only=only, name=name, turns=turns)


def _place(run: Trained | Run | None) -> Run | Path | None:
    return run if run is None or isinstance(run, Run) else _directory(run)


def _text(value: Kept | Path) -> Kept | str:
    """A path as text; anything else as it is."""
    return str(value) if isinstance(value, Path) else value


def _directory(run: Trained) -> Path:
    return run.directory if isinstance(run, Result) else Path(run)
