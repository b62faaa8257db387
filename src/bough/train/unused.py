"""Settings of a run that none of its pieces uses."""

from collections.abc import Iterator

from bough.config.config import ConfigError
from bough.train.resolve import run_pieces
from bough.train.run import Run
from bough.tree.needs import Appraised, Need, Role, gives_of, names_of


def refuse_unused_models(run: Run) -> None:
    """Refuse a model of a role that no piece asks: the piece that should ask it has another role, such as the policy's.

    Raises:
        ConfigError: has the role, and the fields of the pieces that ask models.
    """
    pieces = list(run_pieces(run))
    asked = names_of(frozenset[Need]().union(*(piece.needs for piece in pieces)), Role)
    for name in run.models:
        if name in asked:
            continue
        shown = [
            f"{piece.place.replace('[', '.').replace(']', '')}.role={role!r}"
            for piece in pieces
            if isinstance(role := getattr(piece.value, "role", None), str)
        ]
        remedy = f"set role={name!r} in one of {', '.join(shown)}" if shown else "add one, such as an appraiser"
        raise ConfigError(
            f"models.{name}: got a model for the role {name!r}, which no piece asks; need a piece with this role: "
            f"{remedy}, or an argument of the method; or remove the model"
        )


def unread_columns(run: Run) -> Iterator[str]:
    """A line for each appraiser whose columns no other piece reads."""
    read = names_of(frozenset[Need]().union(*(piece.needs for piece in run_pieces(run))), Appraised)
    for number, appraiser in enumerate(run.world.appraisers):
        columns = names_of(gives_of(appraiser), Appraised)
        if columns and not set(columns) & set(read):
            yield (
                f"appraisers.{number}: no piece reads the column {columns[0]!r}; it is measured and pays nothing. To "
                f"pay it add rewards=[..., Judged(column={columns[0]})]"
            )
