"""The command `bough eval`."""

from contextlib import nullcontext
from typing import Annotated

import typer

from bough.cli.completion import complete_policy, complete_run
from bough.cli.failure import explained
from bough.cli.options import Accept, Changes, On, Step


@explained
def evaluate(
    target: Annotated[
        str | None, typer.Argument(help="A run directory; none with --on.", autocompletion=complete_run)
    ] = None,
    changes: Changes = None,
    on: On = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="The agent in place of the run's: 'OpenAi(model=..., base_url=...)', a model",
            autocompletion=complete_policy,
        ),
    ] = None,
    step: Step = None,
    shots: Annotated[
        int, typer.Option(help="Held-out tasks whose demonstrations are imitated first; the others are measured.")
    ] = 0,
    seeds: Annotated[int, typer.Option(help="Number of seeds; with several, their mean and its interval.")] = 1,
    accept_changes: Accept = False,
) -> None:
    """Measure an agent on held-out tasks: evaluation.tasks.count=500 evaluation.temperature=0 ...

    bough eval runs/a

    bough eval runs/a --seeds 5

    bough eval runs/a --policy 'OpenAi(model=m, base_url="http://localhost:8000/v1")'

    bough eval --on shop --policy 'OpenAi(model=m, base_url="http://localhost:8000/v1")' evaluation.tasks.count=50
    """
    from bough.cli.find import evaluated, split_target
    from bough.evaluate import evaluate as measure
    from bough.evaluate import sentence
    from bough.view import counter

    place, edits = split_target(target, changes or [])
    found, preset = evaluated(place, on, policy)
    with nullcontext() if preset is None else counter("held-out tasks") as tell:
        result = measure(
            found,
            policy=preset,
            step=step,
            shots=shots,
            seeds=seeds,
            changes=edits,
            accept_changes=accept_changes,
            on_progress=tell,
        )
    typer.echo(sentence(result))
