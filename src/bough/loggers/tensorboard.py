"""Event files for TensorBoard, written without torch."""

import io
import os
import time
from collections.abc import Mapping
from importlib import import_module

from bough.loggers.logger import LoggedRun, LogWriter, require_package
from bough.piece import piece
from bough.store.atomic import append_bytes


@piece
class TensorBoard:
    """Event files in the run's directory: `tensorboard --logdir runs` (extra `tensorboard`).

    The files have 32-bit numbers. The rows of a resumed run take the place of those after its checkpoint.
    """

    def check_packages(self) -> None:
        """See `NeedsPackages`."""
        require_package(self, "tensorboard", "tensorboard")

    def start(self, run: LoggedRun) -> LogWriter:
        """See `Logger`."""
        return _Events(run)


class _Events(LogWriter):
    """Appends to one event file; those of earlier processes stay beside it."""

    def __init__(self, run: LoggedRun) -> None:
        super().__init__(run)
        self.last_step = min(run.last_step, run.resumed_at)
        self.place = str(run.folder)
        self._path = run.folder / f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"
        # TensorBoard has no type hints, and its messages are classes that exist at run time only.
        self._event = import_module("tensorboard.compat.proto.event_pb2").Event
        self._writer = import_module("tensorboard.summary.writer.record_writer").RecordWriter
        # From this version on, TensorBoard treats a session log as a restart: it drops that step and later ones.
        self._append(file_version="brain.Event:2")
        if run.last_step > self.last_step:
            self._append(step=self.last_step + 1, session_log={"status": "START"})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append the scalars of a step."""
        self._append(step=step, summary={"value": [{"tag": tag, "simple_value": v} for tag, v in values.items()]})

    def _append(self, **fields: object) -> None:
        records = io.BytesIO()
        self._writer(records).write(self._event(wall_time=time.time(), **fields).SerializeToString())
        append_bytes(self._path, records.getvalue())
