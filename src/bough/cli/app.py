"""The commands. Each command imports its needs when it runs: `bough --help` loads no torch."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.chat_command import chat_with_agent
from bough.cli.data_commands import export_trees, train_reward_model
from bough.cli.eval_command import evaluate
from bough.cli.failure import explained
from bough.cli.list_command import list_pieces
from bough.cli.options import Accept, Changes, CheckName, On, Step
from bough.cli.result_commands import RESULT_COMMANDS
from bough.cli.train_command import train
from bough.version import __version__

app = typer.Typer(
    name="bough",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bough {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train language-model agents by policy optimization over trajectory trees."""


app.command("train")(train)


@app.command()
@explained
def resume(
    directory: Annotated[Path, typer.Argument(help="The directory of the stopped run.")],
    changes: Changes = None,
    accept_changes: Accept = False,
) -> None:
    """Continue a stopped run exactly where it stopped; steps=200 health.dead_batches=50 ... may change."""
    from bough.train import resume as go_on

    typer.echo(f"report: {go_on(directory, changes or [], accept_changes=accept_changes).report}")


app.command("eval")(evaluate)


@app.command("search")
@explained
def search_tasks(
    target: Annotated[str, typer.Argument(help="A run directory, or a method whose engine is OpenAi(...).")],
    explorer: Annotated[
        str, typer.Argument(help="The search: 'mcts(width=4)', 'BestOf(n=16)'; see `bough list search`")
    ],
    changes: Changes = None,
    on: On = None,
    step: Step = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the trees; a stopped search continues there.")] = None,
    accept_changes: Accept = False,
) -> None:
    """Solve held-out tasks by search: limits.tree_tokens=2000 evaluation.tasks.count=100 ..."""
    from bough.cli.find import run_or_directory
    from bough.evaluate import search, summary
    from bough.view import counter

    run_or_path, edits = run_or_directory(target, on), [f"explorer={explorer}", *(changes or [])]
    with counter(f"{explorer} on {target}") as tell:
        found = search(run_or_path, edits, step=step, out=out, accept_changes=accept_changes, on_progress=tell)
    typer.echo(summary(found))
    if out is not None:
        typer.echo(f"trees: {out / 'trees'}")


app.command("export")(export_trees)
for command_name, command in RESULT_COMMANDS.items():
    app.command(command_name)(command)


app.command("train-reward")(train_reward_model)


@app.command("serve")
@explained
def serve_policy(
    target: Annotated[
        str, typer.Argument(help="A run directory; or a model: a folder, a GGUF file, a hub id, package:NAME, smollm2.")
    ],
    host: Annotated[str, typer.Option(help="The address; any but loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    key: Annotated[
        str | None,
        typer.Option(help="The key of the clients; the environment variable BOUGH_SERVE_KEY if not given."),
    ] = None,
    step: Step = None,
    seat: Annotated[str, typer.Option(help="A seat with weights of its own; the run's policy if not given.")] = "",
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name of the model in requests; may be repeated; the run's or folder's if none."),
    ] = None,
    max_body_mib: Annotated[float, typer.Option(help="Largest body of a request, in MiB.")] = 4,
) -> None:
    """Serve a trained policy or a model over OpenAI's and Anthropic's APIs, until Ctrl-C or SIGTERM.

    Running answers end first.
    """
    from bough.cli.serve import serve_policy as serve
    from bough.policy.locate import target_path

    def ready(url: str, model: str) -> None:
        typer.echo(f"serving {model} at {url}")

    serve(
        target_path(target),
        host=host,
        port=port,
        key=key,
        step=step,
        ready=ready,
        seat=seat,
        names=name or (),
        max_body_mib=max_body_mib,
    )


app.command("chat")(chat_with_agent)


@app.command("check-env")
@explained
def check_environment(
    name: Annotated[
        str, typer.Argument(help="A world, 'FrozenLake(slip=0.1)', path/to/file.py:world or 'path/to/file.py:Env(...)'")
    ],
    tasks: Annotated[int, typer.Option(help="Tasks of each split that the oracle solves.")] = 20,
    episodes: Annotated[int, typer.Option(help="Episodes in a row for memory and open files.")] = 100,
    walks: Annotated[int, typer.Option(help="Random episodes that are compared and stepped twice.")] = 12,
    steps: Annotated[int, typer.Option(help="Maximum number of steps of an episode.")] = 20,
    seconds: Annotated[float, typer.Option(help="Each check begins no new item after this time.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of tasks and actions.")] = 0,
    only: Annotated[list[CheckName] | None, typer.Option(help="A check to run; may be repeated; all if none.")] = None,
    out: Annotated[Path | None, typer.Option(help="The JSON file to write.")] = None,
) -> None:
    """Check an environment: determinism, branching, keys, oracle, splits, garbage, speed, leaks.

    Exits with 1 when a check fails.

    bough check-env shop

    bough check-env mine.py:MyEnv --episodes 1000 --out report.json
    """
    from bough.cli.check_env import run_checks
    from bough.evaluate import CheckSizes

    sizes = CheckSizes(tasks=tasks, episodes=episodes, walks=walks, steps=steps, seconds=seconds, seed=seed)
    run_checks(name, sizes, [each.value for each in only or []], out)


@app.command("plan")
@explained
def plan_cluster(
    run: Annotated[
        str, typer.Argument(help="A run directory, or the name of one in runs/: the measured distributions.")
    ],
    cluster: Annotated[Path, typer.Option(help="The TOML file of the cluster.")],
    model: Annotated[
        str | None,
        typer.Option(help="A config.json of Hugging Face, its folder, or a hub id; the run's model if not given."),
    ] = None,
    devices: Annotated[
        list[int] | None, typer.Option(help="A number of devices; may be repeated; 1, 8, 64, 512 if none.")
    ] = None,
    calibrate: Annotated[
        str | None, typer.Option(help="A run on one such device: the shares of the peak rates that it reaches.")
    ] = None,
    batches: Annotated[int, typer.Option(help="Simulated batches for each number of devices.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The JSON file to write.")] = None,
) -> None:
    """Forecast memory, tokens/s, the bottleneck and the cost on 1 to 512 devices, by simulation.

    bough plan runs/a --cluster h100.toml --model Qwen/Qwen3-4B --devices 8 --devices 64 --out forecast.json
    """
    from bough.cli.plan import print_plan
    from bough.policy.locate import target_path

    size = None if model is None else target_path(model)
    print_plan(run, cluster, size, devices=devices or [], batches=batches, seed=seed, out=out, calibrate=calibrate)


app.command("list")(list_pieces)


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
