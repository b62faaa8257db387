"""An update on trees, beside the same update path by path, and how much of the saving in arithmetic is reached.

    python bench/trees.py                                # a model of 4M parameters
    python bench/trees.py --size tiny 20M --write

Both sides are the learner, with the same model, the same trained tokens and the same loss; one reads each token once,
the other every path by itself. Sides run in turn on one thread and are timed by the processor's clock, so that other
work on the machine hardly matters; as its speed may change within seconds all the same, what reads trees runs before
and after what reads paths, and counts by the mean. Each round is a ratio, the table has their median. What can be
saved is a count of multiplications and additions, forward and backward:

    path by path / tree,   each   tokens * 6 N - spared * 6 A + trained * 8 V W + 14 L W * pairs

with N weights outside the embeddings, V words, width W, L layers, and pairs of a token and one that it sees; tokens
that predict nothing are skipped_tokens the last layer's A weights after attention, where they are a fifth or more (see
`Arithmetic`). `share` is the measured speed-up over that ratio: with everything in memory, in chunks as long as the
longest path, and in shorter ones. `memory` is the most that tensors hold during an update in chunks as long as that
path, besides weights and gradients, over the same for the path alone. Prints a Markdown table.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from bough.batch import Batch, skipped_tokens
from bough.learner import Learner, Optimizer
from bough.learner.memory_meter import allocations
from bough.objective import Normalizer, PpoClip
from bough.policy.policy import Policy
from bough.policy.vocabulary import small_tokenizer
from machine import machine
from page import section
from texts import Node, batch

SIZES = {"tiny": (2, 128, 4, 1024), "4M": (4, 256, 4, 4096), "20M": (6, 512, 8, 4096)}
"""Layers, width, heads, words."""


def chains(_: np.random.Generator) -> list[Node]:
    return [Node(-1, 512, trained=True) for _ in range(8)]


def prompt(_: np.random.Generator) -> list[Node]:
    return [Node(-1, 512, trained=False)] + [Node(0, 256, trained=True) for _ in range(8)]


def spine(rng: np.random.Generator) -> list[Node]:
    """16 turns, each with a side leaf."""
    nodes = [Node(-1, 256, trained=False)]
    place = 0
    del rng  # its shape is fixed
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


def observation(_: np.random.Generator) -> list[Node]:
    return [Node(-1, 4096, trained=False)] + [Node(0, 128, trained=True) for _ in range(16)]


SHAPES: dict[str, Callable[[np.random.Generator], list[Node]]] = {
    "8 chains of 512, nothing shared": chains,
    "a prompt of 512, 8 answers of 256": prompt,
    "a spine of 16 turns with side leaves": spine,
    "agents, depth 5, 2 branches": agent(5),
    "agents, depth 6, 2 branches": agent(6),
    "an observation of 4,096, 16 answers of 128": observation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["4M"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunk", type=int, default=1024, help="most tokens of a chunk, in the last columns")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), help="which shapes, by their beginnings")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [name for name in SHAPES if any(name.startswith(part) for part in arguments.shapes)]
    chunks = f"in chunks as long as a path | share | memory | of {arguments.chunk:,}"
    with section("trees", keep=arguments.write) as say:
        say(f"| tree, model | tokens | paths' tokens | saving | speed-up | share | {chunks} | share |")
        say("|---" * 11 + "|")
        for size in arguments.size:
            for name in chosen:
                say(compare(name, size, arguments.rounds, arguments.chunk))
        say(f"\n{machine(1)}")


def compare(name: str, of_size: str, rounds: int, chunk: int) -> str:
    """One line of the table."""
    size = SIZES[of_size]
    policy = model(size)
    nodes = SHAPES[name](np.random.default_rng(0))
    given, path = (batch(each, size[3], np.random.default_rng(1)) for each in (nodes, longest(nodes)))
    tree, paths = given.prefix_tree(), given.prefix_tree(merge=False)
    tokens = len(path.tokens)
    *quick, apiece, alone = (
        side(policy, each, merges=merges, micro_tokens=most)
        for each, merges, most in (
            (given, True, 10**6),
            (given, True, tokens),
            (given, True, chunk),
            (given, False, tokens),
            (path, False, tokens),
        )
    )
    # The first time, gradients are made.
    losses = [each() for each in (*quick, apiece)]
    held, held_alone = (float(allocations(each, policy.device)[0].max()) for each in (quick[1], alone))
    assert max(losses) - min(losses) < 1e-3, losses
    times = [[timed(each) for each in (*quick, apiece, *quick[::-1])] for _ in range(rounds)]
    factor = saving(policy, given)
    whole, parts, short = (
        f"**{times_faster:.2f}** | {times_faster / factor:.2f}"
        for times_faster in (
            statistics.median(2 * row[len(quick)] / (row[i] + row[-1 - i]) for row in times) for i in range(len(quick))
        )
    )
    memory = f"{held / held_alone:.2f}"
    counts = f"{len(tree):,} | {len(paths):,} | {factor:.2f}"
    return f"| {name}, {of_size} | {counts} | {whole} | {parts} | {memory} | {short} |"


def saving(policy: Policy, given: Batch) -> float:
    """The arithmetic of an update path by path over that of the tree."""
    count, trained = policy.arithmetic().operations, len(given.at)
    together, apart = (
        count(tokens=len(each), trained=trained, pairs=each.pairs, skipped_tokens=skipped_tokens(len(each), trained))
        for each in (given.prefix_tree(), given.prefix_tree(merge=False))
    )
    return apart / together


def longest(nodes: list[Node]) -> list[Node]:
    """The path with the most tokens, by itself."""
    size: list[int] = []
    for node in nodes:
        size.append(node.tokens + (size[node.parent] if node.parent >= 0 else 0))
    place, path = size.index(max(size)), list[Node]()
    while place >= 0:
        path.append(nodes[place])
        place = nodes[place].parent
    return [replace(node, parent=number - 1) for number, node in enumerate(path[::-1])]


def model(
    size: tuple[int, int, int, int],
    *,
    kv_heads: int | None = None,
    head_width: int | None = None,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Policy:
    """A policy with random weights, whose head is computed over all its words; as many key heads as heads for None."""
    layers, width, heads, words = size
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads or heads,
        head_dim=head_width or width // heads,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    tokenizer = small_tokenizer((), words, None)
    return Policy.assemble(AutoModelForCausalLM.from_config(config, dtype=dtype).to(device), tokenizer)


def side(policy: Policy, given: Batch, *, merges: bool, micro_tokens: int) -> Callable[[], float]:
    """An update without the optimizer's step: adds to the gradients, and says the loss."""
    learner = Learner(policy, Optimizer(micro_tokens=micro_tokens), total_updates=1, temperature=1.0)
    learner.merges = merges
    return lambda: learner.backward(given, PpoClip(), Normalizer())["loss/total"]


def timed(update: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begin = time.process_time()
    update()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
