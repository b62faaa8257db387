"""Where the time of a training goes: the share of each stage, recipe by recipe, from the metrics that every run writes.

    python bench/stages.py [--recipes grpo_frozenlake grpo_sokoban] [--steps 5] [FIELD=VALUE ...]

Each recipe warms up as it always does and then trains for a few steps. An evaluation is spread over the steps between
two of them, as in a whole run. Prints a Markdown table.
"""

import argparse
import tempfile
from pathlib import Path

from bough.cli.find import find_run
from bough.config import override
from bough.store import read_metrics
from bough.train import Run, start
from machine import machine
from page import section

GRPO = ["grpo_frozenlake", "grpo_sokoban", "grpo_textworld"]
STAGES = ("grow", "credit", "learn", "sync", "evaluate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("changes", nargs="*", help="fields to change, as for `bough train`")
    parser.add_argument("--recipes", nargs="+", default=GRPO)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_intermixed_args()
    with section("stages", keep=arguments.write) as say:
        say(f"| recipe | s a step | {' | '.join(STAGES)} | sampled tokens/s |")
        say("|---" * (len(STAGES) + 3) + "|")
        for recipe in arguments.recipes:
            run = override(find_run(recipe), [*arguments.changes, f"steps={arguments.steps}"])
            say(measure(recipe, run))
        say(f"\n{machine()}")


def measure(recipe: str, run: Run) -> str:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = read_metrics(start(run, Path(folder), terminal=False).metrics)
    steps = [row for row in metrics if row["phase"] == "rl" and "time/grow_s" in row]
    spent = {stage: sum(float(row.get(f"time/{stage}_s", 0.0)) for row in steps) / len(steps) for stage in STAGES}
    evaluations = sum("time/evaluate_s" in row for row in steps)
    spent["evaluate"] *= len(steps) / evaluations / run.world.evaluation.every
    total_s = sum(spent.values())
    shares = " | ".join(f"{spent[stage] / total_s:.1%}" for stage in STAGES)
    tokens = sum(float(row["speed/sampled_tokens"]) for row in steps) / len(steps)
    return f"| `{recipe}` | {total_s:.2f} | {shares} | {tokens / total_s:,.0f} |"


if __name__ == "__main__":
    main()
