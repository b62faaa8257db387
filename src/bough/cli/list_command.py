"""The command `bough list`."""

from typing import Annotated

import typer

from bough.cli.completion import complete_listed
from bough.cli.failure import explained


@explained
def list_pieces(
    name: Annotated[
        str | None,
        typer.Argument(
            help="What to show: a group, a piece, a method, a world, a word of its line; or systems.",
            autocompletion=complete_listed,
        ),
    ] = None,
) -> None:
    """Groups of methods, worlds, recipes and pieces with their sizes; with a name one group, or one entry whole.

    bough list methods

    bough list gigpo

    bough list entropy
    """
    from bough.cli.functions import FUNCTIONS, entry_lines, own_entries
    from bough.config.installed import installed

    if name in FUNCTIONS and not (name == "worlds" and installed("bough.worlds")):
        # Read from files: everything else imports the pieces, which takes seconds.
        typer.echo("\n".join([FUNCTIONS[name], *entry_lines([*own_entries(name)])]))
        return
    from bough.cli.catalogue import ROOMS, show_one, show_room
    from bough.cli.overview import show_counts
    from bough.cli.systems import show_systems

    if name == "systems":
        typer.echo(show_systems())
    else:
        typer.echo(show_counts() if name is None else show_room(name) if name in ROOMS else show_one(name))
