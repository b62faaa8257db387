"""Does a method harm a policy? Every method from one warmed start, on the world of its first command.

    python bench/no_harm.py                      # methods without a row, or whose command or code changed since
    python bench/no_harm.py cpi digi_q --seeds 0 1 2
    python bench/no_harm.py --confirm            # rows whose code changed since: short runs with both codes
    python bench/no_harm.py --old                # which rows are older than their code
    python bench/no_harm.py --write

A start is the policy after the warm-up of the method's world; methods that leave world, policy and format alone share
it. From there each trains for forty steps, or for the rounds of its command if these are fewer. A row has success on
the same held-out tasks before and after, the method's own metrics (those that GRPO does not write; means over the
steps), and a digest of the final weights: two methods with the same digest have the same gradients. Rows are kept in
bench/results/no_harm.jsonl with their commit. A model of a server is one that answers by rule (bench/rule_server.py).
`--confirm` shows that a row holds though its code was moved or rewritten (bench/confirm.py); a row that it does not
confirm is to be measured again. `--write` puts the table into docs/evidence.md: a fall is significant where the 95 %
interval of the paired difference over all seeds lies below 0.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import rule_server
from bough.cli.catalogue import entries
from bough.cli.find import find_run, modules
from bough.cli.systems import commands_of
from bough.config import dump, override
from bough.learner import Optimizer
from bough.policy import Pretrained
from bough.store import RunDirectory, read_metrics
from bough.train import Run, Warmup, read_heldout, start
from bough.train.unused import needed_roles
from bough.view import paired
from confirm import ShortRuns, checkout, confirm
from machine import machine
from page import put
from printed_commands import MADE, SERVER, own_metrics
from result_rows import RESULTS, Row, add_row, changed, commit, read_rows, sources

FILE = RESULTS / "no_harm.jsonl"
BASE = "grpo"
"""The method whose metrics belong to no other one; it runs first."""
HELDOUT = 200
"""Held-out tasks at most."""


def main() -> None:
    arguments = _arguments()
    if arguments.write:
        put("evidence.md", "no harm", "\n".join(table(read_rows(FILE))))
        return
    commands = printed()
    if unknown := {*arguments.methods} - {*commands}:
        sys.exit(f"methods: got {sorted(unknown)}; need some of {list(commands)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        method, seed = arguments.one
        _measure(arguments, method, commands[method], int(seed))
        return
    rows = [row for row in read_rows(FILE) if row["method"] in (arguments.methods or commands)]
    old = [row for row in rows if row["command"] != commands[row["method"]] or changed(row)]
    if arguments.old:
        missing = {*(arguments.methods or commands)} - {row["method"] for row in rows}
        print(f"without a row: {' '.join(sorted(missing))}\nold: {' '.join(row['method'] for row in old)}")
        return
    if arguments.confirm:
        _confirm(arguments, [row for row in old if row["command"] == commands[row["method"]] and not row["failed"]])
        return
    have = {(row["method"], row["seed"]) for row in rows if row not in old}
    todo = [(method, seed) for seed in arguments.seeds for method in arguments.methods or commands]
    with rule_server.serve() as url:
        for method, seed in todo:
            if (method, seed) not in have:
                _process(arguments, method, commands[method], seed, url)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", help="all, or some")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=20, help="the longest that a method may take")
    parser.add_argument("--out", type=Path, default=Path("runs/no_harm"))
    parser.add_argument("--confirm", action="store_true", help="confirm old rows by short runs")
    parser.add_argument("--old", action="store_true", help="name the methods without a row, and with an old one")
    parser.add_argument("--write", action="store_true", help="write the table of the docs")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--server", default=SERVER, help=argparse.SUPPRESS)
    return parser.parse_args()


def printed() -> dict[str, str]:
    """By method, its first printed command that trains it; GRPO first."""
    found: dict[str, str] = {}
    for entry in entries():
        if entry.room == "methods":
            own = [each for each in commands_of(entry) if shlex.split(each)[1] == "train"]
            found[entry.name] = own[0] if own else f"bough train {entry.name} --on sokoban"
    return {BASE: found[BASE]} | found


def table(rows: Sequence[Row]) -> list[str]:
    """A Markdown table, a line a method: seeds are pooled."""
    lines = [
        "| method | world | before, % | after, % | difference, 95 % | its own metrics | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    same: dict[str, list[str]] = {}
    for row in rows:
        same.setdefault(row.get("weights", ""), []).append(row["method"])
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        cells = [method, own[0]["world"], *_cells(own, same), _commits(own[-1])]
        lines.append(f"| {' | '.join(cells)} |")
    minutes, measured = sum(row["minutes"] for row in rows), len({row["method"] for row in rows})
    count = f"{measured} of {len(printed())} methods so far; " if measured < len(printed()) else ""
    confirmed = sum("confirmed" in row for row in rows)
    count += f"{confirmed} of {len(rows)} rows confirmed since; " if confirmed else ""
    return [*lines, "", f"{count}{HELDOUT} held-out tasks at most; {minutes:.0f} minutes in all; {machine(1)}"]


def _commits(row: Row) -> str:
    """Where a row was measured and, if it was, confirmed."""
    if not (later := row.get("confirmed")):
        return row["commit"][:8]
    return f"{row['commit'][:8]}, confirmed at {later['commit'][:8]} ({later['steps']} steps)"


def _cells(own: Sequence[Row], same: Mapping[str, Sequence[str]]) -> list[str]:
    """Success before and after, the difference, and the metrics of a method."""
    if failed := [row["failed"] for row in own if row["failed"]]:
        return [f"failed: {failed[0]}", "", "", ""]
    before, after = ("".join(row[name] for row in own) for name in ("before", "after"))
    low, high = (100 * each for each in difference(own))
    gain = 100 * (after.count("1") - before.count("1")) / len(before)
    falls = " **falls**" if high < 0 else ""
    terms = [f"{name} {value:.3g}" for name, value in own[0]["own"].items()]
    terms += [f"weights of {each}" for each in same.get(own[0]["weights"], ()) if each != own[0]["method"]]
    return [_percent(before), _percent(after), f"{gain:+.1f} ({low:+.1f} to {high:+.1f}){falls}", ", ".join(terms)]


def sentence(own: Sequence[Row]) -> str:
    """The rows of a method in a sentence."""
    before, after, interval = _cells(own, {})[:3]
    return (
        f"`{own[0]['command']}`, {own[0]['steps']} steps from a warmed policy: held-out success {before} % before, "
        f"{after} % after; {interval}."
    )


def difference(rows: Sequence[Row]) -> tuple[float, float]:
    """The 95 % interval of success after minus before, over the tasks of all seeds."""
    before, after = ([each == "1" for row in rows for each in row[name]] for name in ("before", "after"))
    return paired(before, after)


def _percent(successes: str) -> str:
    return f"{100 * successes.count('1') / len(successes):.1f}"


def _process(arguments: argparse.Namespace, method: str, command: str, seed: int, url: str) -> None:
    """Measure a method in a process of its own, and add its row."""
    begin = time.monotonic()
    words = [sys.executable, __file__, f"--out={arguments.out}", f"--steps={arguments.steps}", f"--server={url}"]
    try:
        done = subprocess.run(
            [*words, "--one", method, str(seed)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60 * arguments.minutes,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        error = "" if done.returncode == 0 else (done.stderr.strip() or "no message").splitlines()[-1]
    except subprocess.TimeoutExpired:
        # Another time with more minutes: it has no row.
        print(f"{method}, seed {seed}: it takes more than {arguments.minutes:g} minutes", flush=True)
        return
    file = _folder(arguments.out, method, seed) / "row.json"
    run = _run(command, SERVER)
    row: Row = {"method": method, "seed": seed, "command": command, "world": run.world.name, "failed": error}
    row |= json.loads(file.read_text()) if not error else {}
    row |= {"minutes": round((time.monotonic() - begin) / 60, 2), "commit": commit()}
    add_row(FILE, row | {"sources": _sources(run, method, command)}, ["method", "seed"])
    said = error or f"{_percent(row['before'])} to {_percent(row['after'])} %"
    print(f"{row['minutes']:5.1f} min  {method} --on {row['world']}, seed {seed}: {said}", flush=True)


def _confirm(arguments: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Confirm rows, those of one commit after the other; print why one is not confirmed."""
    now = commit()
    out = arguments.out.absolute() / "short" / now
    with checkout(now) as here, closing(ShortRuns(here, out / "present", HELDOUT, arguments.minutes)) as new:
        rows = sorted(rows, key=lambda row: row["minutes"] / row["steps"])
        for past in dict.fromkeys(row["commit"] for row in rows):
            with checkout(past) as there, closing(ShortRuns(there, out / past, 1, arguments.minutes)) as old:
                for row in [row for row in rows if row["commit"] == past]:
                    run = _run(row["command"], SERVER)
                    steps, reason = confirm(row, old, new)
                    if row["steps"] > run.world.schedule.steps:
                        steps, reason = 0, f"a new row would have {run.world.schedule.steps} steps"
                    if steps:
                        later = {"commit": now, "steps": steps, "sources": _sources(run, row["method"], row["command"])}
                        add_row(FILE, row | {"confirmed": later}, ["method", "seed"])
                    said = f"confirmed by {steps} steps" if steps else f"to be measured again: {reason}"
                    print(f"{row['method']}, seed {row['seed']}: {said}", flush=True)


