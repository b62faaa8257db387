"""The package reasoning-gym: its import, and the answers that are safe for its scorers."""

import ast
import importlib
import importlib.util
import re
import sys
import threading
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bough.version import install

IMPORT = threading.Lock()

DRAWING = (
    "drawsvg",
    "matplotlib",
    "matplotlib.animation",
    "matplotlib.collections",
    "matplotlib.pyplot",
    "mpl_toolkits",
    "mpl_toolkits.mplot3d",
)
"""Modules for drawings that two of its dependencies import, and no task uses."""

LITERALS = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
"""Datasets whose scorers call `eval` on a wrong answer."""

NUMBERS = frozenset({"countdown", "puzzle24"})
"""Datasets whose scorers evaluate an answer as Python, where a right answer has numbers only."""

LONGEST = 10_000
"""Longest answer that is scored, in characters."""

LONGEST_FORMULA = 300
"""Longest formula that is scored, in characters."""


@lru_cache(maxsize=1)
def reasoning_gym() -> Any:
    """Returns the package, imported when first needed; without the modules for drawings where they are missing.

    Raises:
        ImportError: when it is not installed.
    """
    with IMPORT:
        missing = [name for name in DRAWING if name not in sys.modules and not _installed(name)]
        try:
            sys.modules.update({name: _NoDrawing(name) for name in missing})
            return importlib.import_module("reasoning_gym")
        except ImportError as error:
            raise ImportError(
                f"reasoning-gym is not installed: got no module {error.name!r}; need {install('reasoning')}, "
                "or, without its large dependencies, pip install --no-deps --requirement constraints/reasoning.txt",
                name=error.name,
            ) from error
        finally:
            for name in missing:
                sys.modules.pop(name, None)


def score(dataset: Any, name: str, answer: str, entry: Mapping[str, Any]) -> float:
    """Returns the score of an answer, 0 to 1: 0 for one that the scorer cannot read.

    Args:
        dataset: The dataset; its `score_answer` is called.
        name: Its name.
        answer: The answer.
        entry: The item of the dataset.
    """
    if len(answer) > LONGEST or (answer != entry["answer"] and not may_evaluate(name, answer)):
        return 0.0
    try:
        found = float(dataset.score_answer(answer, dict(entry)))
    except Exception:  # A scorer may raise anything on an answer that it does not expect.
        return 0.0
    return min(1.0, max(0.0, found)) if found == found else 0.0


def may_evaluate(name: str, answer: str) -> bool:
    """Whether an answer can be given to the scorer of a dataset: a scorer that evaluates it gets only formulas.

    Evaluated text can run any code. So it must be a literal, or a formula of numbers without powers.
    """
    if name in LITERALS:
        return _is_literal(answer)
    if name in NUMBERS:
        return len(answer) <= LONGEST_FORMULA and not re.search(r"[^\d+\-*/()\s]|\*\*|//|\d{10}", answer, re.ASCII)
    return True


class _NoDrawing(types.ModuleType):
    """A module in place of one for drawings."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
