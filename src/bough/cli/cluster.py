"""Reads the part of a cluster file that a run needs: how it is executed."""

import json
import tomllib
from pathlib import Path
from typing import cast, get_type_hints

EXAMPLE = '[execution]\nworkers = 2\nworker_placement = "Ray()"\nranks = 2'


def execution_changes(path: Path | None) -> list[str]:
    """The changes of a run that the table `[execution]` of a TOML file makes: one a line, "workers=2".

    Args:
        path: The file; None makes no change.

    Raises:
        ConfigError: when the file is no TOML, or has no such table with values.
        OSError: when it cannot be read.
    """
    from bough.config.config import ConfigError

    if path is None:
        return []
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--cluster {path}: got no TOML ({error}); need a file such as\n{EXAMPLE}") from error
    found: object = tables.get("execution")
    if not isinstance(found, dict) or not found:
        raise ConfigError(f"--cluster {path}: got no table [execution] with values; need one such as\n{EXAMPLE}")
    fields = cast("dict[str, object]", found)
    for name, value in fields.items():
        _check(f"--cluster {path}: execution.{name}", name, value)
    return [
        f"execution.{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in fields.items()
    ]


NEEDS = {bool: "true or false", int: "a whole number", float: "a number"}


def _check(where: str, name: str, value: object) -> None:
    """Check that a value of the table has the type of its field; `override` reports unknown fields.

    Raises:
        ConfigError: when it has not.
    """
    from bough.config.config import ConfigError
    from bough.train import Execution

    if not isinstance(value, str | int | float | bool):
        raise ConfigError(
            f"{where}: got {value!r}; need a number, true, false or a text, in which pieces are written as on the "
            "command line"
        )
    kind = get_type_hints(Execution).get(name)
    fits = type(value) is kind or (kind is float and type(value) is int)
    if kind in NEEDS and not fits:
        raise ConfigError(f"{where}: got {json.dumps(value)}; need {NEEDS[kind]}; correct the file")
