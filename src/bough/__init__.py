"""Bough trains language-model agents by policy optimization over trajectory trees.

    import bough

    result = bough.train("grpo_frozenlake", ["steps=20"])

Other modules are imported on first use; see `bough.api` for the functions.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bough.lazy import lazy_names
from bough.version import __version__

if TYPE_CHECKING:
    from bough.api import Result, chat, check_env, compare, evaluate, load, resume, search, train, train_reward
else:
    callable_packages = ("compare", "evaluate", "search", "train")
    _from_api = lazy_names(__name__, {"bough.api": ("Result", "chat", "check_env", "load", "resume", "train_reward")})

    def __getattr__(name: str) -> object:
        # See `bough.lazy.make_callable`.
        return import_module(f"bough.{name}") if name in callable_packages else _from_api(name)

    def __dir__() -> list[str]:
        return [*__all__]


__all__ = [
    "Result",
    "__version__",
    "chat",
    "check_env",
    "compare",
    "evaluate",
    "load",
    "resume",
    "search",
    "train",
    "train_reward",
]
