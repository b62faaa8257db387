"""A run whose processes are killed and stopped at random: all trees are trained, each once.

    python bench/chaos.py --strikes 100
    python bench/chaos.py --strikes 20 --steps 10 ranks=1
    python bench/chaos.py --sigterm --strikes 20 evaluation.every=2
    python bench/chaos.py --table

Trains GRPO on Sokoban with environment workers, engines in processes of their own, ranks and staleness. Every few
seconds a random process of the run gets SIGKILL or SIGSTOP: the run itself, a worker, an engine or a rank. A run that
was killed, or gave up after repeated strikes on its ranks, is resumed. A run that was stopped goes on after two
seconds; the other processes are replaced by the run, and ranks that do not come back in time leave fewer ranks until
they do. With `--sigterm` every strike is a SIGTERM to the run, at a random moment after a step: the run must end with
status 130 and a checkpoint of its last step, from which it is resumed. At the end the script checks each step's trees
against the order of tasks, and prints how many processes were struck and replaced, how many ranks computed, and the
memory of the run. `--keep` adds that to bench/results/chaos.jsonl, with the commit; `--table` prints the sums over it.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bough.store import Checkpoints, RunDirectory, read_metrics, read_trees
from bough.train import load_run
from bough.tree import Credited, derive
from machine import machine
from result_rows import RESULTS, Row, add_row, commit, read_rows

EPOCHS = 2
SETTINGS = [
    "workers=2",
    "worker_deadline_s=5",
    "engine=Replicas(engine=Local(slots=64), start_s=30, deadline_s=5)",
    "staleness=2",
    "ranks=3",
    "min_ranks=1",
    "rank_deadline_s=10",
    "objective=Tis()",
    "batch_tasks=4",
    "tasks.count=40",
    "filters=()",
    f"warmup.epochs={EPOCHS}",
    "warmup.demonstrations=40",
    "evaluation.every=100000",
    "evaluation.tasks.count=20",
    "checkpointing.every=1",
    "checkpointing.trees_every=1",
    "health.dead_batches=100000",
    "health.cut_batches=0",
]
DRIVER_SHARE = 0.1
"""Share of the strikes that hit the run's own process."""


FILE = RESULTS / "chaos.jsonl"
EVENTS = {
    "env/replaced": "workers",
    "engine/replaced": "engines",
    "rank/replaced": "ranks",
    "rank/lost": "ranks lost",
    "rank/joined": "ranks joined",
}
"""Metrics that count what the run replaced, and their names in the table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", help="fields to change, as for `bough train`")
    parser.add_argument("--strikes", type=int, default=100)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every-s", type=float, default=3.0, help="mean time between strikes, seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sigterm", action="store_true", help="send SIGTERM to the run, and nothing else")
    parser.add_argument("--keep", action="store_true", help="add the result to bench/results/chaos.jsonl")
    parser.add_argument("--table", action="store_true", help="print the table of bench/results/chaos.jsonl")
    arguments = parser.parse_intermixed_args()
    if arguments.table:
        print("\n".join(table(read_rows(FILE))))
        return
    row: Row = {"kind": "SIGTERM" if arguments.sigterm else "any", "seed": arguments.seed, "commit": commit()}
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        row |= _disturbed(Path(folder), arguments)
        row["seconds"] = round(time.monotonic() - begin)
        row |= _outcome(RunDirectory.open(Path(folder) / "chaos"))
    if arguments.keep:
        add_row(FILE, row, ("kind", "seed"))
    print("\n".join(table([row])))


def table(rows: Sequence[Row]) -> list[str]:
    """A Markdown table: a line for each kind of strike, sums over its runs."""
    events = " | ".join(EVENTS.values())
    lines = [
        f"| strikes | runs | steps | seconds | resumed | replaced: {events} | steps by number of ranks "
        "| seconds to the end after SIGTERM | memory after a quarter, at the end, GiB | commit |",
        f"|{'---|' * (9 + len(EVENTS))}",
    ]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        ended = sorted(each for row in own for each in row["ended_s"])
        cells = [
            _listed(_sum(own, "struck")),
            len(own),
            f"{sum(row['steps'] for row in own)}, all trees trained once",
            sum(row["seconds"] for row in own),
            _listed(_sum(own, "resumed")),
            *(round(_sum(own, "events")[name]) for name in EVENTS),
            _listed(_sum(own, "ranks")),
            f"{ended[0]:.0f} to {ended[-1]:.0f}" if ended else "",
            "; ".join(f"{row['memory'][0]:.2f}, {row['memory'][1]:.2f}" for row in own),
            ", ".join(dict.fromkeys(row["commit"][:8] for row in own)),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    idle = sum(row["idle"] for row in rows)
    where = "; ".join(dict.fromkeys(row["machine"] for row in rows))
    return [*lines, "", f"Steps in which a rank had no tokens: {idle}. {where}"]


def _sum(rows: Sequence[Row], name: str) -> Counter[str]:
    return sum((Counter(row[name]) for row in rows), Counter[str]())


def _listed(counts: Counter[str]) -> str:
    """Counts, with their total where there are several kinds."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{sum(counts.values())}: {kinds}" if len(counts) > 1 else kinds or "0"


