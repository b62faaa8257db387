"""The command `bough chat`."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.failure import explained
from bough.cli.options import Changes, On, Step, TaskSplit


@explained
def chat_with_agent(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A run directory; or a model: a folder, a GGUF file, a hub id, package:NAME, smollm2; none with --on."
        ),
    ] = None,
    changes: Changes = None,
    on: On = None,
    policy: Annotated[str | None, typer.Option(help="The agent in place of the run's, as of `bough eval`.")] = None,
    task: Annotated[int, typer.Option(help="Number of the first held-out task, from 0.")] = 0,
    split: Annotated[TaskSplit | None, typer.Option(help="Split of the tasks; the run's if not given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples; evaluation.seed if not given.")] = None,
    system: Annotated[str, typer.Option(help="System prompt of a chat with a model alone.")] = "",
    step: Step = None,
    out: Annotated[Path | None, typer.Option(help="File for the trees, which ends in .safetensors.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="RUN:TREE:NODE", help="Go on from a turn of a stored tree, such as runs/a:12.3:5."),
    ] = None,
    branches: Annotated[Path, typer.Option(help="With --at: the folder of new branches.")] = Path("branches"),
) -> None:
    """Watch and steer an agent in its environment, or talk to a model; /help shows what a line can do.

    bough chat runs/a --task 3

    bough chat path/to/model --system 'Answer in one line.' temperature=0.7

    bough chat --at runs/a:12.3:5
    """
    if at is not None:
        from bough.cli.branch_chat import chat_at
        from bough.config.config import ConfigError

        others = {"a target": target, "fields": changes, "--on": on, "--policy": policy, "--task": task}
        others |= {"--split": split, "--system": system, "--out": out}
        if given := [name for name, value in others.items() if value]:
            raise ConfigError(f"--at {at!r:.80}: got {given[0]} too; need --step, --seed and --branches alone")
        chat_at(at, branches, step=step, seed=seed or 0)
        return
    from bough.cli.find import split_target
    from bough.cli.start_chat import start_chat

    place, edits = split_target(target, changes or [])
    start_chat(
        place,
        edits,
        on=on,
        policy=policy,
        task=task,
        split=None if split is None else split.value,
        seed=seed,
        system=system,
        step=step,
        out=out,
    )
