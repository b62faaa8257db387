"""An update on two cores: one thread, two threads inside operations, two threads that share the batch, two ranks.

    python bench/workers.py --size tiny 20M --rounds 5 --write
    python bench/workers.py --folder SMOLLM2 --rounds 3       # SmolLM2-135M from its folder

Batches are 16 trees and 64 chains after a common prompt. The ways of a round are timed in turn. A line has the seconds
of an update, without the optimizer's step, and for each other way the median over rounds of how many times as fast it
is as one thread, with the share of the tokens of the worker that has fewer. All ways compute the same loss.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from bough.batch import Batch
from bough.learner import Learner, Optimizer
from bough.learner.leading_rank import LeadingRank
from bough.learner.rank_processes import LaunchedRanks
from bough.learner.ranks import SINGLE_RANK
from bough.objective import Normalizer, PpoClip
from bough.policy import Pretrained
from bough.policy.policy import Policy
from machine import machine
from page import section
from texts import Node, batch
from trees import SIZES, model

PROMPT = 128


def chains(count: int) -> list[Node]:
    """Paths of 4 turns after a common prompt."""
    nodes = [Node(-1, PROMPT, trained=False)]
    for _ in range(count):
        place = 0
        for turn in range(4):
            nodes.append(Node(place, 16, trained=True))
            place = len(nodes) - 1
            if turn < 3:
                nodes.append(Node(place, 32, trained=False))
                place = len(nodes) - 1
    return nodes


def trees(count: int) -> list[Node]:
    """Tasks after common instructions, each with 8 leaves: two branches at each of three turns."""
    nodes = [Node(-1, PROMPT, trained=False)]
    for _ in range(count):
        nodes.append(Node(0, 64, trained=False))
        level = [len(nodes) - 1]
        for _ in range(3):
            below: list[int] = []
            for place in level:
                for _ in range(2):
                    nodes.append(Node(place, 16, trained=True))
                    nodes.append(Node(len(nodes) - 1, 32, trained=False))
                    below.append(len(nodes) - 1)
            level = below
    return nodes


BATCHES = {"16 trees": trees(16), "64 chains": chains(64)}
WAYS = ("one thread", "threads=2", "cpu_workers=2", "ranks=2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="*", default=[])
    parser.add_argument("--folder", type=Path, help="of a saved model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    policies = {size: model(SIZES[size]) for size in arguments.size}
    if arguments.folder is not None:
        policies[arguments.folder.name] = Pretrained(path=str(arguments.folder)).build(())
    torch.set_num_threads(2)
    with section("workers", keep=arguments.write) as say:
        say(f"| model, batch | tokens | {WAYS[0]}, s | {' | '.join(f'{way}, times as fast' for way in WAYS[1:])} |")
        say("|---" * (len(WAYS) + 2) + "|")
        for name, policy in policies.items():
            for kind, nodes in BATCHES.items():
                given = batch(nodes, policy.vocab_tokens, np.random.default_rng(0))
                say(f"| {name}, {kind} | {len(given.prefix_tree()):,} | {compare(policy, given, arguments.rounds)} |")
        say(f"\n{machine(2)}")


def compare(policy: Policy, given: Batch, rounds: int) -> str:
    """The cells of a line."""
    with_ranks = LeadingRank(LaunchedRanks(2), notify=print)
    try:
        learners = {
            way: Learner(
                policy,
                Optimizer(cpu_workers=2 if way == "cpu_workers=2" else 1),
                total_updates=1,
                temperature=1.0,
                ranks=with_ranks if way == "ranks=2" else SINGLE_RANK,
            )
            for way in WAYS
        }
        found = [{way: update(way, each, given) for way, each in learners.items()} for _ in range(rounds + 1)][1:]
    finally:
        with_ranks.close()
    losses = [metrics["loss/total"] for row in found for _, metrics in row.values()]
    assert max(losses) - min(losses) < 1e-3, losses
    cells = [f"{statistics.median(row[WAYS[0]][0] for row in found):.2f}"]
    for way in WAYS[1:]:
        ratio = statistics.median(row[WAYS[0]][0] / row[way][0] for row in found)
        tokens = [value for name, value in found[0][way][1].items() if name.startswith("update/tokens/")]
        cells.append(f"**{ratio:.2f}**" + (f" ({min(tokens) / sum(tokens):.0%} of the tokens)" if tokens else ""))
    return " | ".join(cells)


def update(way: str, learner: Learner, given: Batch) -> tuple[float, dict[str, float]]:
    """Seconds of an update, and its metrics."""
    torch.set_num_threads(1 if way in ("one thread", "ranks=2") else 2)
    begin = time.monotonic()
    metrics = learner.rehearse(given, PpoClip(), Normalizer())
    return time.monotonic() - begin, metrics


if __name__ == "__main__":
    main()
