"""Every command of docs/systems.md, executed whole, with evidence that its mechanism acted.

    python bench/printed_commands.py --minutes 20
    python bench/printed_commands.py --only st_ppo mcts
    python bench/printed_commands.py --small --jobs 2      # few tasks and steps, no rows
    python bench/printed_commands.py --write

A training has a row with held-out success of its first and last evaluation, and its own metrics: those that
`bough train grpo --on sokoban` does not write, as means over the steps. A search has a row with the share of tasks that
it solves, beside one path and best of n with as many sampled tokens a task. Rows are kept in
bench/results/printed_commands.jsonl with their commit; only commands without a row, or with sources that changed since,
are executed. A model of a server is one that answers by rule (bench/rule_server.py): its rows show that the mechanism
acts, not what it is worth. `--write` puts the rows into docs/evidence.md.
"""

import argparse
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import rule_server
from bough.cli.find import find_run
from bough.cli.systems import System, systems
from bough.config import override
from bough.store import RunDirectory, read_metrics
from bough.train import Run, read_heldout
from bough.view import wilson
from machine import machine
from page import put
from result_rows import RESULTS, Row, add_row, changed, commit, read_rows, sources

SERVER = "http://localhost:11434/v1"
"""The server of a model in the commands."""
FILE = RESULTS / "printed_commands.jsonl"
BASE = "bough train grpo --on sokoban"
"""The training whose metrics belong to no mechanism."""
MADE = re.compile(r"\bruns/(\w+)")
TRAIN = re.compile(r"bough train '?(\w+)(?:\([^']*\)')?(?: --on (\w+))?$")
"""A command without changes: the run is named after the method and the world, or after the recipe."""
SMALL: Mapping[str, Sequence[str]] = {
    "train": (
        "steps=1",
        "batch_tasks=2",
        "warmup.epochs=3",
        "warmup.demonstrations=8",
        "tasks.count=40",
        "evaluation.tasks.count=2",
    ),
    "search": ("evaluation.tasks.count=2", "limits.tree_tokens=300"),
}
QUIET = ("threads=1", "checkpointing.trees_every=0", "checkpointing.keep=1")
"""What changes neither weights nor results."""


def main() -> None:
    arguments = _arguments()
    if arguments.write:
        put("evidence.md", "commands", "\n".join(table(read_rows(FILE))))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = [each for each in systems() if not arguments.only or _names(each) & {*arguments.only}]
    commands = list(dict.fromkeys([BASE, *(command for system in found for command in system.commands)]))
    needed = list(dict.fromkeys(made_by(run, commands) for command in commands for run in MADE.findall(command)))
    rows = {each["command"]: each for each in read_rows(FILE)}
    with rule_server.serve() as url, ThreadPoolExecutor(arguments.jobs) as pool:
        one = partial(_execute, arguments, url, rows)
        fine = list(map(one, needed))
        fine += pool.map(one, [each for each in commands if each not in needed])
    if not all(fine):
        sys.exit(f"{fine.count(False)} of {len(fine)} commands failed")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of systems or pieces")
    parser.add_argument("--small", action="store_true", help="few tasks and steps, no rows")
    parser.add_argument("--minutes", type=float, default=60, help="the longest that a command may take")
    parser.add_argument("--jobs", type=int, default=1, help="commands at the same time")
    parser.add_argument("--out", type=Path, default=Path("runs/printed_commands"))
    parser.add_argument("--write", action="store_true", help="write the table of the docs")
    return parser.parse_args()


def made_by(run: str, commands: Sequence[str]) -> str:
    """The command that makes `runs/RUN`: one of the commands, else that of a recipe."""
    for command in commands:
        if (train := TRAIN.match(command)) and "_".join(filter(None, train.groups())) == run:
            return command
    return f"bough train {run}"


def table(rows: Sequence[Row]) -> list[str]:
    """Markdown tables of trainings and of searches."""
    trained = [row for row in rows if row["verb"] == "train"]
    searched = [row for row in rows if row["verb"] == "search"]
    lines = ["| command | held-out success, first to last, % | its own metrics, means | commit |", "|---|---|---|---|"]
    for row in trained:
        if row["failed"]:
            lines.append(f"| `{row['command']}` | failed: {row['failed']} | | {row['commit'][:8]} |")
            continue
        own = ", ".join(f"{name} {value:.3g}" for name, value in row["own"].items()) or "none"
        lines.append(
            f"| `{row['command']}` | {_share(row['first'])} to {_share(row['last'])} | {own} | {row['commit'][:8]} |"
        )
    lines += [
        "",
        "| command | solved, % | one path, % | best of n, as many tokens, % | tokens a task | commit |",
        "|---|---|---|---|---|---|",
    ]
    for row in searched:
        if row["failed"]:
            lines.append(f"| `{row['command']}` | failed: {row['failed']} | | | | {row['commit'][:8]} |")
            continue
        cells = " | ".join(_share(row[name]) for name in ("solved", "one_path", "best_of_n"))
        lines.append(f"| `{row['command']}` | {cells} | {row['tokens']:.0f} | {row['commit'][:8]} |")
    minutes = sum(row["minutes"] for row in rows)
    return [*lines, "", f"{minutes:.0f} minutes in all; {machine(1)}"]


def sentence(row: Row) -> str:
    """The row of a search in a sentence."""
    solved, one, best = (_share(row[name]) for name in ("solved", "one_path", "best_of_n"))
    return f"`{row['command']}` solves {solved} %; one path {one} %, best of n with as many sampled tokens {best} %."


