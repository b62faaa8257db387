"""The settings of a configuration by their paths."""

from collections.abc import Iterator, Mapping
from typing import cast

from bough.config.config import PIECE, dump


def flat_settings(value: object) -> dict[str, bool | int | float | str | None]:
    """The fields of a configuration by path, `{"world.rewards[0].piece": "EnvReward"}`, in order of the paths."""
    return dict(sorted(_flat("", dump(value))))


def _flat(path: str, value: object) -> Iterator[tuple[str, bool | int | float | str | None]]:
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            name = str(each).replace(":", ".").rpartition(".")[2] if key == PIECE else each
            yield from _flat(f"{path}.{key}" if path else key, name)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        if not items:
            yield path, "[]"
        for place, each in enumerate(items):
            yield from _flat(f"{path}[{place}]", each)
    else:
        yield path, cast("bool | int | float | str | None", value)
