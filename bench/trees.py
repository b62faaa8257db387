"""An update on trees, beside the same update path by path, and how much of the saving in arithmetic is reached.

    python bench/trees.py                  # a model of 4M parameters
    python bench/trees.py --size 20M

Both sides are the learner, with the same model, the same trained tokens and the same loss; one reads each token once,
the other every path by itself. Sides run in turn on one thread and are timed by the processor's clock, so that what else
the machine has to do hardly matters; each round is a ratio, the table has their median. What can be saved is a count of
multiplications and additions, forward and backward:

    path by path / tree,   each   tokens * 6 N + trained * 8 V W + 14 L W * pairs

with N weights outside the embeddings, V words, width W, L layers, and pairs of a token and one that it sees; the output
layer is computed twice going forward, because logits are not kept. `share` is the measured speed-up over that ratio.
Prints a Markdown table.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config

from bough.batch import Batch, Forest
from bough.objective import PpoClip, Share
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.train import Learner, Optimizer
from machine import machine

SIZES = {"tiny": (2, 128, 4, 1024), "4M": (4, 256, 4, 4096), "20M": (6, 512, 8, 4096)}
"""Layers, width, heads, words."""


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of text, after another (-1: after nothing)."""

    parent: int
    tokens: int
    trained: bool


def chains(rng: np.random.Generator) -> list[Node]:
    return [Node(-1, 512, trained=True) for _ in range(8)]


def prompt(rng: np.random.Generator) -> list[Node]:
    return [Node(-1, 512, trained=False)] + [Node(0, 256, trained=True) for _ in range(8)]


def spine(rng: np.random.Generator) -> list[Node]:
    """16 turns, each with a side leaf."""
    nodes = [Node(-1, 256, trained=False)]
    place = 0
    for _ in range(16):
        nodes.append(Node(place, 64, trained=True))
        nodes.append(Node(place, 64, trained=True))
        nodes.append(Node(len(nodes) - 1, 192, trained=False))
        place = len(nodes) - 1
    return nodes


def agent(depth: int) -> Callable[[np.random.Generator], list[Node]]:
    """Two branches at every turn, 64 to 256 tokens a turn, half of them written."""

    def grow(rng: np.random.Generator) -> list[Node]:
        nodes = [Node(-1, 256, trained=False)]
        level = [0]
        for _ in range(depth):
            below: list[int] = []
            for place in level:
                for _ in range(2):
                    tokens = int(rng.integers(32, 129))
                    nodes.append(Node(place, tokens, trained=True))
                    nodes.append(Node(len(nodes) - 1, tokens, trained=False))
                    below.append(len(nodes) - 1)
            level = below
        return nodes

    return grow


def observation(rng: np.random.Generator) -> list[Node]:
    return [Node(-1, 4096, trained=False)] + [Node(0, 128, trained=True) for _ in range(16)]


SHAPES: dict[str, Callable[[np.random.Generator], list[Node]]] = {
    "8 chains of 512, nothing shared": chains,
    "a prompt of 512, 8 answers of 256": prompt,
    "a spine of 16 turns with side leaves": spine,
    "agents, depth 5, 2 branches": agent(5),
    "agents, depth 6, 2 branches": agent(6),
    "an observation of 4,096, 16 answers of 128": observation,
}


