"""The commands. Each command imports its needs when it runs: `bough --help` loads no torch."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.failure import explained
from bough.cli.list_command import list_pieces
from bough.cli.result_commands import measure_data, show_report, show_rewards, view_in_browser

app = typer.Typer(
    name="bough",
    help="Train language-model agents by policy optimization over trajectory trees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Changes = Annotated[
    list[str] | None,
    typer.Argument(help="Fields to change: steps=50 optimizer.learning_rate=3e-4 credit='Grpo(std=none)'"),
]

Accept = Annotated[
    bool,
    typer.Option("--accept-changes", help="Go on with files, data or tasks that changed since the run was made."),
]

On = Annotated[
    str | None,
    typer.Option(help="The world: frozenlake, 'sokoban(...)', or path/to/file.py:function; frozenlake if not given"),
]


@app.command()
@explained
def train(
    method: Annotated[
        str, typer.Argument(help="A method or recipe (see `bough list`), 'dapo(high=0.3)', or path/to/file.py:function")
    ],
    changes: Changes = None,
    on: On = None,
    policy: Annotated[
        str | None,
        typer.Option(help="A policy: smollm2, a folder of a model, a GGUF file, a hub id, or path/to/file.py:function"),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="A TOML file; its table [execution] sets where processes run.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs"),
    library: Annotated[str | None, typer.Option("--like", help="Begin with the defaults of trl or verl.")] = None,
) -> None:
    """Train an agent by a method on a world; ends with the path of a report."""
    from bough.cli.cluster import execution_changes
    from bough.cli.find import find_run, refuse_arguments
    from bough.config import override
    from bough.train import start
    from bough.train.like import like

    every, run = [*execution_changes(cluster), *(changes or [])], find_run(method, on, policy)
    refuse_arguments(method, every)
    directory = start(override(like(run, library), every), out)
    typer.echo(f"report: {directory.report}")


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


@app.command("eval")
@explained
def evaluate(
    target: Annotated[str | None, typer.Argument(help="A run directory; none with --on.")] = None,
    changes: Changes = None,
    on: On = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The agent in place of the run's: 'OpenAi(model=..., base_url=...)', a model"),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Checkpoint to load, `(checkpoint N)` in messages; the newest if not given.")
    ] = None,
    shots: Annotated[
        int, typer.Option(help="Held-out tasks whose demonstrations are imitated first; the others are measured.")
    ] = 0,
    accept_changes: Accept = False,
) -> None:
    """Measure an agent on held-out tasks: evaluation.tasks.count=500 evaluation.temperature=0 ...

    bough eval runs/a

    bough eval runs/a --policy 'OpenAi(model=m, base_url="http://localhost:8000/v1")'

    bough eval --on shop --policy 'OpenAi(model=m, base_url="http://localhost:8000/v1")' evaluation.tasks.count=50
    """
    from bough.cli.find import evaluated, split_target
    from bough.evaluate import evaluate as measure
    from bough.evaluate import sentence
    from bough.view import counter

    place, edits = split_target(target, changes or [])
    found, preset = evaluated(place, on, policy)
    if preset is None:
        typer.echo(sentence(measure(found, step=step, shots=shots, changes=edits, accept_changes=accept_changes)))
        return
    with counter("held-out tasks") as tell:
        result = measure(
            found, policy=preset, step=step, shots=shots, changes=edits, accept_changes=accept_changes, on_progress=tell
        )
    typer.echo(sentence(result))


@app.command("search")
@explained
def search_tasks(
    target: Annotated[str, typer.Argument(help="A run directory, or a method whose engine is OpenAi(...).")],
    explorer: Annotated[
        str, typer.Argument(help="The search: 'mcts(width=4)', 'BestOf(n=16)'; see `bough list search`")
    ],
    changes: Changes = None,
    on: On = None,
    step: Annotated[
        int | None, typer.Option(help="Checkpoint to load, `(checkpoint N)` in messages; the newest if not given.")
    ] = None,
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


@app.command("export")
@explained
def export_trees(
    directory: Annotated[Path, typer.Argument(help="The run directory whose trees are exported.")],
    out: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    changes: Changes = None,
    what: Annotated[str, typer.Option(help="pairs, examples, values, steps, revisions, or conversations.")] = "pairs",
    messages: Annotated[
        bool, typer.Option(help="Lists of messages instead of text with chat template tokens.")
    ] = False,
    edits: Annotated[int, typer.Option(help="Minimum edit distance in characters of the sides of a pair.")] = 0,
    overlap: Annotated[float, typer.Option(help="Maximum overlap (ROUGE-L of words) of the sides of a pair.")] = 1.0,
    trees: Annotated[
        Path | None, typer.Option(help="Other trees: a file, a folder, or JSONL of conversations.")
    ] = None,
    seat: Annotated[str, typer.Option(help="A seat with weights of its own; the policy's seats if not given.")] = "",
) -> None:
    """Export trees as JSONL: pairs, examples, values, steps, revisions for TRL; conversations as of OpenAI.

    Credit, filters and pairs are the run's, or as changed:

    bough export runs/a pairs.jsonl objective='Dpo(pairs=Pairs(unit=turn))' credit='Searched()'

    bough export runs/a good.jsonl --what examples --messages credit='Filtered(max_paths=2)'

    bough export runs/a values.jsonl --what values credit='Searched(head=value)' --trees found/trees

    bough export runs/a back.jsonl --what revisions demonstrations.revise='Revise(gap=.5)'

    bough export runs/a chats.jsonl --what conversations
    """
    from bough.export import PairFilter, export

    apart = PairFilter(edits=edits, overlap=overlap)
    found = export(directory, changes or [], what=what, messages=messages, apart=apart, trees=trees, seat=seat, out=out)
    for reason, count in found.left_out.items():
        typer.echo(f"{count} left out: {reason}")
    typer.echo(f"{what}: {len(found.rows)} in {out}")


app.command("measure")(measure_data)
app.command("rewards")(show_rewards)
app.command("report")(show_report)
app.command("view")(view_in_browser)


@app.command("train-reward")
@explained
def train_reward_model(
    targets: Annotated[
        list[str],
        typer.Argument(help="Run directories, folders of searches, folders or files of trees; and fields to change."),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the reward model.")],
    labels: Annotated[
        str, typer.Option(help="outcome, soft, hard or pairs; `bough list RewardModel` has all fields.")
    ] = "soft",
    run: Annotated[
        Path | None, typer.Option(help="The run whose policy sampled the trees; the first target that is a run.")
    ] = None,
    seat: Annotated[str, typer.Option(help="The seat whose turns are scored, in trees with several.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Train a learned reward on stored trees; prints its calibration on held-out tasks.

    bough train-reward runs/a --out prm

    bough train-reward runs/a found --labels pairs --out plv gap=0.2 estimate=value epochs=8

    bough train-reward found --run runs/a --labels outcome --out orm path=runs/a
    """
    from bough.cli.train_reward import split_fields
    from bough.train.train_reward import train_reward

    places, settings = split_fields([f"labels={labels}", *targets])
    typer.echo(str(train_reward(places, settings, out=out, run=run, seat=seat, device=device)))


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
    step: Annotated[
        int | None, typer.Option(help="Checkpoint to load, `(checkpoint N)` in messages; the newest if not given.")
    ] = None,
    seat: Annotated[str, typer.Option(help="A seat with weights of its own; the run's policy if not given.")] = "",
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name of the model in requests, may be repeated; the run's or folder's if none."),
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


