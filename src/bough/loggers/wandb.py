"""Weights & Biases, online or in files that `wandb sync` uploads later."""

import secrets
import struct
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from bough.loggers.logger import EndState, LoggedRun, LogWriter, require_package
from bough.piece import NotEmpty, piece

IDENT_BYTES = 7
"""Length of the header of a file of records."""
BLOCK_BYTES = 2**15
RECORD = struct.Struct("<IHB")
"""The header of a record's part: its checksum, its length and its kind."""
WHOLE, LAST = 1, 4
"""The kinds of parts with which a record ends."""


@piece
class Wandb:
    """A run in Weights & Biases (extra `wandb`).

    It shows a step once the next one begins. A resumed run goes on as the same run of Weights & Biases; a step that it
    has already keeps its values.

    Attributes:
        project: The project.
        entity: The user or team; "" for the account's default.
        group: A group of runs, such as the seeds of one comparison; "" for none.
        tags: Tags of the run.
        mode: "online", or "offline": files in the run's directory, for `wandb sync`.
    """

    project: Annotated[str, NotEmpty()] = "bough"
    entity: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    mode: Literal["online", "offline"] = "online"

    def check_packages(self) -> None:
        """See `NeedsPackages`; online, an API key is needed too."""
        require_package(self, "wandb", "wandb")
        if self.mode == "online" and not import_module("wandb").login(prompt=False):
            raise ValueError(
                "Wandb: got mode='online' and no API key; need one: do `wandb login`, set WANDB_API_KEY, or take "
                "mode='offline'"
            )

    def start(self, run: LoggedRun) -> LogWriter:
        """See `Logger`."""
        return _Run(self, run)


class _Run(LogWriter):
    def __init__(self, settings: Wandb, run: LoggedRun) -> None:
        super().__init__(run)
        wandb: Any = import_module("wandb")
        self.id = run.id or secrets.token_hex(4)
        self._run = wandb.init(
            project=settings.project,
            entity=settings.entity or None,
            group=settings.group or None,
            tags=settings.tags or None,
            name=run.name,
            id=self.id,
            dir=str(run.folder),
            mode=settings.mode,
            resume="allow",
            config=dict(run.settings),
            allow_val_change=True,
            # Other runs of this process stay open.
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )
        if run.id:
            # What was sent before a process died is not yet stored, so the step is read from its place.
            offline = settings.mode == "offline"
            self.last_step = _stored_step(run.folder, self.id) if offline else self._run.starting_step - 1
        folder = Path(self._run.dir).parent
        self.place = f"`wandb sync {folder}`" if settings.mode == "offline" else str(self._run.url)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add the values to the row of a step, which ends with the next one."""
        self._run.log(dict(values), step=step)

    def end(self, state: EndState) -> None:
        """Close the run; its state is "finished" or "failed"."""
        self._run.finish(exit_code=0 if state == "finished" else 1)


def stored_records(file: Path) -> Iterator[Any]:
    """The records of a file of an offline run, as messages of `wandb.proto`."""
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    for data in _records(file.read_bytes()):
        record = messages.Record()
        record.ParseFromString(data)
        yield record


def _stored_step(folder: Path, run: str) -> int:
    """The newest step in the files of an offline run; -1 without one."""
    records = (each for file in folder.glob(f"wandb/offline-run-*/run-{run}.wandb") for each in stored_records(file))
    rows = (each.history for each in records if each.WhichOneof("record_type") == "history")
    return max((int(row.step.num) for row in rows), default=-1)


def _records(data: bytes) -> Iterator[bytes]:
    """The whole records of a file in LevelDB's log format; parts that were cut off by the end of a process are not."""
    at, record = IDENT_BYTES, b""
    while at + RECORD.size <= len(data):
        left = BLOCK_BYTES - at % BLOCK_BYTES
        if left < RECORD.size:
            at += left
            continue
        _, size, kind = RECORD.unpack_from(data, at)
        begin, at = at + RECORD.size, at + RECORD.size + size
        if at > len(data):
            return
        record += data[begin:at]
        if kind in (WHOLE, LAST):
            yield record
            record = b""
