"""Finding recipes: ours by name, a user's by file."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from inspect import isfunction
from pathlib import Path
from types import ModuleType

from bough.env.origin import describe, place
from bough.train import ConfigError, Run
from bough.train.naming import import_file
from bough.view import unknown

RECIPES = Path(__file__).parent.parent / "recipes"


def names() -> Iterator[str]:
    """The recipes that come with Bough."""
    return (module.name for module in pkgutil.iter_modules([str(RECIPES)]))


def find(recipe: str) -> Callable[[], Run]:
    """The function that makes a run.

    Args:
        recipe: The name of one of ours, or `path/to/file.py:function` (`run` when there is no function).

    Raises:
        ConfigError: when there is none.
    """
    path, _, function = recipe.partition(":")
    if path.endswith(".py"):
        return _function(import_file(path, f"recipe {recipe!r}"), function or "run", recipe)
    if path not in set(names()):
        raise ConfigError(
            f"recipe: {unknown(path, names(), otherwise='there is no recipe like it')}; `bough list` shows them, "
            "path/to/file.py:function runs yours"
        )
    return _function(importlib.import_module(f"bough.recipes.{path}"), function or "run", recipe)


def run_or_directory(target: str) -> Run | Path:
    """The run directory that `target` names, or the run of the recipe that it names.

    Raises:
        ConfigError: when it is neither a directory nor a recipe.
    """
    is_directory = Path(target).is_dir() or ("/" in target and ".py" not in target)
    return Path(target) if is_directory else find(target)()


def _function(module: ModuleType, name: str, recipe: str) -> Callable[[], Run]:
    found = getattr(module, name, None)
    if not callable(found):
        offered = [
            key for key, value in vars(module).items() if isfunction(value) and value.__module__ == module.__name__
        ]
        hint = unknown(name, offered) if offered else f"there is no function {name!r}, nor any other; need one"
        raise ConfigError(f"recipe {recipe!r}: {hint} in {module.__file__} that takes nothing and returns a Run")

    def make() -> Run:
        try:
            run = found()
        except Exception as error:
            if not place(error):
                raise
            raise ConfigError(f"recipe {recipe!r}: {name}() raised {describe(error)}") from error
        if not isinstance(run, Run):
            raise ConfigError(f"recipe {recipe!r}: {name}() returned {type(run).__name__}; need a bough.train.Run")
        return run

    return make
