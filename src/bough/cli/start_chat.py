"""Starts a chat: in an environment for a run or a world, else with a model alone."""

from collections.abc import Sequence
from pathlib import Path

from bough.cli.chat import Read, chat_in_environment, chat_with_model
from bough.cli.find import evaluated, is_run_directory
from bough.config import ConfigError, override
from bough.engine import OpenAi, OwnModel
from bough.evaluate.agent import Preset
from bough.policy.locate import target_path
from bough.train import Execution, Run, World
from bough.tree import Tree


def start_chat(
    target: Run | Path | None,
    changes: Sequence[str] = (),
    *,
    on: World | str | None = None,
    policy: Preset | OpenAi | str | None = None,
    task: int = 0,
    split: str | None = None,
    seed: int | None = None,
    system: str = "",
    step: int | None = None,
    out: Path | None = None,
    read: Read | None = None,
) -> list[Tree]:
    """Talk to an agent in its environment, or to a model alone; see `chat_in_environment` and `chat_with_model`.

    Args:
        target: A run or its directory; or a model: a folder, a GGUF file or a hub id; None with a world, or for a
            server alone.
        changes: Fields of the run, or of `Sampling` for a model alone.
        on: The world without a run.
        policy: The policy in place of the run's; without run and world a model, or a server's.
        task: The number of the first task.
        split: The split of the tasks.
        seed: The seed of the samples; None for `evaluation.seed`.
        system: The system prompt of a model alone.
        step: The checkpoint.
        out: The file for the trees.
        read: Reads a line.

    Raises:
        ConfigError: when the arguments do not fit together.
    """
    if on is None and (target is None or (isinstance(target, Path) and not is_run_directory(target))):
        model = _model(target, policy, task=task, split=split, step=step)
        return chat_with_model(model, changes, system=system, seed=seed or 0, out=out, read=read)
    if system:
        raise ConfigError(f"--system {system!r}: got an environment, which has instructions of its own; leave it out")
    found, preset = evaluated(target, on, policy)
    tasks = [f"evaluation.tasks.split={split}", "evaluation.tasks.file=none"] if split else []
    return chat_in_environment(
        found, policy=preset, step=step, changes=[*tasks, *changes], task=task, seed=seed, out=out, read=read
    )


def _model(target: Path | None, policy: object, *, task: int, split: str | None, step: int | None) -> Path | OwnModel:
    """The model of a chat outside of an environment.

    Raises:
        ConfigError: when there is none, or an option needs an environment.
    """
    if task or split or step is not None:
        raise ConfigError(
            f"got {target or 'no run'} with --task, --split or --step; need a run directory or --on WORLD"
        )
    if (target is None) == (policy is None):
        raise ConfigError("got no target, or a model and a policy; need a run directory, a model, or --policy alone")
    if target is not None:
        return target
    if isinstance(policy, str) and "(" not in policy:
        return target_path(policy)
    if isinstance(policy, str):
        engine = override(Execution(), [f"engine={policy}"]).engine
        policy = engine if isinstance(engine, OwnModel) else None
    if isinstance(policy, OwnModel):
        return policy
    raise ConfigError("--policy: got a policy without a world; need OpenAi(...), --on WORLD, or the model as target")
