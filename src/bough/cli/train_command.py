"""The command `bough train`."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.completion import complete_method, complete_policy
from bough.cli.failure import explained
from bough.cli.options import Changes, Like, On


@explained
def train(
    method: Annotated[
        str | None,
        typer.Argument(
            help="A method or recipe (see `bough list`), 'dapo(high=0.3)', path/to/file.py:function; or a run "
            "directory, for a new run of its settings; none with --config of a whole run.",
            autocompletion=complete_method,
        ),
    ] = None,
    changes: Changes = None,
    on: On = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="A policy: smollm2, a folder of a model, a GGUF file, a hub id, or path/to/file.py:function",
            autocompletion=complete_policy,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file of settings: of a whole run, as `bough show` writes, or some.")
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="A TOML file; its table \\[execution] sets where processes run.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
    library: Like = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Shrink the run to seconds: fewer steps, tasks, episodes and tokens.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the settings of the run as TOML, and stop.")] = False,
) -> None:
    """Train an agent by a method on a world; ends with the path of a report.

    bough train grpo --on mine.py:world --quick

    bough train runs/a seed=1 steps=50

    bough train gigpo --show > run.toml; bough train --config run.toml
    """
    from bough.cli.chosen_run import choose
    from bough.cli.cluster import execution_changes
    from bough.config.write_toml import to_toml
    from bough.train import start
    from bough.train.check import check
    from bough.train.unused import refuse_unused_models

    every = [*execution_changes(cluster), *(changes or [])]
    place = out.expanduser().absolute()
    choice = choose(method, every, on=on, policy=policy, config=config, library=library, quick=quick, out=place)
    with choice.folder():
        if choice.world:
            typer.echo(f"on {choice.world}, the default; --on WORLD takes another", err=True)
        run = choice.run()
        if show:
            refuse_unused_models(run)
            check(run)
            typer.echo(to_toml(run), nl=False)
            return
        directory = start(run, out.expanduser() if choice.directory is None else place)
    typer.echo(f"report: {out / directory.path.name / directory.report.name}")
