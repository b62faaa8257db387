"""Settings of a run that none of its pieces uses, and data that its pieces miss."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from bough.config.config import ConfigError
from bough.needs import Appraised, Need, Role, gives_of, names_of
from bough.train.resolve import run_pieces
from bough.train.run import Run
from bough.tree import Task


@runtime_checkable
class HasRole(Protocol):
    """A piece with questions to the model of a role."""

    @property
    def role(self) -> str:
        """The role whose model answers."""
        ...


@runtime_checkable
class ReadsData(Protocol):
    """A piece that reads an optional field of the tasks' data; a needed one is `task_field`."""

    @property
    def data_field(self) -> str:
        """The field of `Task.data`."""
        ...


def needed_roles(run: Run) -> frozenset[str]:
    """The roles whose models the pieces of a run need."""
    return frozenset(names_of(frozenset[Need]().union(*(piece.needs for piece in run_pieces(run))), Role))


def refuse_unused_models(run: Run) -> None:
    """Refuse a model of a role that no piece has: the piece it is meant for has another one, such as the policy's.

    Raises:
        ConfigError: has the role, and the fields of the pieces that have a role.
    """
    pieces, needed = list(run_pieces(run)), needed_roles(run)
    for name in run.models:
        if name in needed:
            continue
        shown = [
            f"{piece.place.replace('[', '.').replace(']', '')}.role={piece.value.role!r}"
            for piece in pieces
            if isinstance(piece.value, HasRole)
        ]
        remedy = f"set role={name!r} in one of {', '.join(shown)}" if shown else "add one, such as an appraiser"
        raise ConfigError(
            f"models.{name}: got a model for the role {name!r}, which no piece has; need a piece with this role: "
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


def missing_fields(run: Run, tasks: Sequence[Task]) -> Iterator[str]:
    """A line for each piece that reads a field of the tasks' data which none of the tasks has."""
    for piece in run_pieces(run):
        if isinstance(piece.value, ReadsData) and not any(piece.value.data_field in task.data for task in tasks):
            field, known = piece.value.data_field, sorted(tasks[0].data) if tasks else []
            yield (
                f"{piece.place}: none of {len(tasks)} tasks has the field {field!r} in its data, which "
                f"{type(piece.value).__name__} reads; the first has {', '.join(known) or 'no data'}"
            )