def batch(nodes: list[Node], words: int, rng: np.random.Generator) -> Batch:
    """The tree as rows, one for each leaf; what is written is trained in the first row that has it."""
    text = [rng.integers(words, size=node.tokens) for node in nodes]
    inner = {node.parent for node in nodes}
    rows: list[list[int]] = []
    for leaf in range(len(nodes)):
        # What is not written and not answered is not read.
        if leaf in inner or not nodes[leaf].trained and nodes[leaf].parent < 0:
            continue
        row = [leaf] if nodes[leaf].trained else [nodes[leaf].parent]
        while nodes[row[-1]].parent >= 0:
            row.append(nodes[row[-1]].parent)
        rows.append(row[::-1])
    seen: set[int] = set()
    trains: list[np.ndarray] = []
    for row in rows:
        for node in row:
            fresh = nodes[node].trained and node not in seen
            trains.append(np.full(nodes[node].tokens, fresh))
            seen.add(node)
        # A root that is written has nothing before its first token.
        first = len(trains) - len(row)
        trains[first][0] = False
    length = np.asarray([sum(nodes[node].tokens for node in row) for row in rows])
    ends = np.concatenate([[0], np.cumsum(length)])
    at = np.flatnonzero(np.concatenate(trains))
    sign = rng.choice([-1.0, 1.0], size=len(at))
    return Batch(
        tokens=torch.as_tensor(np.concatenate([text[node] for row in rows for node in row])),
        position=torch.as_tensor(np.arange(ends[-1]) - np.repeat(ends[:-1], length)),
        tree=torch.zeros(len(rows), dtype=torch.int64),
        row=torch.as_tensor(ends),
        at=torch.as_tensor(at),
        behaviour=torch.full((len(at),), -float(np.log(words))),
        gain=torch.as_tensor(np.maximum(sign, 0.0)).float(),
        lose=torch.as_tensor(np.minimum(sign, 0.0)).float(),
        paths=torch.ones(len(at), dtype=torch.int64),
        inverse_length=torch.full((len(at),), 1 / len(at), dtype=torch.float64),
        even=torch.ones(len(at), dtype=torch.bool),
        origin=torch.arange(len(at)),
        turn=torch.zeros(len(at), dtype=torch.int64),
        expert=torch.zeros(len(at), dtype=torch.bool),
        fresh=torch.ones(len(at), dtype=torch.bool),
    )


def operations(forest: Forest, trained: int, size: tuple[int, int, int, int]) -> float:
    """Multiplications and additions, forward and backward."""
    layers, width, _, words = size
    weights = layers * width * width * (4 + 9)  # four projections, and three matrices to three times the width
    pairs = float(forest.position.sum()) + len(forest)
    return len(forest) * 6 * weights + trained * 8 * words * width + 14 * layers * width * pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="4M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stretch", type=int, default=1024, help="most tokens of a stretch, in the last columns")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), help="which shapes, by their beginnings")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [name for name in SHAPES if any(name.startswith(part) for part in arguments.shapes)]
    print(f"| tree | tokens | paths' tokens | saving | speed-up | share | in stretches of {arguments.stretch} | share |")
    print("|---|---|---|---|---|---|---|---|")
    for name in chosen:
        print(compare(name, SIZES[arguments.size], arguments.rounds, arguments.stretch), flush=True)
    print(f"\nModel: {arguments.size}. {machine(1)}")


def compare(name: str, size: tuple[int, int, int, int], rounds: int, stretch: int) -> str:
    """One line of the table."""
    policy = model(size)
    given = batch(SHAPES[name](np.random.default_rng(0)), size[3], np.random.default_rng(1))
    tree, paths = given.forest(), given.forest(merge=False)
    longest = int(given.row.diff().max())
    whole, parts, apiece = (
        side(policy, given, merges=merges, micro_tokens=tokens)
        for merges, tokens in ((True, 10**6), (True, stretch), (False, longest))
    )
    losses = [each() for each in (whole, parts, apiece)]
    assert max(losses) - min(losses) < 1e-3, losses
    times = [[timed(each) for each in (apiece, whole, apiece, parts)] for _ in range(rounds)]
    saving = operations(paths, len(given.at), size) / operations(tree, len(given.at), size)
    fast, split = (statistics.median(row[i] / row[i + 1] for row in times) for i in (0, 2))
    return (
        f"| {name} | {len(tree):,} | {len(paths):,} | {saving:.2f} | **{fast:.2f}** | {fast / saving:.2f} "
        f"| **{split:.2f}** | {split / saving:.2f} |"
    )


def model(size: tuple[int, int, int, int]) -> Policy:
    """A policy with random weights, whose head is computed over all its words."""
    layers, width, heads, words = size
    small = Tiny(layers=1, width=8, heads=1).build(["a"])
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    tokenizer: PreTrainedTokenizerFast = small._tokenizer  # type: ignore[assignment]
    return Policy.assemble(AutoModelForCausalLM.from_config(config, dtype=torch.float32), tokenizer)


def side(policy: Policy, given: Batch, *, merges: bool, micro_tokens: int) -> Callable[[], float]:
    """An update without the optimizer's step; says the loss."""
    learner = Learner(policy, Optimizer(micro_tokens=micro_tokens), total_updates=1, temperature=1.0)
    learner.merges = merges

    def update() -> float:
        for weight in policy.parameters().values():
            weight.grad = None
        return learner.backward(given, PpoClip(), Share())["loss/total"]

    return update


def timed(update: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begin = time.process_time()
    update()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
