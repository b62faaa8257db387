"""What reinforcement adds to the warm-up, on several seeds: success on held-out tasks before and after.

    python bench/gains.py grpo_frozenlake --seeds 3
    python bench/gains.py gigpo --on sokoban --seeds 3

Prints a Markdown table. Runs that are already in the output folder are read, not repeated.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bough.store import RunDirectory
from bough.train import load_run, read_heldout
from bough.view import wilson
from machine import machine


def main() -> None:
    arguments = _arguments()
    rows: list[str] = []
    label = "_".join(filter(None, (arguments.method, arguments.on)))
    runs = [RunDirectory(path=arguments.out / f"{label}_seed{seed}") for seed in range(arguments.seeds)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        taken = list(pool.map(partial(_train, arguments), runs, range(arguments.seeds)))
    for seed, (directory, minutes) in enumerate(zip(runs, taken, strict=True)):
        results = read_heldout(directory)
        first, last = results[min(results)], results[max(results)]
        gain = 100 * (_rate(last) - _rate(first))
        rows.append(f"| {seed} | {_cell(first)} | {_cell(last)} | **{gain:+.1f}** | {minutes:.1f} |")
    print(f"`{label}` {' '.join(arguments.changes)}\n".replace(" \n", "\n"))
    print("| seed | after warm-up | after reinforcement | gain, points | minutes |")
    print("|---|---|---|---|---|")
    print("\n".join(rows))
    threads = load_run(runs[0]).world.execution.threads
    print(f"\n{arguments.jobs} at a time; {machine(threads)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", help="a recipe, or a method with --on")
    parser.add_argument("--on", help="a world")
    parser.add_argument("changes", nargs="*", help="fields to change, as for `bough train`")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="seeds that train at the same time")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    return parser.parse_intermixed_args()


def _train(arguments: argparse.Namespace, directory: RunDirectory, seed: int) -> float:
    """Train one seed, unless it is done, as a process of its own; returns its minutes."""
    timing = directory.path / "minutes.json"
    if not timing.is_file():
        command = [sys.executable, "-m", "bough", "train", arguments.method, f"seed={seed}"]
        command += ["--on", arguments.on] if arguments.on else []
        begin = time.perf_counter()
        subprocess.run(
            [*command, f"name={directory.path.name}", *arguments.changes, f"--out={arguments.out}"],
            check=True,
            stdout=sys.stderr,
        )
        timing.write_text(json.dumps((time.perf_counter() - begin) / 60))
    return float(json.loads(timing.read_text()))


def _rate(successes: dict[str, bool]) -> float:
    return sum(successes.values()) / len(successes)


def _cell(successes: dict[str, bool]) -> str:
    low, high = wilson(sum(successes.values()), len(successes))
    return f"{_rate(successes):.1%} ({low:.1%} to {high:.1%}) of {len(successes)}"


if __name__ == "__main__":
    main()