def _share(counts: Sequence[int]) -> str:
    successes, trials = counts
    low, high = wilson(successes, trials)
    return f"{100 * successes / max(1, trials):.0f} ({100 * low:.0f} to {100 * high:.0f} of {trials})"


def _execute(arguments: argparse.Namespace, url: str, rows: Mapping[str, Row], command: str) -> bool:
    """Execute a command, unless it has a row; returns whether it succeeded."""
    words = shlex.split(command)[1:]
    made = Path("runs") if TRAIN.match(command) else Path("others") / hashlib.sha256(command.encode()).hexdigest()[:12]
    if (row := rows.get(command)) and not arguments.small and not changed(row):
        needed = words[0] == "train" and made == Path("runs")
        if not needed or any((arguments.out / made).glob(f"{_run(words).name}/final")):
            return not row["failed"]
    begin = time.monotonic()
    if not arguments.small:
        shutil.rmtree(arguments.out / (made / _run(words).name if words[0] == "train" else made), ignore_errors=True)
    more = [*(SMALL[words[0]] if arguments.small else ()), f"--out={made}", *(QUIET if words[0] == "train" else ())]
    error = _command([*words, *more], url, arguments)
    print(f"{time.monotonic() - begin:6.1f} s  {'FAILED' if error else 'ok':6}  {command}", flush=True)
    if error:
        print(error, flush=True)
    if not arguments.small:
        run = _run(words)
        found: Row = {"command": command, "verb": words[0], "failed": error.strip().splitlines()[-1] if error else ""}
        if not error:
            found |= (
                _trained(arguments.out / made / run.name)
                if words[0] == "train"
                else _searched(arguments, words, made, url)
            )
        found |= {"minutes": round((time.monotonic() - begin) / 60, 2), "commit": commit()}
        add_row(FILE, found | {"sources": sources(run)}, ["command"])
    return not error


def _command(words: Sequence[str], url: str, arguments: argparse.Namespace) -> str:
    """Execute a command; returns the end of its messages where it fails, else ""."""
    command = [sys.executable, "-m", "bough", *(each.replace(SERVER, url) for each in words)]
    try:
        done = subprocess.run(
            command,
            cwd=arguments.out,
            capture_output=True,
            text=True,
            check=False,
            timeout=60 * arguments.minutes,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {arguments.minutes:g} minutes"
    return "" if done.returncode == 0 else done.stderr[-1500:] or "no message"


def _run(words: Sequence[str]) -> Run:
    """The run that a command describes; a search of a run directory is one of the run's recipe."""
    verb, target, *rest = words
    on = rest[rest.index("--on") + 1] if "--on" in rest else None
    changes = [each for each in rest if "=" in each and "(" not in each.partition("=")[0]]
    if verb == "train":
        return override(find_run(target, on), changes)
    name = target.removeprefix("runs/")
    method, _, world = name.rpartition("_")
    recipe = find_run(name, on) if on or name in _recipes() else find_run(method, world)
    return override(recipe, [f"explorer={rest[0]}", *changes])


def _recipes() -> set[str]:
    from bough.cli.find import names

    return {*names("recipes")}


def _trained(folder: Path) -> Row:
    directory = RunDirectory.open(folder)
    results = read_heldout(directory)
    rows = [row for row in read_metrics(directory.metrics) if row.get("phase") == "rl"]
    base = next((row["metrics"] for row in read_rows(FILE) if row["command"] == BASE), None)
    seen = sorted({name for row in rows for name in row})
    return {
        "first": _count(results[min(results)]),
        "last": _count(results[max(results)]),
        "steps": len(rows),
        "own": {} if base is None else own_metrics(rows, base),
        "metrics": seen,
    }


def own_metrics(rows: Sequence[Mapping[str, object]], base: Sequence[str]) -> dict[str, float]:
    """Means over the steps of the numbers that the base training does not write."""
    found: dict[str, float] = {}
    for name in sorted({name for row in rows for name in row} - {*base}):
        values = [float(row[name]) for row in rows if isinstance(row.get(name), int | float)]  # type: ignore[arg-type]
        if values and not name.startswith(("time/", "speed/", "memory/", "heldout/")):
            mean = float(np.nanmean(values))
            if math.isfinite(mean):
                found[name] = mean
    return found


def _searched(arguments: argparse.Namespace, words: Sequence[str], made: Path, url: str) -> Row:
    """The search's result beside one path, and best of n with as many tokens."""
    solved, tokens = _result(arguments.out / made)
    row: Row = {"solved": solved, "tokens": tokens}
    budget = f"limits.tree_tokens={max(1, math.ceil(tokens))}"
    for name, explorer, limits in (("one_path", "BestOf(n=1)", ()), ("best_of_n", "BestOf(n=1000)", (budget,))):
        out = made.with_name(f"{made.name}_{name}")
        shutil.rmtree(arguments.out / out, ignore_errors=True)
        kept = [each for each in words[3:] if not each.startswith("limits.tree")]
        error = _command([*words[:2], explorer, *kept, *limits, f"--out={out}"], url, arguments)
        row[name] = _result(arguments.out / out)[0] if not error else [0, 0]
    return row


def _result(folder: Path) -> tuple[list[int], float]:
    found = json.loads((folder / "results.json").read_text())
    return _count(found["tasks"]), float(found["cost"]["tokens"])


def _count(successes: Mapping[str, bool]) -> list[int]:
    return [sum(successes.values()), len(successes)]


def _names(system: System) -> set[str]:
    return {system.name, *(entry.name for entry in system.entries)}


if __name__ == "__main__":
    main()
