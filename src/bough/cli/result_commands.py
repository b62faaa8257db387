"""The commands that show what a run has done."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.completion import complete_run
from bough.cli.failure import explained
from bough.config.config import ConfigError

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
def compare_methods(
    targets: Annotated[
        list[str],
        typer.Argument(help="Methods, and fields to change; or run directories, folders of them, or of a comparison."),
    ],
    on: Annotated[list[str] | None, typer.Option(help="A world, may be repeated; as of `bough train` if none.")] = None,
    policy: Annotated[str | None, typer.Option(help="A policy for all runs, as of `bough train`.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds of each method on each world; 5 if not given.")] = None,
    budget: Annotated[
        str,
        typer.Option(help="What is equal: tokens, actions or seconds; with an amount runs end there: tokens=200000"),
    ] = "tokens",
    measure: Annotated[str | None, typer.Option(help="success or reward; rewards where they are graded.")] = None,
    against: Annotated[
        str | None, typer.Option(help="The method that the others are held against; all pairs if not given.")
    ] = None,
    detect: Annotated[
        float | None, typer.Option(help="A difference, such as 0.05; notes have how many seeds would show it.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; one a core, one with a GPU, if not given.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs and of the result; runs/compare_WORLD for methods.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="A Parquet file with each task of each evaluation.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed runs again.")] = False,
) -> None:
    """Compare methods at an equal budget: intervals over seeds and tasks, corrected differences, cost.

    Runs that are there are read; a stopped comparison goes on. The viewer shows the result.

    bough compare grpo gigpo 'dapo(high=0.3)' --on sokoban --on frozenlake --budget tokens=200000

    bough compare runs/compare_sokoban_frozenlake --seeds 10

    bough compare runs/a runs/b --against a --measure reward
    """
    from dataclasses import replace

    from bough.cli.compare import compare_targets, read_budget, split_changes

    places, changes = split_changes(targets)
    reading = replace(read_budget(budget), measure=measure, against=against, detect=detect)  # pyright: ignore
    found = compare_targets(
        places,
        changes,
        on=on or (),
        policy=policy,
        seeds=seeds,
        reading=reading,
        jobs=jobs,
        out=out,
        parquet=parquet,
        retry=retry,
        tell=lambda line: typer.echo(line, err=True),
    )
    typer.echo(found.text)


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
    export: Annotated[Path | None, typer.Option(help="Write the pages to this folder, and serve nothing.")] = None,
    trees: Annotated[
        int | None,
        typer.Option(min=0, help="With --export: most trees of a step; by default all of a small run, else 4 a step."),
    ] = None,
) -> None:
    """Show runs in a browser: curves, trees, episodes, health; live while they train.

    bough view runs/a --export pages
    """
    from bough.cli.view import export_runs, view_runs

    places = runs or [Path("runs")]
    if export is not None:
        export_runs(places, export, trees=trees, tell=typer.echo)
        typer.echo(f"open {export / 'index.html'}")
        return
    if trees is not None:
        raise ConfigError("got --trees without --export; need both: the viewer shows all trees")
    view_runs(places, host=host, port=port, token=token, branches=branches, ready=lambda url: typer.echo(f"open {url}"))


RESULT_COMMANDS = {
    "compare": compare_methods,
    "measure": measure_data,
    "rewards": show_rewards,
    "report": show_report,
    "show": show_settings,
    "view": view_in_browser,
}
"""The commands of this file by name."""
