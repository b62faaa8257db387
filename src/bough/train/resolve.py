"""Compares what the pieces of a run need with what they give."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import cast

from bough.config.config import ConfigError
from bough.config.fields import leaf_fields
from bough.env import State
from bough.env.env import env_gives
from bough.needs import (
    OF_EVERY_RUN,
    STATE_KEYS,
    Channel,
    Need,
    NeedsError,
    Piece,
    TaskField,
    conflicts_of,
    gives_of,
    names_of,
    pieces,
    removed_by,
)
from bough.train.run import Run
from bough.tree import Task


def resolve(run: Run) -> None:
    """Compare the needs of all pieces, at any depth, with what the run gives.

    Keys of states, fields of tasks and channels of rewards are known later: see `check_state`, `check_task_fields` and
    `check_channels`.

    Raises:
        ConfigError: names the piece's field, what it needs, what the run has, and what to change.
    """
    try:
        every = [*run_pieces(run)]
        given, removed = _given(run), _removed(every)
        for piece in every:
            for need in _sorted(piece.needs):
                if need in removed:
                    raise _unmet(run, piece, removed[need])
                if need not in given and need != STATE_KEYS and not isinstance(need, Channel | TaskField):
                    raise _unmet(run, piece, need)
            for need in _sorted(conflicts_of(piece.value)):
                if need in given:
                    raise ConfigError(
                        f"{_title(piece)}: does not fit {need.text}; got {_source(run, need)}; {need.remedy}"
                    )
    except NeedsError as error:
        raise ConfigError(str(error)) from error


def check_state(run: Run, state: State) -> None:
    """Refuse pieces that compare states in an environment whose states have no keys.

    Args:
        run: The run.
        state: The first state.

    Raises:
        ConfigError: when the first state has no key.
    """
    for piece in run_pieces(run):
        if STATE_KEYS in piece.needs and not state.key:
            raise _unmet(run, piece, STATE_KEYS)


def check_task_fields(run: Run, tasks: Sequence[Task]) -> None:
    """Refuse pieces that read a field which no task has.

    Args:
        run: The run.
        tasks: The training tasks.

    Raises:
        ConfigError: when a field is in the data of no task; has the fields that there are.
    """
    known = {name for task in tasks for name in task.data}
    for piece in run_pieces(run):
        for need in _sorted(piece.needs):
            if isinstance(need, TaskField) and need.name not in known:
                raise ConfigError(
                    f"{_title(piece)}: needs {need.text}; got tasks with the fields {sorted(known)}; {need.remedy}"
                )


def check_channels(run: Run, channels: frozenset[str]) -> None:
    """Refuse pieces that need a channel which no reward of the run pays.

    Args:
        run: The run.
        channels: Of the first rewarded tree.

    Raises:
        ConfigError: when a channel is missing.
    """
    for piece in run_pieces(run):
        for need in _sorted(piece.needs):
            if isinstance(need, Channel) and need.name not in channels:
                raise _unmet(run, piece, need)


def run_pieces(run: Run) -> Iterator[Piece]:
    """Every piece of a run, at the place that the user can set."""
    for name, path in leaf_fields(Run).items():
        yield from pieces(_at(run, path), name)


def _given(run: Run) -> frozenset[Need]:
    """What the run gives: its groups of settings, the environment, the loss, and the pieces in its other fields."""
    paths = leaf_fields(Run).values()
    groups = [_at(run, path) for path in dict.fromkeys(path[:-1] for path in paths)]
    found = OF_EVERY_RUN | env_gives(run.world.env) | gives_of(run.loss)
    for value in (*groups, *(_at(run, path) for path in paths if path[-1] not in APART)):
        found = found.union(*map(gives_of, _each(value)))
    return found


def _removed(every: Iterable[Piece]) -> dict[Need, Need]:
    """What a run with these pieces lacks because of one of them, with this piece's remedy."""
    return {need: need for piece in every for need in removed_by(piece.value)}


APART = ("env", "objective", "regularizers")
"""Fields whose gives are not those of their values one by one: an environment's, and those of the sum of the losses."""


def _unmet(run: Run, piece: Piece, need: Need) -> ConfigError:
    return ConfigError(f"{_title(piece)}: needs {need.text}; got {_source(run, need)}; {need.remedy}")


def _title(piece: Piece) -> str:
    return f"{piece.place}={type(piece.value).__name__}"


def _source(run: Run, need: Need) -> str:
    """The fields that can give a need, with their values, and what the values give of this kind."""
    found = {source: _at(run, _path(source)) for source in need.sources}
    shown = [f"{source}={_text(value)}" for source, value in found.items() if value or len(found) == 1]
    values = [each for value in found.values() for each in _each(value)]
    names = names_of(frozenset[Need]().union(*map(gives_of, values)), type(need)) if need.name else []
    gives = f", which gives {', '.join(map(repr, names))}" if names else ""
    return (" with ".join(shown) or "no piece that gives it") + gives


def _text(value: object) -> str:
    """The class of a piece, a plain value as it is."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, _each(cast('object', value))))})"
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{name}: {_text(each)}" for name, each in items) + "}"
    return repr(value) if isinstance(value, int | str | None) else type(value).__name__


def _path(field: str) -> tuple[str, ...]:
    (name, *inner), known = field.split("."), leaf_fields(Run)
    if name not in known:
        raise NeedsError(f"Need.sources: got {field!r}; need fields of a run, such as 'parser'")
    return (*known[name], *inner)


def _at(run: Run, path: Sequence[str]) -> object:
    return reduce(getattr, path, cast("object", run))


def _each(value: object) -> tuple[object, ...]:
    """The pieces of a field that holds several, or the one piece of another field."""
    return tuple(cast("Sequence[object]", value)) if isinstance(value, tuple | list) else (value,)


def _sorted(needs: frozenset[Need]) -> list[Need]:
    return sorted(needs, key=lambda need: need.text)
