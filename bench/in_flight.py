"""How full growth keeps the engine: passes and sequences in flight with limits, by shapes, and calls that wait.

    python bench/in_flight.py [--only limits shapes waiting] [--trees 8] [--rounds 3] [--write]

Limits: trees without a limit, with one that never binds, and with the same limit while each branch waits for the end of
the one before; processor seconds are medians over rounds of the ways in turn, as multiples of those without a limit.
Shapes: passes of each shape, over those of as many chains.
Waiting: 16 episodes of 4 steps on an HTTP server that takes 200 ms a step, long beside what a request costs the
processor; the most requests in flight.
FrozenLake with a small model of random weights.
"""

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any, cast

import torch

from bough.context import Full, Plain
from bough.engine import Local, Sampling
from bough.engine.generation import LocalEngine
from bough.env import Branching, EnvHost, HttpEnv, InProcessHost, Workers
from bough.explore import Chains, EntropyForks, EpTree, Forks, FullTree, Latr, Segments
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.rollout import Agent, Budget, Deadlines, Explorer, Limits, Rollout, RolloutRunner
from bough.tree import Task, Tree, counted
from bough.worlds.frozenlake import FrozenLake
from machine import machine
from page import section

ENV = FrozenLake(size=5, corners=True, max_steps=14)
FREE = Limits(turns=14)
LIMITED = replace(FREE, tree_tokens=10**6)
SAMPLING = Sampling(max_tokens=4)
EPISODES, STEPS, STEP_S = 16, 4, 0.2
SHAPES: Sequence[Explorer] = (
    Forks(),
    Forks(chains=4, draws=1),
    EpTree(chains=4, spots=1, forks_each=1),
    Latr(),
    EntropyForks(paths=8, chains=4),
    FullTree(width=2, depth=3),
    Segments(width=8, tokens=8),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--trees", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only:
        with section(f"in-flight-{name}", keep=arguments.write) as say:
            PARTS[name](say, arguments.trees, arguments.rounds)
            say(f"\n{machine()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InTurn:
    """Grows a tree with each branch after the one before."""

    explorer: Explorer

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        # In an environment that replays, a limit on turns has this order.
        rollout.budget = Budget(replace(rollout.limits, tree_turns=10**9), Branching.REPLAY)
        await self.explorer(rollout)


def limits(say: Callable[[str], None], trees: int, rounds: int) -> None:
    say(
        "| shape | limit | passes | sequences in flight | processor seconds, over those without a limit | equal trees |"
    )
    say("|---" * 6 + "|")
    policy, tasks = _policy(), ENV.tasks("train", trees, 0)
    for explorer in (Chains(n=8), Forks(), FullTree(width=2, depth=3)):
        ways = {
            "none": (explorer, FREE),
            "never binds": (explorer, LIMITED),
            "never binds, one after the other": (InTurn(explorer=explorer), LIMITED),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        grown: dict[str, _Grown] = {}
        for _ in range(rounds):
            for name, (way, bounds) in ways.items():
                grown[name] = _grow(policy, InProcessHost(env=ENV), way, tasks, bounds)
                seconds[name].append(grown[name].processor_s)
        for name, found in grown.items():
            ratio = median(one / other for one, other in zip(seconds[name], seconds["none"], strict=True))
            equal = "yes" if found.tokens == grown["none"].tokens else "no"
            shown = f"{found.passes} | {found.in_flight:.0f} | {ratio:.2f} | {equal}"
            say(f"| `{_name(explorer)}` | {name} | {shown} |")


def shapes(say: Callable[[str], None], trees: int, rounds: int) -> None:
    del rounds
    say("| shape | paths a tree | passes, over those of as many chains | tokens, over theirs | sequences in flight |")
    say("|---" * 5 + "|")
    policy, tasks = _policy(), ENV.tasks("train", trees, 0)
    for explorer in SHAPES:
        found = _grow(policy, InProcessHost(env=ENV), explorer, tasks, FREE)
        chains = _grow(policy, InProcessHost(env=ENV), Chains(n=round(found.paths)), tasks, FREE)
        shown = f"{found.passes / chains.passes:.2f} | {found.sampled / chains.sampled:.2f} | {found.in_flight:.0f}"
        say(f"| `{_name(explorer)}` | {found.paths:.0f} | {shown} |")


def waiting(say: Callable[[str], None], trees: int, rounds: int) -> None:
    del trees
    say("| calls | workers | most requests in flight | seconds |")
    say("|---" * 4 + "|")
    policy = _policy()
    for name, workers in (("one at a time", 0), ("waiting", 0), ("waiting", 2)):
        server = _Server()
        env = (HttpEnv if name == "waiting" else OneAtATime)(url=server.url, items=1000, max_steps=STEPS)
        host: EnvHost = Workers(env=env, count=workers) if workers else InProcessHost(env=env)
        tasks = env.tasks("train", EPISODES, 0)
        seconds = [_grow(policy, host, Chains(n=1), tasks, Limits(turns=STEPS)).seconds for _ in range(rounds + 1)]
        asyncio.run(host.close())
        server.close()
        # Processes start in the first round, which does not count.
        say(f"| {name} | {workers or 'none'} | {server.most} | {median(seconds[1:] or seconds):.2f} |")


PARTS: dict[str, Callable[[Callable[[str], None], int, int], None]] = {
    "limits": limits,
    "shapes": shapes,
    "waiting": waiting,
}


class OneAtATime(HttpEnv):
    """A server whose calls run one after the other, in the thread of the engine."""

    waits = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grown:
    """Trees, and what they cost the engine."""

    trees: Sequence[Tree]
    passes: int
    sequences: int
    seconds: float
    processor_s: float

    @property
    def in_flight(self) -> float:
        """Mean number of sequences in a pass."""
        return self.sequences / self.passes

    @property
    def tokens(self) -> list[bytes]:
        """The tokens of each tree."""
        return [tree.token.tobytes() for tree in self.trees]

    @property
    def sampled(self) -> int:
        """Number of sampled tokens."""
        return sum(int(tree.sampled.sum()) for tree in self.trees)

    @property
    def paths(self) -> float:
        """Mean number of paths of a tree."""
        return sum(len(counted(tree)) for tree in self.trees) / len(self.trees)


def _policy() -> Policy:
    texts = [ENV.instructions, *(str(ENV.start(task).observation) for task in ENV.tasks("train", 64, 0))]
    return Tiny(layers=2, width=64, heads=4).build([*texts, "left right up down"])


def _grow(policy: Policy, host: EnvHost, explorer: Explorer, tasks: Sequence[Task], bounds: Limits) -> _Grown:
    """Grows a tree of each task with a new engine."""
    engine = Local(slots=256, deterministic=False).build(policy)
    assert isinstance(engine, LocalEngine)

    async def grow() -> Sequence[Tree]:
        agent = Agent(
            engine=engine,
            renderer=policy.renderer,
            context=Full(),
            parser=Plain(),
            sampling=replace(SAMPLING, top_probs=2, entropies=True),
        )
        runner = RolloutRunner(
            agent=agent, host=host, instructions=ENV.instructions, limits=bounds, deadlines=Deadlines()
        )
        return (await runner.run(explorer, tasks, seed=1)).trees

    begin_s, processor_s = time.perf_counter(), time.process_time()
    trees = asyncio.run(grow())
    return _Grown(
        trees=trees,
        passes=engine.passes,
        sequences=engine.sequences,
        seconds=time.perf_counter() - begin_s,
        processor_s=time.process_time() - processor_s,
    )


def _name(explorer: Explorer) -> str:
    shown = ", ".join(
        f"{field.name}={getattr(explorer, field.name)}"
        for field in fields(cast("Any", explorer))
        if field.init and getattr(explorer, field.name) != field.default
    )
    return f"{type(explorer).__name__}({shown})"


class _Server:
    """Answers each step after a while, and counts the requests in flight."""

    def __init__(self) -> None:
        self.present = self.most = self.made = 0
        self._lock = threading.Lock()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                data = json.dumps(served.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None: ...

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/lake"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> object:
        if path.endswith("step"):
            with self._lock:
                self.present += 1
                self.most = max(self.most, self.present)
            time.sleep(STEP_S)
            with self._lock:
                self.present -= 1
        with self._lock:
            self.made += 1
        return {"id": self.made, "observation": "a room", "reward": 0.0, "done": False}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    main()
