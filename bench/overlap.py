"""Environment beside engine, and growth beside the update, in a world that costs time and nothing else.

    python bench/overlap.py [--only growth] [--trees 4] [--rounds 3] [--write]

Growth: 8 branches a tree, every step of the environment sleeps for 25 ms in a worker process; with the engine in this
process, and in one of its own. An engine is busy while a pass runs, an environment while its processes sleep, the mean
over them; idle is what the busier of the two has left.
Training: the same with updates, `staleness=0` and `1` in turn; steps a minute, from the metrics that every run writes.
"""

import argparse
import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from bough.context import Full, Plain
from bough.engine import Engine, Local, Sampling
from bough.env import Host, Workers
from bough.explore import Chains
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.rollout import Agent, Deadlines, Limits, RolloutRunner
from bough.store import read_metrics
from bough.train import Checkpointing, Evaluation, Execution, Run, Schedule, Tasks, World, start
from bough.train.stopwatch import Stopwatch
from latency import Latency
from machine import machine
from page import section

ENV = Latency()
SAMPLING = Sampling(max_tokens=16)
SMALL = Tiny(layers=2, width=128, heads=4, vocab_tokens=512, context_tokens=1024)
LARGER = replace(SMALL, layers=4, width=256)
PROFILES = (("4 layers of 256", LARGER, 8), ("2 layers of 128", SMALL, 8), ("2 layers of 128", SMALL, 1))
STEPS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("growth", "training"))
    parser.add_argument("--trees", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.only != "training":
        with section("overlap-growth", keep=arguments.write) as say:
            say("| model | worker processes | engine's | growth, s | engine busy | environment busy | idle |")
            say("|---" * 7 + "|")
            for profile in PROFILES:
                for processes in (0, 1):
                    say(asyncio.run(builder(*profile, processes, arguments.trees, arguments.rounds)))
            say(f"\n{machine()}")
    if arguments.only != "growth":
        with section("overlap-training", keep=arguments.write) as say:
            say("| model | worker processes | steps a minute, 0 | steps a minute, 1 | 1 / 0 |")
            say("|---" * 5 + "|")
            for profile in PROFILES:
                say(training(*profile, arguments.trees, arguments.rounds))
            say(f"\n{machine()}")


async def builder(name: str, tiny: Tiny, workers: int, processes: int, trees: int, rounds: int) -> str:
    """A line: medians over some rounds, without the first, in which processes start."""
    policy = tiny.build([ENV.instructions, *(str(ENV.start(task).observation) for task in ENV.tasks("train", 64, 0))])
    engine, host = Local(slots=256, processes=processes).build(policy), Workers(env=ENV, count=workers)
    runner = _runner(policy, engine, host, trees)
    seen: list[dict[str, float]] = []
    try:
        for number in range(rounds + 1):
            watch = Stopwatch()
            with watch("grow", engine=engine, env=host):
                await runner.run(Chains(n=8), ENV.tasks("train", trees, number), seed=number)
            seen.append(watch.seconds)
    finally:
        await host.close()
        await engine.close()
    shares = [median(each[f"grow/{part}"] / each["grow"] for each in seen[1:]) for part in ("engine", "env", "idle")]
    wall_s = median(each["grow"] for each in seen[1:])
    shown = " | ".join(f"{share:.0%}" for share in shares[:2])
    return f"| {name} | {workers} | {processes or 'none'} | {wall_s:.2f} | {shown} | **{shares[2]:.1%}** |"


def _runner(policy: Policy, engine: Engine, host: Host, trees: int) -> RolloutRunner:
    agent = Agent(engine=engine, renderer=policy.renderer, context=Full(), parser=Plain(), sampling=SAMPLING)
    return RolloutRunner(
        agent=agent,
        host=host,
        instructions=ENV.instructions,
        limits=Limits(turns=ENV.turns + 1),
        deadlines=Deadlines(),
        max_concurrent=trees,
    )


def training(name: str, tiny: Tiny, workers: int, trees: int, rounds: int) -> str:
    """A line: medians over the steps of some runs of either kind, in turn."""
    world = World(
        name="frozenlake",
        env=ENV,
        policy=tiny,
        limits=Limits(turns=ENV.turns + 1),
        sampling=SAMPLING,
        optimizer=Optimizer(learning_rate=1e-4),
        schedule=Schedule(steps=STEPS, batch_tasks=trees),
        execution=Execution(engine=Local(slots=256), workers=workers, threads=1),
        tasks=Tasks(split="train", count=100),
        evaluation=Evaluation(tasks=Tasks(split="test", count=1), every=1000),
    )
    run = world.run(explorer=Chains(n=8)).replace(checkpointing=Checkpointing(every=1000, trees_every=0))
    took: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(rounds):
        for staleness in took:
            took[staleness] += steps_s(run.replace(staleness=staleness))
    now, ahead = (60 / median(seconds) for seconds in took.values())
    return f"| {name} | {workers} | {now:.1f} | {ahead:.1f} | **{ahead / now:.2f}** |"


def steps_s(run: Run) -> list[float]:
    """How long each step took, without the first, in which processes start, and the last, which grows nothing ahead."""
    with tempfile.TemporaryDirectory() as folder:
        rows = read_metrics(start(run, Path(folder), terminal=False).metrics)
    steps = [row for row in rows if "speed/tokens_per_s" in row][1:-1]
    return [float(row["speed/sampled_tokens"]) / float(row["speed/tokens_per_s"]) for row in steps]


if __name__ == "__main__":
    main()
