"""A run whose processes are killed and stopped at random: all trees are trained, each once.

    python bench/chaos.py --strikes 100
    python bench/chaos.py --strikes 20 --steps 10 ranks=1

Trains GRPO on Sokoban with environment workers, engines in processes of their own, ranks and staleness. Every few
seconds a random process of the run gets SIGKILL or SIGSTOP: the run itself, a worker, an engine or a rank. A run that
was killed, or gave up after repeated strikes on its ranks, is resumed. A run that was stopped goes on after two
seconds; the other processes are replaced by the run, and ranks that do not come back in time leave fewer ranks until
they do. At the end it checks each step's trees against the order of tasks, and prints how many processes were struck
and replaced, how many ranks computed, and the memory of the run.
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
from contextlib import suppress
from pathlib import Path

from bough.store import RunDirectory, read_metrics, read_trees
from bough.train import load_run
from bough.tree import Credited, derive
from machine import machine

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
    "warmup.epochs=2",
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", help="fields to change, as for `bough train`")
    parser.add_argument("--strikes", type=int, default=100)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every-s", type=float, default=3.0, help="mean time between strikes, seconds")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        struck, resumed = _disturbed(Path(folder), arguments)
        took = time.monotonic() - begin
        directory = RunDirectory.open(Path(folder) / "chaos")
        _check(directory)
        threads = load_run(directory).world.execution.threads
        rows = [row for row in read_metrics(directory.metrics) if row["phase"] == "rl"]
        events = ("env/replaced", "engine/replaced", "rank/replaced", "rank/lost", "rank/joined")
        counts = {event: sum(float(row.get(event) or 0.0) for row in rows) for event in events}
        ranks = Counter(int(float(row["rank/world_size"])) for row in rows)
        idle = sum(any(name.startswith("update/tokens/") and not value for name, value in row.items()) for row in rows)
        memory = [float(row["memory/process_gib"]) for row in rows]
    print(f"{sum(struck.values())} strikes in {took:.0f} s: {dict(struck)}; resumed: {dict(resumed)}")
    print(f"in completed steps: {counts}")
    print(f"steps by number of ranks: {dict(sorted(ranks.items()))}; with a share without tokens: {idle}")
    print(f"{len(rows)} steps, each on its own tasks, all trees trained once")
    print(
        f"memory of the run after step {len(rows) // 4}: {memory[len(rows) // 4]:.2f} GiB, at the end: {memory[-1]:.2f}"
    )
    print(machine(threads or 1))


def _disturbed(folder: Path, arguments: argparse.Namespace) -> tuple[Counter[str], Counter[str]]:
    """Run to the end under strikes; returns the strikes by kind, and how often the run was resumed, by reason."""
    bough, chance = [sys.executable, "-m", "bough"], random.Random(arguments.seed)
    changes = [*SETTINGS, f"steps={arguments.steps}", "name=chaos", *arguments.changes]
    command = [*bough, "train", "grpo", "--on", "sokoban", "--out", str(folder), *changes]
    struck, resumed, stopped = Counter[str](), Counter[str](), set[int]()
    run, since = _start(command), 0
    while True:
        time.sleep(chance.expovariate(1 / arguments.every_s))
        if run.poll() is not None:
            if run.returncode == 0:
                _end(stopped)
                return struck, resumed
            if not since:
                sys.exit(f"the run ended with status {run.returncode}, and was not struck")
            resumed["killed" if run.returncode == -signal.SIGKILL else "gave up"] += 1
            run = _start([*bough, "resume", str(folder / "chaos")] if (folder / "chaos").exists() else command)
            since = 0
        # Before its first checkpoint a run has nothing to go on from, so the first strike waits for it.
        elif sum(struck.values()) < arguments.strikes and any((folder / "chaos" / "checkpoints").glob("step_*")):
            struck[_strike(run.pid, chance, stopped)] += 1
            since += 1


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})


def _strike(run: int, chance: random.Random, stopped: set[int]) -> str:
    """Kill or stop a process of the run; returns what was done to what. A stopped process is added to `stopped`."""
    others = _descendants(run)
    pid = run if not others or chance.random() < DRIVER_SHARE else chance.choice(others)
    kind = chance.choice([signal.SIGKILL, signal.SIGSTOP])
    name = "run" if pid == run else _name(pid)
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        return f"gone {name}"
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
    kinds = {"bough.env.serve": "worker", "worker_process": "engine", "rank_process": "rank"}
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
