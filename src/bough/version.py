"""The version of the package, and its name on the package index."""

__version__ = "0.1.0"
DISTRIBUTION = "bough-rl"
"""The name to install; `bough` on the package index is another project."""


def install(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
