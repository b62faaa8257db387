"""The tables of worlds in docs/check_env.md: `bough check-env` of each, with the times and the memory that it measured.

    python bench/env_table.py                       # every world whose packages are installed
    python bench/env_table.py shop ledger           # some
    python bench/env_table.py --row                 # the second table: 1,000 episodes in a row of each

A world whose packages are missing keeps the row that it has in the page.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bough.cli.find import names
from bough.evaluate import CheckSizes
from bough.evaluate.envs import Mark
from page import DOCS, write

PAGE, SECTION, ROW_SECTION = "check_env.md", "worlds", "episodes"
LEAKS = ("memory", "open files", "processes left")
ROW_HEAD = ["world", "episodes", "memory", "growth", "its processes", "their growth", "open files", "processes left"]
HEAD = [
    "world", "branching", "reset", "step", "copy or replay", "plan", "oracle", "turns", "memory", "growth", "checks"
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", help="names of worlds; all if none is given")
    parser.add_argument("--tasks", type=int, default=CheckSizes().tasks)
    parser.add_argument("--row", action="store_true", help="episodes in a row, and nothing else")
    parser.add_argument("--episodes", type=int, help=f"{CheckSizes().episodes}; 1,000 with --row")
    parser.add_argument("--steps", type=int, default=CheckSizes().steps)
    parser.add_argument("--seconds", type=float, help=f"{CheckSizes().seconds:g}; 1,800 with --row")
    parser.add_argument("--out", type=Path, help="folder for the reports as JSON")
    parser.add_argument("--dry", action="store_true", help="print the rows, and leave the page as it is")
    args = parser.parse_args()
    section, head = (ROW_SECTION, ROW_HEAD) if args.row else (SECTION, HEAD)
    rows = {} if args.dry else old_rows(section)
    failed = []
    episodes = args.episodes or (1000 if args.row else CheckSizes().episodes)
    seconds = args.seconds or (1800 if args.row else CheckSizes().seconds)
    sizes = [f"--tasks={args.tasks}", f"--episodes={episodes}", f"--seconds={seconds}", f"--steps={args.steps}"]
    sizes += [f"--only={name}" for name in LEAKS if args.row]
    for world in args.worlds or sorted(names("worlds")):
        report = checked(world, sizes, args.out)
        if report is None:
            continue
        rows[world] = (in_a_row if args.row else row)(world, report)
        failed += [] if report["passed"] else [world]
        print(rows[world], flush=True)
        if not args.dry:
            table = [line(head), line(["---"] * len(head)), *(rows[each] for each in sorted(rows))]
            write(PAGE, section, "\n".join(table))
    if failed:
        sys.exit(f"checks failed in {', '.join(failed)}; see `bough check-env WORLD`")


def checked(world: str, sizes: list[str], out: Path | None) -> dict[str, Any] | None:
    """The report of a world, from a process of its own; None where its packages are missing."""
    with tempfile.TemporaryDirectory() as folder:
        file = (out or Path(folder)) / f"{world}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "bough", "check-env", world, *sizes, "--out", str(file)]
        ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode not in (0, 1):
            print(f"{world}: left out: {ran.stderr.strip()[-200:]}", flush=True)
            return None
        return json.loads(file.read_text(encoding="utf-8"))


def row(world: str, report: dict[str, Any]) -> str:
    """The row of a world."""
    checks = {check["name"]: check for check in report["checks"]}
    numbers = {name: value for check in checks.values() for name, value in check["numbers"].items()}
    share = numbers.get("oracle_share", math.nan)
    marked = {mark: [name for name, check in checks.items() if check["mark"] == mark] for mark in Mark}
    bad, designed = marked[Mark.FAIL], marked[Mark.BY_DESIGN]
    result = f"fails: {', '.join(bad)}" if bad else f"{len(marked[Mark.PASS])} pass"
    memory = numbers.get("memory_mib", math.nan) + numbers.get("children_mib", 0.0)
    growth = numbers.get("growth_kib_per_episode", math.nan)
    return line(
        [
            f"`{world}`",
            report["branching"],
            *(milliseconds(numbers, call) for call in ("start", "step", "branch", "plan")),
            "" if math.isnan(share) else f"{100 * share:.0f} %",
            "" if math.isnan(share) else f"{numbers['oracle_turns']:.1f}",
            "" if math.isnan(memory) else f"{memory:.0f} MiB",
            "" if math.isnan(growth) else f"{max(0.0, growth):.0f} KiB",
            f"{result}; by design: {', '.join(designed)}" if designed else result,
        ]
    )


def in_a_row(world: str, report: dict[str, Any]) -> str:
    """The row of a world in the table of episodes in a row."""
    numbers = {name: value for check in report["checks"] for name, value in check["numbers"].items()}
    processes = numbers.get("processes", 0.0)
    return line(
        [
            f"`{world}`",
            f"{numbers.get('episodes', 0):,.0f}",
            f"{numbers['memory_mib']:.0f} MiB",
            f"{numbers['growth_mib']:+.1f} MiB",
            f"{numbers['children_mib']:.0f} MiB" if processes else "",
            f"{numbers['children_growth_mib']:+.1f} MiB" if processes else "",
            f"{numbers['files']:.0f} ({numbers['files_growth']:+.0f})",
            f"{numbers.get('left', 0):.0f} of {processes:.0f}",
        ]
    )


def milliseconds(numbers: dict[str, float], call: str) -> str:
    """Median and 95th percentile of a call."""
    if f"{call}_median_ms" not in numbers:
        return ""
    return f"{numbers[f'{call}_median_ms']:.2g} / {numbers[f'{call}_p95_ms']:.2g} ms"


def old_rows(section: str) -> dict[str, str]:
    """The rows of a section of the page, by world."""
    text = (DOCS / PAGE).read_text(encoding="utf-8").partition(f"<!-- {section} -->")[2]
    text = text.partition(f"<!-- end of {section} -->")[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", text, re.MULTILINE)}


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
