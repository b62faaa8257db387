"""The commands that make data and reward models of trees."""

from pathlib import Path
from typing import Annotated

import typer

from bough.cli.completion import complete_run
from bough.cli.failure import explained
from bough.cli.options import Changes, ExportKind, RewardLabels


@explained
def export_trees(
    directory: Annotated[
        Path, typer.Argument(help="The run directory whose trees are exported.", autocompletion=complete_run)
    ],
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")],
    changes: Changes = None,
    what: Annotated[ExportKind, typer.Option(help="The kind of a line.")] = ExportKind.PAIRS,
    messages: Annotated[
        bool, typer.Option(help="Lists of messages instead of text with chat template tokens.")
    ] = False,
    min_edit_distance: Annotated[int, typer.Option(help="In characters, between the sides of a pair.")] = 0,
    max_overlap: Annotated[float, typer.Option(help="ROUGE-L of words, between the sides of a pair.")] = 1.0,
    trees: Annotated[
        Path | None, typer.Option(help="Other trees: a file, a folder, or JSONL of conversations.")
    ] = None,
    seat: Annotated[str, typer.Option(help="A seat with weights of its own; the policy's seats if not given.")] = "",
) -> None:
    """Export trees as JSONL: pairs, examples, values, steps, revisions for TRL; conversations as of OpenAI.

    Credit, filters and pairs are the run's, or as changed:

    bough export runs/a --out pairs.jsonl objective='Dpo(pairs=Pairs(unit=turn))' credit='Searched()'

    bough export runs/a --out good.jsonl --what examples --messages credit='Filtered(max_paths=2)'

    bough export runs/a --out values.jsonl --what values credit='Searched(head=value)' --trees found/trees

    bough export runs/a --out back.jsonl --what revisions demonstrations.revise='Revise(gap=.5)'

    bough export runs/a --out chats.jsonl --what conversations
    """
    from bough.export import PairFilter, export

    apart = PairFilter(edits=min_edit_distance, overlap=max_overlap)
    found = export(
        directory, changes or [], what=what.value, messages=messages, apart=apart, trees=trees, seat=seat, out=out
    )
    for reason, count in found.left_out.items():
        typer.echo(f"{count} left out: {reason}")
    typer.echo(f"{what.value}: {len(found.rows)} in {out}")


@explained
def train_reward_model(
    targets: Annotated[
        list[str],
        typer.Argument(help="Run directories, folders of searches, folders or files of trees; and fields to change."),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the reward model.")],
    labels: Annotated[
        RewardLabels, typer.Option(help="What is learned; `bough list RewardModel` has all fields.")
    ] = RewardLabels.SOFT,
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

    places, settings = split_fields([f"labels={labels.value}", *targets])
    typer.echo(str(train_reward(places, settings, out=out, run=run, seat=seat, device=device)))
