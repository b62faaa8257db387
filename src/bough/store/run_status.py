"""The status of a run: how it ended, as its process wrote it."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from bough.store.atomic import StoreError, read_stored, write_json
from bough.store.lock import holder

State: TypeAlias = Literal["training", "done", "stopped", "crashed"]

KILLED = (
    "the process ended without a word: it was killed (SIGKILL, or for its memory), or the machine went down; "
    "`bough resume` goes on from the last checkpoint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """What a run does, or how it ended.

    Attributes:
        state: "training" while a process trains it; "done" at its end; "stopped" by a person, a scheduler or a health
            check; "crashed" by an error.
        why: The reason in a sentence; "" where the state is all there is.
        at: Time of the last change, ISO 8601.
    """

    state: State
    why: str = ""
    at: str = ""

    def write(self, directory: Path) -> None:
        """Write it to `status.json` in the run's folder, with the present time.

        Raises:
            StoreError: when the disk is full.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(directory / "status.json", {**asdict(self), "at": now})


def run_status(directory: Path) -> RunStatus:
    """The status of a run, from its folder alone.

    Raises:
        StoreError: when `status.json` is damaged; names it.
    """
    owner, file, ended = holder(directory / "run.lock"), directory / "status.json", (directory / "final").is_dir()
    training = RunStatus(state="training", why=f"{owner} trains it")
    if not file.is_file():
        if owner:
            return training
        return RunStatus(state="done" if ended else "stopped", why="" if ended else "before its last step")
    stored = read_stored(file)
    state, why, at = stored.get("state"), stored.get("why"), stored.get("at")
    if state not in get_args(State) or not isinstance(why, str) or not isinstance(at, str):
        raise StoreError(f"{file}: got no status of a run; need the file as the run wrote it, or remove it")
    # The process that wrote "training" holds the lock for as long as it lives, and while it writes its report.
    if state == "training" and owner:
        return training
    if state == "training":
        return RunStatus(state="crashed", why=KILLED, at=at)
    return RunStatus(state=cast("State", state), why=why, at=at)
