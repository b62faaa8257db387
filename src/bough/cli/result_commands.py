"""The commands that show what a run has done."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.completion import complete_run
from bough.cli.failure import explained

RUN = typer.Argument(help="The run directory.", autocompletion=complete_run)


@explained
def measure_data(
    directory: Annotated[Path, typer.Argument(help="The run directory whose trees are measured.")],
    trees: Annotated[Path | None, typer.Option(help="Other trees: a file or a folder.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="The reference of the coverage: a run directory, or trees.")
    ] = None,
    random: Annotated[float | None, typer.Option(help="Mean return of random actions; played if not given.")] = None,
    best: Annotated[
        float | None, typer.Option(help="Mean return of the best policy; the oracle's if not given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The JSON file to write.")] = None,
) -> None:
    """Measure a run's trees as a data set: trajectory quality and state-action coverage.

    bough measure runs/a --reference runs/online

    bough measure runs/a --trees found/trees --best 0.97
    """
    from bough.evaluate.run_measures import measure_run, sentences
    from bough.store import check_output, write_json

    if out is not None:
        check_output(out)
    found = measure_run(directory, trees=trees, reference=reference, random=random, best=best)
    typer.echo("\n".join(sentences(found)))
    if out is not None:
        write_json(out, found.record())


@explained
def show_settings(directory: Annotated[Path, RUN]) -> None:
    """Print all settings of a run as TOML, of which `bough train --config` makes the same run.

    bough show runs/a > run.toml
    """
    from bough.config.write_toml import to_toml
    from bough.store import RunDirectory
    from bough.train import load_run

    with RunDirectory.open(directory).in_its_folder() as there:
        typer.echo(to_toml(load_run(there)), nl=False)


@explained
def show_rewards(directory: Annotated[Path, RUN]) -> None:
    """Show the reward channels of a run: their means, spread and pair accuracy.

    bough rewards runs/a
    """
    from bough.store import RunDirectory
    from bough.train.result import Result

    typer.echo(Result(directory=RunDirectory.open(directory).path).reward_table())


@explained
def show_report(directory: Annotated[Path, RUN]) -> None:
    """Write the report of a run that trains or was killed, from what is on disk; prints the result so far.

    bough report runs/a
    """
    from bough.store import RunDirectory
    from bough.train.result import Result

    result = Result(directory=RunDirectory.open(directory).path)
    typer.echo(f"{result}\nreport: {result.report.path}")


@explained
def view_in_browser(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run directories, or folders of them; runs/ if none is given.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8800,
    token: Annotated[
        str | None, typer.Option(help="What a visitor has to know; made where other machines reach the address.")
    ] = None,
    branches: Annotated[Path, typer.Option(help="The folder of new branches.")] = Path("branches"),
) -> None:
    """Show runs in a browser: curves, trees, episodes, health; live while they train."""
    from bough.cli.view import view_runs

    places = runs or [Path("runs")]
    view_runs(places, host=host, port=port, token=token, branches=branches, ready=lambda url: typer.echo(f"open {url}"))
