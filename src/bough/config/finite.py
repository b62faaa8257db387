"""Checks that the settings of a run are finite numbers."""

from bough.config.config import ConfigError
from bough.finite import refused_numbers


def check_finite(piece: object, where: str = "") -> None:
    """Refuse nan in the fields of a piece and of its nested pieces, and inf in fields without `INFINITE`.

    Raises:
        ConfigError: names the first such field.
    """
    for place, value in refused_numbers(piece, where):
        raise ConfigError(f"{place}: got {value}; need a finite number")
