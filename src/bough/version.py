"""The version of the package, its name on the package index, and its extras."""

from importlib.util import find_spec

__version__ = "0.1.0"
DISTRIBUTION = "bough-rl"
"""The name to install; `bough` on the package index is another project."""


def install(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def is_installed(module: str) -> bool:
    """Whether a module can be imported; it is not, though the packages around it are."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
