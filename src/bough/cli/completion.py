"""Completion of names on the command line; imports no piece, and so no PyTorch."""

from pathlib import Path


def complete_method(begun: str) -> list[str]:
    """Methods, recipes and run directories whose name begins with a text."""
    return [*_functions(begun, "methods", "recipes"), *complete_run(begun)]


def complete_world(begun: str) -> list[str]:
    """Worlds, those of installed packages too."""
    return _functions(begun, "worlds")


def complete_policy(begun: str) -> list[str]:
    """Policy presets."""
    return _functions(begun, "policies")


def complete_listed(begun: str) -> list[str]:
    """What `bough list` shows whole, as far as it is found without an import, and the groups of functions."""
    from bough.cli.functions import FUNCTIONS

    return [*_functions(begun, *FUNCTIONS), *(each for each in (*FUNCTIONS, "systems") if each.startswith(begun))]


def complete_run(begun: str) -> list[str]:
    """Run directories whose path begins with a text: those in the folder that it names, or in `runs/`."""
    folder = Path(begun.rpartition("/")[0] if "/" in begun else "runs")
    found = sorted(str(each.parent) for each in folder.expanduser().glob("*/config.json"))
    return [each for each in found if each.startswith(begun)]


def _functions(begun: str, *rooms: str) -> list[str]:
    from bough.cli.functions import names

    return [name for name in names(*rooms) if name.startswith(begun)]
