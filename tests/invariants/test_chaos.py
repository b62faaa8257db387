"""Invariant 7: kill the process anywhere, resume, and the finished run is bit-equal to the uninterrupted one.

Kills at random times, of two runs at once. Now and then two processes resume a run, or its disk is full.
"""

import json
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from tests.forks import Fork, run_command
from tests.small import MEASURED
from tests.talk import SMALL

KILLS = 5
DOUBLE_EVERY, FULL_EVERY = 3, 4
REFUSED, FULL = "is in use by ", "error: disk full while writing"
SETTINGS = (
    "steps=14",
    "batch_tasks=2",
    "limits.turns=2",
    "warmup.epochs=4",
    "warmup.demonstrations=6",
    "rewards=[EnvReward, InvalidAction(penalty=0.5)]",
    "checkpointing.every=2",
    "evaluation.every=6",
    "evaluation.tasks.count=2",
)


def limited(arguments: list[str], largest_file: int) -> None:
    """Run a `bough` command in this process, with a limit to the size of files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    run_command(arguments)


class Victim:
    """A run that one process after the other trains; when it is finished, the next run like it."""

    def __init__(self, folder: Path, staleness: int) -> None:
        self.folder = folder
        self.staleness = staleness
        self.kill_at_s = 0.0
        self.finished = 0
        self.turns = 0
        self._living: list[Fork] = []
        self._logs: list[str] = []

    @property
    def directory(self) -> Path:
        return self.folder / str(self.finished) / "slow"

    def logged(self, words: str) -> bool:
        """Whether a process printed the words."""
        return any(words in log for log in (*self._logs, *(process.printed for process in self._living)))

    def resumed(self) -> bool:
        """Whether a process has gone on from a checkpoint."""
        return self.logged("resumed after ")

    def go_on(self, *, twice: bool = False, largest_file: int = resource.RLIM_INFINITY) -> None:
        """Start a process that trains or resumes; with `twice` another one, of which one is refused."""
        if (self.directory / "config.json").is_file():
            arguments = ["resume", str(self.directory)]
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
            run = (f"{SMALL}:slow", f"staleness={self.staleness}", *SETTINGS)
            arguments = ["train", *run, "--out", str(self.directory.parent)]
        two = twice and arguments[0] == "resume"
        self._living = [Fork(limited, arguments, largest_file) for _ in range(1 + two)]
        if two:
            while all(process.alive for process in self._living):
                time.sleep(0.002)

    def kill(self) -> int:
        """Kill what lives; returns how many processes that were."""
        living = [process for process in self._living if process.alive]
        for process in living:
            process.send(signal.SIGKILL)
        self.wait()
        return sum(process.wait().status == -9 for process in living)

    def wait(self) -> None:
        """Wait for the end of all processes, and check how they ended."""
        for process in self._living:
            said, text = process.wait(), process.printed
            refused = len(self._living) == 2 and REFUSED in text
            assert said.status in (0, -9) or refused or FULL in text, text
            self._logs.append(text)
        statuses = [process.wait().status for process in self._living]
        assert sum(status in (0, -9) for status in statuses) <= 1 or 0 in statuses, "two processes owned a run"
        self._living = []
        if 0 in statuses:
            self.finished += 1


def outcome(directory: Path) -> dict[str, object]:
    """All that must not depend on how often a run was killed."""
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    weights = load_file(directory / "final" / "model.safetensors")
    assert (directory / "report.html").is_file()
    return {
        "config": (directory / "config.json").read_bytes(),
        "rows": [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in rows],
        "weights": {name: weight.tobytes() for name, weight in weights.items()},
        "heldout": {path.name: path.read_bytes() for path in sorted((directory / "heldout").iterdir())},
        "trees": {path.name: path.read_bytes() for path in sorted((directory / "trees").glob("*.jsonl"))},
    }


@pytest.mark.timeout(900)
def test_runs_that_are_killed_again_and_again_end_like_undisturbed_ones(tmp_path: Path) -> None:
    chance, kills = random.Random(int(os.environ.get("BOUGH_CHAOS_SEED", "1"))), 0
    undisturbed = [Victim(tmp_path / f"whole{staleness}", staleness) for staleness in (0, 1)]
    victims = [Victim(tmp_path / f"killed{staleness}", staleness) for staleness in (0, 1)]
    for each in (*undisturbed, *victims):
        each.folder.mkdir()
    begin_s = time.monotonic()
    for each in undisturbed:
        each.go_on()
    for each in undisturbed:
        each.wait()
    whole_s = time.monotonic() - begin_s
    while (
        kills < KILLS
        or not all(each.resumed() and each.logged(REFUSED) for each in victims)
        or not any(each.logged(FULL) for each in victims)
    ):
        victim = min(victims, key=lambda each: each.kill_at_s)
        time.sleep(max(0.0, victim.kill_at_s - time.monotonic()))
        kills += victim.kill()
        victim.turns += 1
        full = victim.turns % FULL_EVERY == 0
        largest_file = chance.randrange(2_000, 180_000) if full else resource.RLIM_INFINITY
        victim.go_on(twice=victim.turns % DOUBLE_EVERY == 0 and not full, largest_file=largest_file)
        if full:
            # Not killed, so that it does meet the end of its disk.
            victim.wait()
        # The first checkpoint comes late where processes start slowly: until it is reached, more time.
        longest_s = (0.35 if victim.resumed() else 1.0) * whole_s
        victim.kill_at_s = time.monotonic() + chance.uniform(0.0, longest_s)
    for victim, whole in zip(victims, undisturbed, strict=True):
        victim.kill()
        while victim.finished == 0 or victim.directory.exists():
            victim.go_on()
            victim.wait()
        expected = outcome(whole.folder / "0" / "slow")
        for number in range(victim.finished):
            assert outcome(victim.folder / str(number) / "slow") == expected, f"run {number} in {victim.folder}"
