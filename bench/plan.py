"""The planner against this machine: one run is measured, others are forecast from it, trained and compared.

    python bench/plan.py [--rounds 2] [--step-s 0.02] [--write]

The measured run has one environment worker, one rank and no staleness; a second one with two ranks gives
`exchange_s`. Forecast from them are two workers, staleness 1, and two ranks with both. Every step of the environment
sleeps in a worker process. The runs of a round are trained in turn. Seconds of a step are medians over rounds, without
the first step, in which processes start, and the last, which grows nothing ahead.
"""

import argparse
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from bough.engine import Local, Sampling
from bough.explore import Chains
from bough.learner import Optimizer
from bough.plan import (
    MeasuredRates,
    MeasuredRun,
    fit_exchange_s,
    fit_loop_s,
    measure_stages,
    measured_deployment,
    simulate,
)
from bough.policy import Tiny
from bough.rollout import Limits
from bough.store import RunDirectory, read_metrics
from bough.train import Checkpointing, Evaluation, Execution, Run, Schedule, Tasks, World, start
from latency import Latency
from machine import machine
from page import write
from stolen import Stolen

STEPS, TREES, EPISODES = 6, 8, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table."""

    workers: int = 1
    ranks: int = 1
    staleness: int = 0

    def __str__(self) -> str:
        return f"{self.workers} | {self.ranks} | {self.staleness}"


BASE = Setting()
PAIR = Setting(ranks=2)
SETTINGS = (BASE, Setting(workers=2), PAIR, Setting(staleness=1), Setting(workers=2, ranks=2, staleness=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--step-s", type=float, default=0.02)
    parser.add_argument("--write", action="store_true", help="put the table into docs/plan.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stolen, took = Stolen(), {setting: list[float]() for setting in SETTINGS}
    bases, pairs = list[MeasuredRun](), list[MeasuredRun]()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for setting in SETTINGS:
                directory = start(configured(setting, arguments.step_s), Path(folder), terminal=False)
                took[setting] += steps_s(directory)
                bases += [measure_stages(directory)] if setting == BASE else []
                pairs += [measure_stages(directory)] if setting == PAIR else []
                shutil.rmtree(directory.path)
    base, pair = (sorted(runs, key=lambda run: run.step_s)[len(runs) // 2] for runs in (bases, pairs))
    text = "\n".join(
        [*table(base, pair, took), "", f"{machine(1)}; CPU time taken by other machines {stolen.share():.0%}"]
    )
    print(text)
    if arguments.write:
        write("plan.md", "plan-measured", text)


def configured(setting: Setting, step_s: float) -> Run:
    world = World(
        name="latency",
        env=Latency(step_s=step_s),
        policy=Tiny(layers=3, width=192, heads=4, vocab_tokens=512, context_tokens=1024),
        limits=Limits(turns=9),
        sampling=Sampling(max_tokens=16),
        optimizer=Optimizer(learning_rate=1e-6),
        schedule=Schedule(steps=STEPS, batch_tasks=TREES),
        execution=Execution(
            engine=Local(slots=256),
            workers=setting.workers,
            ranks=setting.ranks,
            staleness=setting.staleness,
            threads=1,
        ),
        tasks=Tasks(split="train", count=100),
        evaluation=Evaluation(tasks=Tasks(split="test", count=1), every=1000),
    )
    name = f"w{setting.workers}r{setting.ranks}s{setting.staleness}"
    checkpointing = Checkpointing(every=1000, trees_every=1)
    return world.run(explorer=Chains(n=EPISODES)).replace(checkpointing=checkpointing, name=name)


def steps_s(directory: RunDirectory) -> list[float]:
    rows = [row for row in read_metrics(directory.metrics) if "speed/tokens_per_s" in row]
    return [float(row["speed/sampled_tokens"]) / float(row["speed/tokens_per_s"]) for row in rows[1:-1]]


def table(base: MeasuredRun, pair: MeasuredRun, took: dict[Setting, list[float]]) -> list[str]:
    lines = ["| workers | ranks | staleness | measured, s a step | forecast | difference |", "|---" * 6 + "|"]
    loop_s, exchange_s = fit_loop_s(base), fit_exchange_s(base, pair)
    for setting, seconds in took.items():
        plan = measured_deployment(base, workers=setting.workers, staleness=setting.staleness, loop_s=loop_s)
        found = simulate(plan, MeasuredRates(run=base, ranks=setting.ranks, exchange_s=exchange_s), base.trees)
        forecast_s, measured_s = found.seconds / found.batches, median(seconds)
        kind = "fitted" if setting in (BASE, PAIR) else f"**{forecast_s / measured_s - 1:+.0%}**"
        lines.append(f"| {setting} | {measured_s:.2f} | {forecast_s:.2f} | {kind} |")
    return lines


if __name__ == "__main__":
    main()
