"""The contract of a logger: settings that start a writer, which gets the row of each step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from bough.version import install, is_installed

EndState: TypeAlias = Literal["finished", "stopped", "failed"]
"""How a run ended: at its last step or with nothing left to learn, by an interrupt, or by an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """The run of a writer.

    Attributes:
        name: Of the run.
        folder: For files of the writer, inside the run's directory; it exists.
        settings: Every setting by its path, `{"world.schedule.steps": 100}`.
        id: `LogWriter.id` of the process before, when the run goes on; "" at first.
        last_step: The newest step that earlier processes wrote to this logger; -1 without one.
        resumed_at: The step from which the run goes on: later rows are computed again. -1 from the start.
    """

    name: str
    folder: Path
    settings: Mapping[str, bool | int | float | str]
    id: str = ""
    last_step: int = -1
    resumed_at: int = -1


class LogWriter(ABC):
    """Writes the rows of a run. One thread calls it, beside the run; only `log` is required.

    Attributes:
        run: The run.
        last_step: The newest step that its place has. Rows up to it are not written again; those after it are, from
            `metrics.jsonl` too, so that no step is missing. `LoggedRun.last_step` may be one step behind when the
            process before was killed, so a writer that can find out better does.
        id: Names the run at its place; `LoggedRun.id` of the next process.
        place: The URL or folder of the run, shown when it starts; "" for none.
    """

    id: str = ""
    place: str = ""

    def __init__(self, run: LoggedRun) -> None:
        self.run = run
        self.last_step = run.last_step

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the row of a step. Any error is reported once, and the row is tried again with later ones.

        Args:
            step: Counts the epochs of the warm-up and the steps after it, as `metrics.jsonl`. Ascending; the step of
                the last call may come again, with further values of its row.
            values: The numbers by name, as in `metrics.jsonl`; nan for every number that is not finite.
        """

    def end(self, state: EndState) -> None:  # noqa: B027 - a writer may have nothing to close
        """Flush, and close the run at its place."""


@runtime_checkable
class Logger(Protocol):
    """The settings of a logger."""

    def start(self, run: LoggedRun) -> LogWriter:
        """Open the run at its place, or go on with the one of `run.id`. Called in the thread of the writer."""
        ...


@runtime_checkable
class NeedsPackages(Protocol):
    """A logger, or other settings, that packages of an extra must be there for."""

    def check_packages(self) -> None:
        """Check what is needed, before the run starts.

        Raises:
            ImportError: without a package; names the extra.
            ValueError: when something else is missing, such as a key.
        """
        ...


def require_package(piece: object, module: str, extra: str) -> None:
    """Check that a module is installed, without importing it.

    Raises:
        ImportError: names the extra.
    """
    if not is_installed(module):
        raise ImportError(f"{type(piece).__name__}: got no package {module}; need the extra: {install(extra)}")