@app.command("chat")
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
    split: Annotated[str | None, typer.Option(help="Split of the tasks: train, dev, test; the run's if none.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples; evaluation.seed if not given.")] = None,
    system: Annotated[str, typer.Option(help="System prompt of a chat with a model alone.")] = "",
    step: Annotated[
        int | None, typer.Option(help="Checkpoint to load, `(checkpoint N)` in messages; the newest if not given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the trees, which ends in .safetensors.")] = None,
) -> None:
    """Watch and steer an agent in its environment, or talk to a model; /help shows what a line can do.

    bough chat runs/a --task 3

    bough chat path/to/model --system 'Answer in one line.' temperature=0.7
    """
    from bough.cli.find import split_target
    from bough.cli.start_chat import start_chat

    place, edits = split_target(target, changes or [])
    start_chat(place, edits, on=on, policy=policy, task=task, split=split, seed=seed, system=system, step=step, out=out)


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
    only: Annotated[list[str] | None, typer.Option(help="A check to run, may be repeated; all if not given.")] = None,
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
    run_checks(name, sizes, only or [], out)


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
    devices: Annotated[str, typer.Option(help="Numbers of devices: 8,64; 1, 8, 64, 512 if not given.")] = "",
    calibrate: Annotated[
        str | None, typer.Option(help="A run on one such device: the shares of the peak rates that it reaches.")
    ] = None,
    batches: Annotated[int, typer.Option(help="Simulated batches for each number of devices.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the forecasts as JSON.")] = False,
) -> None:
    """Forecast memory, tokens/s, the bottleneck and the cost on 1 to 512 devices, by simulation.

    bough plan runs/a --cluster h100.toml --model Qwen/Qwen3-4B --devices 8,64,512
    """
    from bough.cli.plan import print_plan
    from bough.policy.locate import target_path

    size = None if model is None else target_path(model)
    print_plan(run, cluster, size, devices=devices, batches=batches, seed=seed, as_json=json, calibrate=calibrate)


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