def _sources(run: Run, method: str, command: str) -> list[str]:
    return sources(run, f"methods/{method}", *_world(command))


def _world(command: str) -> list[str]:
    words = shlex.split(command)
    names = [words[words.index("--on") + 1]] if "--on" in words else []
    return [modules("worlds")[name].removeprefix("bough.").replace(".", "/") for name in names]


def _run(command: str, url: str) -> Run:
    _, _, method, *rest = shlex.split(command.replace(SERVER, url))
    on = rest[rest.index("--on") + 1] if "--on" in rest else None
    return override(find_run(method, on), [each for each in rest if each not in ("--on", on)])


def _folder(out: Path, method: str, seed: int) -> Path:
    return out.absolute() / f"{method}_seed{seed}"


def _measure(arguments: argparse.Namespace, method: str, command: str, seed: int) -> None:
    """Train the start, unless it is there, and the method from it; write what was measured into the run's folder."""
    folder = _folder(arguments.out, method, seed)
    shutil.rmtree(folder, ignore_errors=True)
    run = _run(command, arguments.server)
    os.chdir(arguments.out)
    for name in MADE.findall(command):
        if not Path("runs", name, "final").is_dir():
            start(override(find_run(name), ["threads=1"]), Path("runs"), terminal=False)
    tasks = run.world.evaluation.tasks
    # A round of self-training may search hundreds of tasks; papers have a few.
    steps = min(arguments.steps, run.world.schedule.steps)
    evaluation = replace(run.world.evaluation, every=steps, tasks=replace(tasks, count=min(HELDOUT, tasks.count)))
    run = run.replace(
        name=folder.name,
        seed=seed,
        steps=steps,
        policy=Pretrained(path=str(_start(run, seed))),
        warmup=Warmup(),
        evaluation=evaluation,
        threads=1,
    )
    directory = start(
        override(run, ["checkpointing.trees_every=0", "checkpointing.keep=1"]), folder.parent, terminal=False
    )
    (folder / "row.json").write_text(json.dumps(_row(directory)))


