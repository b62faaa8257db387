"""MLflow: a tracking server, a database, or a folder of files."""

import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

from bough.loggers.logger import EndState, LoggedRun, LogWriter, require_package
from bough.piece import NotEmpty, piece

LAST_STEP = "bough.step"
"""The tag with the newest step of a run."""
STATES: Mapping[EndState, str] = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")
"""Characters that MLflow refuses in names."""
PARAMETERS, CHARACTERS = 100, 6000
"""Most parameters of one call, and most characters of one."""


@piece
class Mlflow:
    """A run in MLflow (extra `mlflow`). A resumed run goes on as the same run of MLflow.

    A step that it has already keeps its values. In names, characters that MLflow refuses are "_".

    Attributes:
        experiment: The experiment; made where it does not exist.
        tracking_uri: A server, "http://localhost:5000"; a database, "sqlite:///mlflow.db"; or a folder, "file:mlruns",
            which newer versions read with `MLFLOW_ALLOW_FILE_STORE=true` alone. "" for MLflow's own default, which
            `MLFLOW_TRACKING_URI` sets.
    """

    experiment: Annotated[str, NotEmpty()] = "bough"
    tracking_uri: str = ""

    def check_packages(self) -> None:
        """See `NeedsPackages`."""
        require_package(self, "mlflow", "mlflow")

    def start(self, run: LoggedRun) -> LogWriter:
        """See `Logger`."""
        return _Run(self, run)


class _Run(LogWriter):
    def __init__(self, settings: Mlflow, run: LoggedRun) -> None:
        super().__init__(run)
        self._entities: Any = import_module("mlflow.entities")
        self._client: Any = import_module("mlflow.tracking").MlflowClient(tracking_uri=settings.tracking_uri or None)
        if run.id:
            self.id = run.id
            self.last_step = int(self._client.get_run(self.id).data.tags.get(LAST_STEP, -1))
            self._client.update_run(self.id, status="RUNNING")
        else:
            found = self._client.get_experiment_by_name(settings.experiment)
            experiment = found.experiment_id if found else self._client.create_experiment(settings.experiment)
            self.id = self._client.create_run(experiment, run_name=run.name).info.run_id
            parameters = [self._parameter(name, value) for name, value in run.settings.items()]
            for begin in range(0, len(parameters), PARAMETERS):
                self._client.log_batch(self.id, params=parameters[begin : begin + PARAMETERS])
        self.place = f"run {self.id} of the experiment {settings.experiment!r}"

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the row of a step; the newest step is a tag of the run."""
        now_ms = time.time_ns() // 10**6
        metrics = [self._entities.Metric(_name(name), value, now_ms, step) for name, value in values.items()]
        self._client.log_batch(self.id, metrics=metrics, tags=[self._entities.RunTag(LAST_STEP, str(step))])

    def end(self, state: EndState) -> None:
        """Close the run."""
        self._client.set_terminated(self.id, status=STATES[state])

    def _parameter(self, name: str, value: object) -> Any:
        return self._entities.Param(_name(name), str(value)[:CHARACTERS])


def _name(name: str) -> str:
    """The name without what MLflow refuses: other characters, and empty parts between slashes."""
    return "/".join((part.strip(".") and part) or "_" for part in NOT_IN_NAMES.sub("_", name).split("/"))
