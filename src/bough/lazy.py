"""Names that are imported on first use, so that settings load without PyTorch.

`from bough.lazy import Tensor, torch` imports no PyTorch; the first use of an attribute of `torch` does.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:

    class _Lazy(ModuleType):
        """A module that is imported when one of its attributes is first used."""

        def __getattr__(self, name: str) -> object:
            return getattr(import_module(self.__name__), name)

    class _TensorType(type):
        def __instancecheck__(cls, value: object) -> bool:
            return "torch" in sys.modules and isinstance(value, torch.Tensor)

    torch = _Lazy("torch")

    class Tensor(metaclass=_TensorType):
        """`torch.Tensor` for annotations and `isinstance`; has no instances of its own."""


def lazy_names(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package (PEP 562) that imports some of its names on first use.

    Args:
        package: The package's `__name__`.
        names: By module, the names that the package takes from it.
    """
    places = {name: module for module, several in names.items() for name in several}

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return get


class _CallablePackage(ModuleType):
    """A package that is also the function of its name in `bough.api`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        first, _, rest = (inspect.getdoc(self._function) or "").partition("\n")
        return f"{first}\n\n{self.__name__}{self.__signature__}\n{rest}\n\n{vars(self).get('__doc__') or ''}"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @property
    def _function(self) -> Callable[..., Any]:
        return getattr(import_module("bough.api"), self.__name__.rpartition(".")[2])


def make_callable(package: str) -> None:
    """Make a package callable as the function of the same name in `bough.api`; `package` is its `__name__`."""
    sys.modules[package].__class__ = _CallablePackage
