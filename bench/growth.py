"""The growth of FrozenLake's trees in this checkout and in another one, in turn: processor seconds and their ratio.

    git worktree add ../before COMMIT
    python bench/growth.py ../before [--rounds 24]

Each checkout is a process of its own with the world of `make demo`: its engine, 16 tasks, 8 chains each, one thread.
Imports and a first round are not timed. What counts is the median over rounds of the ratios.
"""

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch

from bough.env.inline import InProcessHost
from bough.explore import Chains
from bough.rollout import Agent, Deadlines, RolloutRunner
from bough.worlds.frozenlake import frozenlake
from machine import machine

HERE = Path(__file__).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout; without one, this process is a side")
    parser.add_argument("--rounds", type=int, default=24)
    given = parser.parse_args()
    if given.other is None:
        asyncio.run(grow())
        return
    sides = [_start(folder) for folder in (given.other.resolve(), HERE.parent.parent)]
    seconds: list[tuple[float, float]] = []
    for number in range(given.rounds):
        # Either side is first in every second round.
        taken = {side: _ask(sides[side], number) for side in ((0, 1), (1, 0))[number % 2]}
        seconds.append((taken[0], taken[1]))
    for side in sides:
        side.communicate()
    before, now = (median(each) for each in zip(*seconds, strict=True))
    print(f"{before:.3f} s before, {now:.3f} s now; now / before {median(b / a for a, b in seconds):.3f}; {machine(1)}")


async def grow() -> None:
    """Answer each line, a seed, with the processor seconds of the growth of 16 trees."""
    torch.set_num_threads(1)
    world = frozenlake()
    tasks = world.env.tasks("train", 16, 0)
    policy = world.policy.build([world.env.instructions, *(world.env.start(task).observation for task in tasks)])
    agent = Agent(
        engine=world.execution.engine.build(policy),
        renderer=policy.renderer,
        context=world.context,
        parser=world.parser,
        sampling=world.sampling,
    )
    runner = RolloutRunner(
        agent=agent,
        host=InProcessHost(env=world.env),
        instructions=world.env.instructions,
        limits=world.limits,
        deadlines=Deadlines(),
    )
    await runner.run(Chains(n=8), tasks, seed=0)
    print("ready", flush=True)
    for line in sys.stdin:
        gc.collect()
        begin = time.process_time()
        await runner.run(Chains(n=8), tasks, seed=int(line))
        print(time.process_time() - begin, flush=True)


def _start(folder: Path) -> subprocess.Popen[str]:
    side = subprocess.Popen(
        [sys.executable, str(HERE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
    )
    side.stdout.readline()
    return side


def _ask(side: subprocess.Popen[str], seed: int) -> float:
    print(seed, file=side.stdin, flush=True)
    return float(side.stdout.readline())


if __name__ == "__main__":
    main()
