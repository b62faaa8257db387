"""Trackio: a local dashboard, or a Space of the Hugging Face hub."""

import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

from bough.loggers.logger import EndState, LoggedRun, LogWriter, require_package
from bough.piece import NotEmpty, piece


@piece
class Trackio:
    """A run in trackio (extra `trackio`): `trackio show --project bough`.

    Its name has a random end, as trackio finds a run by its name. A resumed run goes on as the same one; a step that
    it has already keeps its values. Local data are in the folder of `TRACKIO_DIR`.

    Attributes:
        project: The project.
        space: A Space of the hub, "owner/name", which shows the run; "" for this machine alone.
    """

    project: Annotated[str, NotEmpty()] = "bough"
    space: str = ""

    def check_packages(self) -> None:
        """See `NeedsPackages`."""
        require_package(self, "trackio", "trackio")

    def start(self, run: LoggedRun) -> LogWriter:
        """See `Logger`."""
        return _Run(self, run)


class _Run(LogWriter):
    def __init__(self, settings: Trackio, run: LoggedRun) -> None:
        super().__init__(run)
        self.id = run.id or f"{run.name}-{secrets.token_hex(3)}"
        self._run: Any = import_module("trackio").init(
            project=settings.project,
            name=self.id,
            space_id=settings.space or None,
            config=dict(run.settings),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        if run.id:
            # Its sender stores rows a moment later, so the rows of a killed process may be missing there.
            self.last_step = min(run.last_step, self._run._next_step - 1)
        self.place = f"project {settings.project!r}, run {self.id}"

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the row of a step."""
        self._run.log(dict(values), step=step)

    def end(self, state: EndState) -> None:
        """Close the run; trackio has no states."""
        del state
        self._run.finish()
