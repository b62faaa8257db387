"""Calls of tools with a grammar and without: malformed calls and held-out success of SmolLM2-135M on the pantry.

    python bench/restricted_calls.py [--tasks 12] [--shots 12] [--seeds 2] [--write]

Each seed samples one episode of each held-out task at temperature 1, first with the policy as it is, then after it
imitated `shots` other tasks of that split, both times with `ToolCalls(grammar=false)` and `ToolCalls(grammar=true)`.
Prints a Markdown table, and stores a row for each seed in bench/results/restricted_calls.jsonl; a stored row is not
measured again. `--write` puts the table into docs/policies.md.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from typing import Any

from bough.cli.find import find_run
from bough.config import override
from bough.evaluate import evaluate
from bough.policies.smollm2 import smollm2
from bough.train import HeldoutResult, World
from bough.tree import BadCall, Kind, Ternary
from bough.tree.texts import calls_in
from bough.worlds.pantry.preset import pantry
from machine import machine
from page import write
from result_rows import RESULTS, add_row, commit, read_rows

FILE = RESULTS / "restricted_calls.jsonl"
KEY = ("seed", "grammar", "tasks", "shots")
HEAD = "| policy | grammar | malformed calls, by seed | invalid turns | held-out success |\n|---|---|---|---|---|"
STAGES = {"before": "as it is", "after": "after {shots} demonstrations"}


def main() -> None:
    """Measure what is not stored, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=12, help="held-out tasks that are measured")
    parser.add_argument("--shots", type=int, default=12, help="other held-out tasks, whose demonstrations are imitated")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the table into docs/policies.md")
    options = parser.parse_args()
    rows = list[dict[str, Any]]()
    for seed in range(options.seeds):
        for grammar in (False, True):
            key = {"seed": seed, "grammar": grammar, "tasks": options.tasks, "shots": options.shots}
            known = [each for each in read_rows(FILE) if all(each[name] == key[name] for name in KEY)]
            if not known:
                known = [key | measured(smollm2(pantry()), **key)]
                add_row(FILE, known[0], KEY)
            rows += known
            print(known[0], flush=True)
    table = "\n".join([HEAD, *lines(rows)])
    print(table)
    if options.write:
        write("policies.md", "restricted calls", f"{table}\n\n{rows[0]['machine']}, commit {rows[0]['commit']}")


def measured(world: World, *, seed: int, grammar: bool, tasks: int, shots: int) -> dict[str, Any]:
    """A row without its key: the counts before and after the demonstrations, commit and machine."""
    changes = [
        f"parser.grammar={grammar}".lower(),
        f"seed={seed}",
        f"evaluation.seed={seed}",
        "evaluation.temperature=1",
        f"evaluation.tasks.count={tasks + shots}",
        "threads=1",
    ]
    began = time.monotonic()
    found = evaluate(override(find_run("grpo", world), changes), shots=shots)
    assert found.before is not None
    return {
        "before": counts(found.before),
        "after": counts(found.score),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "commit": commit(),
        "machine": machine(1),
    }


def counts(score: HeldoutResult) -> dict[str, int]:
    """The calls, the malformed ones, the turns, the invalid ones, the tasks and the successes."""
    found = dict.fromkeys(("calls", "malformed", "turns", "invalid"), 0)
    for tree in score.trees:
        for node in (tree.kind == Kind.ACTION).nonzero()[0].tolist():
            calls = calls_in(tree.info[node])
            found["calls"] += len(calls)
            found["malformed"] += sum(isinstance(call, BadCall) for call in calls)
            found["turns"] += 1
            found["invalid"] += tree.valid[node] == Ternary.NO
    return found | {"tasks": len(score.successes), "successes": sum(score.successes.values())}


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line of the table for each stage of the policy, with the grammar and without."""
    found = list[str]()
    for stage, text in STAGES.items():
        for grammar in (False, True):
            seeds = [row[stage] for row in rows if row["grammar"] == grammar]
            cells = [
                ", ".join(f"{each[part]} of {each[whole]}" for each in seeds)
                for part, whole in (("malformed", "calls"), ("invalid", "turns"), ("successes", "tasks"))
            ]
            name = text.format(shots=rows[0]["shots"])
            found.append(f"| SmolLM2-135M, {name} | {'yes' if grammar else 'no'} | {' | '.join(cells)} |")
    return found


if __name__ == "__main__":
    main()
