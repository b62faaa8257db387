"""Products of rows with a model's matrices, in float32 on a CPU: PyTorch's own beside the one that Bough takes.

    python bench/products.py [--rounds 5] [--write]

One thread, in turn; numbers of rows that were met before. Billions of operations per second, the median over rounds,
and that of the ratios. Where the processor is Intel's, or has no AVX-512, the two are the same. `--write` puts the
table into docs/performance.md.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor
from torch.nn.functional import linear

from bough.policy.product import multiply
from machine import machine
from page import section

ROWS, MATRICES = (32, 256, 1000), ((256, 768), (768, 256))
SECONDS = 0.05
"""Of a round, at least."""


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with section("products", keep=arguments.write) as say:
        say("| rows | matrix | PyTorch | Bough | ratio |")
        say("|---" * 5 + "|")
        for width, out in MATRICES:
            for rows in ROWS:
                read, matrix = torch.randn(rows, width), torch.randn(out, width)
                rates = [[rate(each, read, matrix) for each in (linear, multiply)] for _ in range(arguments.rounds)]
                own, ours = (median(side) for side in zip(*rates, strict=True))
                ratio = median(there / here for here, there in rates)
                say(f"| {rows:,} | {width} x {out} | {own:.0f} | {ours:.0f} | **{ratio:.2f}** |")
        say(f"\n{machine(1)}")


def rate(product: Callable[[Tensor, Tensor], Tensor], rows: Tensor, matrix: Tensor) -> float:
    """Billions of operations per second."""
    product(rows, matrix)
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS:
        product(rows, matrix)
        done += 2 * rows.numel() * len(matrix)
    return done / (time.perf_counter() - begin) / 1e9


if __name__ == "__main__":
    main()