def _start(run: Run, seed: int) -> Path:
    """The folder of the policy after the warm-up of a world, with this seed."""
    world = run.world
    warm = find_run("grpo", world).replace(steps=0, seed=seed, name="start", threads=1)
    warm = warm.replace(models={role: model for role, model in run.models.items() if role in needed_roles(warm)})
    warm = warm.replace(evaluation=replace(run.world.evaluation, tasks=replace(run.world.evaluation.tasks, count=1)))
    # What no imitation reads: methods that differ in nothing else have one start.
    standard = Optimizer()
    unread = {name: getattr(standard, name) for name in ("learning_rate", "momentum", "igt_weight", "schedule")}
    unread |= {name: getattr(standard, name) for name in ("epochs", "minibatches", "warmup_steps")}
    warm = warm.replace(filters=(), regularizers=(), optimizer=replace(world.optimizer, **unread))
    key = hashlib.sha256(json.dumps(dump(warm), sort_keys=True, default=str).encode()).hexdigest()[:12]
    name = f"start_{world.name}_{key}"
    made = Path(name, "final")
    if not made.is_dir():
        shutil.rmtree(name, ignore_errors=True)
        start(warm.replace(name=name), Path(), terminal=False)
    return made.absolute()


def _row(directory: RunDirectory) -> Row:
    results = read_heldout(directory)
    before, after = results[min(results)], results[max(results)]
    tasks = sorted(before.keys() & after.keys())
    rows: Sequence[Mapping[str, object]] = [
        row for row in read_metrics(directory.metrics) if row.get("phase") == "rl" and "loss/total" in row
    ]
    seen = sorted({name for row in rows for name in row})
    base = next((row["metrics"] for row in read_rows(FILE) if row["method"] == BASE and not row["failed"]), seen)
    weights = hashlib.sha256()
    for file in sorted(directory.final.glob("*.safetensors")):
        weights.update(file.read_bytes())
    return {
        "before": "".join("1" if before[each] else "0" for each in tasks),
        "after": "".join("1" if after[each] else "0" for each in tasks),
        "steps": len(rows),
        "own": own_metrics(rows, base),
        "weights": weights.hexdigest()[:16],
        "metrics": seen if directory.path.name.startswith(f"{BASE}_seed") else [],
    }


if __name__ == "__main__":
    main()
