"""Arguments and options that several commands have."""

from typing import Annotated

import typer

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
