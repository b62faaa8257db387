"""Whether a row of bench/no_harm.py holds at another commit: short runs of both compute the same, bit for bit.

The present code warms a policy as it would for a new row: its success on the held-out tasks has to be the row's, task
by task; rows with the same policy and successes share this evaluation. From there the row's command trains for a few
steps with the code of the row's commit and with the present one. The row is confirmed if the weights at the end and the
method's metrics of each step are equal, and if its mechanism acted: the gradient is not zero, and each of its own
metrics that is not zero in the row is not zero in these steps. If it has not acted, the runs are made longer.

What acts only later than these steps is not seen. A schedule over the run is, because it ends with the short run.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from result_rows import ROOT, Row

STEPS = (3, 6, 12)
"""Steps of the short runs: the first number for which the mechanism acts."""
GRADIENT = "optimizer/gradient_norm"


class ShortRuns:
    """Short runs with the code of a checkout, in one process.

    Args:
        checkout: its folder.
        out: folder of the runs and of the warmed policies.
        heldout: held-out tasks at most.
        minutes: the longest that a run may take, its warm-up included.
    """

    def __init__(self, checkout: Path, out: Path, heldout: int, minutes: float) -> None:
        self._checkout, self._out, self._heldout, self._minutes = checkout, out, heldout, minutes
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, row: Row, steps: int, start: str = "") -> Row:
        """Start, success before, weights and metrics of a row's command; `failed` says why there are none."""
        job = {name: row[name] for name in ("method", "command", "seed", "before")}
        job |= {"steps": steps, "start": start, "heldout": self._heldout}
        self._process = process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(60 * self._minutes, process.kill)
        timer.start()
        process.stdin.write(f"{json.dumps(job)}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        timer.cancel()
        if not answer:
            self.close()
            return {"failed": f"it ends without a result, or takes more than {self._minutes:g} minutes"}
        return json.loads(answer)

    def close(self) -> None:
        """End the process; the next run begins another one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _begin(self) -> subprocess.Popen[str]:
        folders = [str(self._checkout / name) for name in ("src", "bench")]
        return subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("short_runs.py")), str(self._out)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(folders)},
        )


def confirm(row: Row, old: ShortRuns, new: ShortRuns, steps: Sequence[int] = STEPS) -> tuple[int, str]:
    """The steps after which both are equal and the mechanism acted; or 0 and why the row is to be measured again."""
    reason = f"its {row['steps']} steps are too few for short runs"
    for count in (each for each in steps if 2 * each < row["steps"]):
        present = new(row, count)
        if failed := present.get("failed"):
            return 0, f"present code: {failed}"
        if present["before"] != row["before"]:
            return 0, "the warmed policy has other successes"
        past = old(row, count, present["start"])
        if failed := past.get("failed"):
            return 0, f"code of the row: {failed}"
        if different := _different(row, past, present):
            return 0, f"after {count} steps: other {different}"
        if not (reason := _idle(row, present["metrics"])):
            return count, ""
    return 0, reason


def _different(row: Row, past: Row, present: Row) -> str:
    """What two short runs have not in common."""
    if past["weights"] != present["weights"]:
        return "weights"
    if len(past["metrics"]) != len(present["metrics"]):
        return "number of steps"
    pairs = list(zip(past["metrics"], present["metrics"], strict=True))
    # As texts, because nan is not equal to itself.
    return ", ".join(name for name in row["own"] if any(str(a.get(name)) != str(b.get(name)) for a, b in pairs))


def _idle(row: Row, metrics: Sequence[Mapping[str, Any]]) -> str:
    """What of the mechanism did not act in the steps."""
    if not any(each.get(GRADIENT) for each in metrics):
        return "no gradient"
    idle = [name for name, mean in row["own"].items() if mean and not any(each.get(name) for each in metrics)]
    return f"always 0: {', '.join(idle)}" if idle else ""


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit, as long as it is needed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "checkout")
        _git("worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)
