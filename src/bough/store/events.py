"""Event files for TensorBoard, written without torch."""

import io
import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from bough.store.atomic import append_bytes


class Events:
    """Appends scalars to one event file; TensorBoard shows them during the run.

    Args:
        directory: Created with the first event; files of earlier runs in it stay.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"

    def write(self, step: int, scalars: Mapping[str, int | float]) -> None:
        """Append the scalars of a step."""
        self._append(step=step, summary={"value": [{"tag": tag, "simple_value": v} for tag, v in scalars.items()]})

    def purge_from(self, step: int) -> None:
        """Write a restart event, so that TensorBoard drops earlier values of `step` and of later steps."""
        self._append(step=step, session_log={"status": "START"})

    def _append(self, **fields: object) -> None:
        # TensorBoard has no type hints, and its messages are classes that exist at run time only.
        event = import_module("tensorboard.compat.proto.event_pb2").Event
        records = io.BytesIO()
        writer = import_module("tensorboard.summary.writer.record_writer").RecordWriter(records)
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # From this version on, TensorBoard treats a session log as a restart.
            writer.write(event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        writer.write(event(wall_time=time.time(), **fields).SerializeToString())
        append_bytes(self._path, records.getvalue())
