"""Log-probabilities of chosen tokens beside full logits: time and memory, by vocabulary.

    python bench/logprob.py [--vocabularies 4000 32000 150000] [--rounds 5] [--write]

1,024 trained tokens of width 512 in float32, forward and backward, to the hidden states and to the output layer; full
logits are `(hidden @ weight.T).log_softmax(-1)`. Every line is measured in a process of its own, the two sides in turn,
by the processor's clock in one thread; the ratio is the median over rounds. Memory is how far the process grew at its
peak, in yet another process for each side, less the gradient of the output layer, which both must make; it is given as
a share of one float32 tensor of all logits. Linux alone tells it. `--write` puts the table into docs/performance.md.
"""

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bough.batch import chosen_logprobs
from machine import machine
from page import write

TOKENS, WIDTH = 1024, 512
SIDES = ("full", "tiles")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[4000, 32000, 150000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(**json.loads(arguments.measure))))
        return
    lines = [
        "| vocabulary | entropy | full logits, s | Bough, s | ratio | full logits, memory | Bough, memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for vocabulary in arguments.vocabularies:
        for entropy in (False, True):
            lines.append(line(vocabulary, entropy, arguments.rounds))
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join([*lines, "", machine(1)])
    print(text)
    if arguments.write:
        write("performance.md", "logprob", text)


def line(vocabulary: int, entropy: bool, rounds: int) -> str:
    """One line of the table."""
    what = {"vocabulary": vocabulary, "entropy": entropy}
    full, ours = zip(*apart(**what, side=None, rounds=rounds), strict=True)
    memory = [apart(**what, side=side, rounds=1) / (4 * TOKENS * vocabulary) for side in SIDES]
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, full, strict=True))
    return (
        f"| {vocabulary:,} | {'yes' if entropy else 'no'} | {statistics.median(full):.3f} "
        f"| {statistics.median(ours):.3f} | **{ratio:.2f}** | {memory[0]:.0%} | **{memory[1]:.1%}** |"
    )


def apart(**settings: object) -> Any:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", json.dumps(settings)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(*, vocabulary: int, entropy: bool, side: str | None, rounds: int) -> list[list[float]] | int:
    """By round the seconds of each side; or, given one side, bytes at its peak besides the layer's gradient."""
    torch.set_num_threads(1)
    steps = {name: step(name, vocabulary, entropy) for name in ([side] if side else SIDES)}
    step(side or "tiles", 8, entropy)()  # what is loaded with the first call
    if side is None:
        return [[timed(each) for each in steps.values()] for _ in range(rounds + 1)][1:]
    # The kernel then counts the peak from now.
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    steps[side]()
    return status("VmHWM") - before - 4 * vocabulary * WIDTH


def step(
    side: str,
    vocabulary: int,
    entropy: bool,
    *,
    tokens: int = TOKENS,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Callable[[], None]:
    """Forward and backward of one side."""
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, WIDTH, generator=draw).to(device, dtype).requires_grad_()
    weight = torch.randn(vocabulary, WIDTH, generator=draw).mul_(WIDTH**-0.5).to(device, dtype).requires_grad_()
    target = torch.randint(vocabulary, (tokens,), generator=draw).to(device)

    def full() -> None:
        logprobs = (hidden @ weight.T).float().log_softmax(-1)
        loss = logprobs.gather(1, target[:, None]).sum()
        if entropy:
            loss = loss - 0.01 * (logprobs.exp() * logprobs).sum()
        loss.backward()

    def tiles() -> None:
        logprob, spread = chosen_logprobs(hidden, weight, target, entropy=entropy)
        loss = logprob.sum()
        if spread is not None:
            loss = loss + 0.01 * spread.sum()
        loss.backward()

    run = full if side == "full" else tiles

    def once() -> None:
        hidden.grad = weight.grad = None
        run()

    return once


def timed(run: Callable[[], None]) -> float:
    """Seconds of the processor."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def status(name: str) -> int:
    """A line of the kernel's account of this process, bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name + ":")).split()[1])


if __name__ == "__main__":
    main()
