"""What each kernel brings: updates and generation with it and without it, in turn, on one thread.

    python bench/ablation.py [--rounds 5] [--layers 8]

Updates are the 128 chains of bench/update.py; the other update and generation are those of bench/smollm2.py, on a model
of fewer layers. Ratios are of the processor's time, so that other work on the machine matters little.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from unittest.mock import patch

import torch

import smollm2
import update
from bough.batch import Batch
from bough.engine.attention import TorchAttention
from bough.learner import Learner
from bough.objective import Normalizer, PpoClip
from bough.policy.policy import Policy
from bough.policy.replica import Replica
from bough.policy.vocabulary import small_tokenizer
from machine import machine

WITHOUT: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "nothing": nullcontext,
    "attention of updates": lambda: patch("bough.batch.attention.tree_kernel", return_value=None),
    "attention of generation": lambda: patch("bough.engine.decoder.attention_for", return_value=TorchAttention),
    "oneDNN products": lambda: patch("bough.kernels.linear.prefers_onednn", return_value=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tiny, _ = update.models()
    large = Policy.assemble(smollm2.load(None, arguments.layers), small_tokenizer(["hello world"], 300, None))
    replica = large.replica()
    work: dict[str, Callable[[int], object]] = {
        "update, 128 chains": step(tiny, update.make(update.WORKLOADS[0], tiny.vocab_tokens)),
        f"update, {smollm2.TOKENS:,} tokens": step(large, smollm2.make(large.vocab_tokens)),
    }
    work |= {name: partial(grow, replica, sizes) for name, sizes in smollm2.GENERATION.items()}
    print(f"| without | {' | '.join(work)} |\n|{'---|' * (len(work) + 1)}")
    spent: dict[tuple[str, str], list[float]] = {}
    for seed in range(arguments.rounds + 1):
        for part, without in WITHOUT.items():
            with without():
                for name, run in work.items():
                    begin = time.process_time()
                    run(seed)
                    # The first round is not timed.
                    spent.setdefault((part, name), []).extend([time.process_time() - begin] if seed else [])
    for part in WITHOUT:
        pairs = [zip(spent[part, name], spent["nothing", name], strict=True) for name in work]
        ratios = (statistics.median(without / whole for without, whole in pair) for pair in pairs)
        print(f"| {part} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    print(f"\n{machine()}")


def grow(replica: Replica, sizes: tuple[int, int, int], seed: int) -> None:
    """New tokens on every branch of random prompts."""
    smollm2.generate(replica, smollm2.draw(replica.vocab_tokens, sizes, seed))


def step(policy: Policy, rows: Batch) -> Callable[[int], object]:
    """An update of a policy."""
    learner = Learner(policy, update.OPTIMIZER, total_updates=1, temperature=1.0)
    return lambda _: learner.step(rows, PpoClip(), Normalizer())


if __name__ == "__main__":
    main()
