"""The commands. What a command needs is imported when it runs: `bough --help` loads no torch."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from bough.cli.failure import explained

app = typer.Typer(
    name="bough",
    help="Train language-model agents by policy optimization over trajectory trees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Changes = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation at run time
    typer.Argument(help="Fields to change: steps=50 optimizer.learning_rate=3e-4 credit='Grpo(std=none)'"),
]


@app.command()
@explained
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (see `bough list`), or path/to/file.py:function")],
    changes: Changes = None,
    out: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
) -> None:
    """Train an agent by a recipe; ends with the path of a report."""
    from bough.cli.recipe import find
    from bough.train import override, start

    directory = start(override(find(recipe)(), changes or []), out)
    typer.echo(f"report: {directory.report}")


@app.command()
@explained
def resume(directory: Annotated[Path, typer.Argument(help="The run directory to go on with.")]) -> None:
    """Go on with a run that was stopped, exactly where it was."""
    from bough.train import resume as go_on

    typer.echo(f"report: {go_on(directory).report}")


@app.command("eval")
@explained
def evaluate(
    directory: Annotated[Path, typer.Argument(help="A run directory.")],
    changes: Changes = None,
    step: Annotated[Optional[int], typer.Option(help="Checkpoint to load; the newest if not given.")] = None,  # noqa: UP045
) -> None:
    """Measure a trained agent on held-out tasks: heldout.tasks.count=500 heldout.temperature=0 ..."""
    from bough.evaluate import evaluate as measure
    from bough.evaluate import sentence

    typer.echo(sentence(measure(directory, step=step, changes=changes or [])))


@app.command("list")
@explained
def list_pieces(
    name: Annotated[Optional[str], typer.Argument(help="A room, a piece or a recipe to show.")] = None,  # noqa: UP045
) -> None:
    """Recipes and pieces, each with what it does; with a name, one room, or all about one piece."""
    from bough.cli.catalogue import ROOMS, show_all, show_one, show_room

    typer.echo(show_all() if name is None else show_room(name) if name in ROOMS else show_one(name))


@app.command()
@explained
def doctor() -> None:
    """Check this machine: versions, devices, extras, disk, and a real episode."""
    from bough.cli.doctor import examine

    findings = examine()
    for finding in findings:
        typer.echo(f"{'ok  ' if finding.good else 'BAD '} {finding.about}: {finding.text}")
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)