def _outcome(directory: RunDirectory) -> Row:
    """Check the run, and sum its metrics."""
    _check(directory)
    rows = [row for row in read_metrics(directory.metrics) if row["phase"] == "rl"]
    memory = [float(row["memory/process_gib"]) for row in rows]
    ranks = Counter(f"with {float(row['rank/world_size']):g}" for row in rows if "rank/world_size" in row)
    return {
        "steps": len(rows),
        "events": {event: sum(float(row.get(event) or 0.0) for row in rows) for event in EVENTS},
        "ranks": dict(ranks),
        "idle": sum(any(name.startswith("update/tokens/") and not row[name] for name in row) for row in rows),
        "memory": [memory[len(memory) // 4], memory[-1]],
        "machine": machine(load_run(directory).world.execution.threads or 1),
    }


def _disturbed(folder: Path, arguments: argparse.Namespace) -> Row:
    """Run to the end under strikes; returns the strikes by kind, the resumptions, and the seconds to its ends."""
    bough, chance = [sys.executable, "-m", "bough"], random.Random(arguments.seed)
    changes = [*SETTINGS, f"steps={arguments.steps}", "name=chaos", *arguments.changes]
    command = [*bough, "train", "grpo", "--on", "sokoban", "--out", str(folder), *changes]
    struck, resumed, stopped, ended = Counter[str](), Counter[str](), set[int](), list[float]()
    # A run that is stopped in its warm-up has no checkpoint to resume from.
    run, since, before = _start(command), 0, EPOCHS
    while True:
        time.sleep(chance.expovariate(1 / arguments.every_s))
        if run.poll() is not None:
            if run.returncode == 0:
                _end(stopped)
                return {"struck": dict(struck), "resumed": dict(resumed), "ended_s": ended}
            if not since:
                sys.exit(f"the run ended with status {run.returncode}, and was not struck")
            reasons = {-signal.SIGKILL: "killed", 130: "stopped"}
            resumed[reasons.get(run.returncode, "gave up")] += 1
            run = _start([*bough, "resume", str(folder / "chaos")] if (folder / "chaos").exists() else command)
            since, before = 0, max(EPOCHS, _rows(folder))
        # On a slow machine a second strike could hit before any step is done: the first strike waits for a step.
        elif sum(struck.values()) < arguments.strikes and _rows(folder) > before:
            if arguments.sigterm:
                took = _terminate(run, RunDirectory.open(folder / "chaos"))
                ended += [] if took is None else [took]
                name = None if took is None else "SIGTERM run"
            else:
                name = _strike(run.pid, chance, stopped)
            struck.update([] if name is None else [name])
            since += 1


def _rows(folder: Path) -> int:
    """Number of steps in the metrics of the run."""
    file = folder / "chaos" / "metrics.jsonl"
    return len(read_metrics(file)) if file.is_file() else 0


def _terminate(run: subprocess.Popen[bytes], directory: RunDirectory) -> float | None:
    """Send SIGTERM, and check that the run ends with a checkpoint of its last row.

    Returns the seconds until it has ended; None where it was ending by itself.
    """
    begin = time.monotonic()
    run.terminate()
    if (status := run.wait()) == 0:
        return None
    newest = Checkpoints(directory=directory.checkpoints).steps()[-1]
    last = read_metrics(directory.metrics)[-1]["step"]
    assert status == 130, f"status {status} after SIGTERM"
    assert newest == last, f"a checkpoint of step {newest} after a row of step {last}"
    return time.monotonic() - begin


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})


def _strike(run: int, chance: random.Random, stopped: set[int]) -> str | None:
    """Kill or stop a process of the run; returns what was done to what, None if the process had just ended.

    A stopped process is added to `stopped`.
    """
    others = _descendants(run)
    pid = run if not others or chance.random() < DRIVER_SHARE else chance.choice(others)
    kind = chance.choice([signal.SIGKILL, signal.SIGSTOP])
    name = "run" if pid == run else _name(pid)
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        return None
    if pid == run and kind is signal.SIGSTOP:
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)
    elif kind is signal.SIGSTOP:
        stopped.add(pid)
    return f"{kind.name} {name}"


def _end(stopped: set[int]) -> None:
    """Kill stopped processes of runs that were killed: until they go on they do not notice that the run has ended."""
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # it has ended
    return [each for child in children for each in (child, *_descendants(child))]


def _name(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "process"
    kinds = {"bough.env.hosts.serve": "worker", "worker_process": "engine", "rank_process": "rank"}
    return next((name for part, name in kinds.items() if part in command), "helper")


def _check(directory: RunDirectory) -> None:
    """Check that each step was trained on its tasks, all of them once."""
    run = load_run(directory)
    size, first, count = run.world.schedule.batch_tasks, run.warmup_steps, run.world.tasks.count
    steps = [int(float(row["step"])) for row in read_metrics(directory.metrics) if row["phase"] == "rl"]
    expected = [*range(first + 1, first + run.world.schedule.steps + 1)]
    assert [step for step in steps if step > first] == expected, "a step is missing, or there twice"
    ids = {task.id for task in run.world.env.tasks("train", count, derive(run.seed, "tasks", "train"))}
    drawn = list[str]()
    for step in expected:
        trees = read_trees(directory.trees_of(step), Credited)
        assert len(trees) == size, f"step {step}: {len(trees)} trees"
        drawn += [each.tree.task.id for each in trees]
    for begin in range(0, len(drawn), count):
        one_pass = drawn[begin : begin + count]
        assert len({*one_pass}) == len(one_pass), f"trees {begin + 1} to {begin + count}: a task twice in a pass"
        assert {*one_pass} <= ids, f"trees {begin + 1} to {begin + count}: another task"


if __name__ == "__main__":
    main()
