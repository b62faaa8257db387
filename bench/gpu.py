"""What docs/performance.md shows for CPUs, on a GPU: updates, log-probabilities, generation, a step, memory.

    python bench/gpu.py --write                              # bfloat16 and float32, tiny to 0.6B
    VLLM_PYTHON=VLLM/bin/python python bench/gpu.py --only generation --size 0.6B
    python bench/gpu.py --device cpu --size tiny --quick     # the same code in under a minute

Two sides run in turn, and each ratio is the median over rounds of wall time, after a first round that compiles and
takes memory. Times include the end of all work on the GPU. Memory is the peak of tensors during a call of a side,
besides what was there before. The first table has the relative distance of an update's gradients from those of
the same update path by path on a CPU in float64. Prints Markdown tables; `--write` puts them into docs/performance.md.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

import generation
import logprob
import stages
import trees
from bough.batch import Batch
from bough.cli.find import find_run
from bough.config import override
from bough.engine import Engine, Local, Vllm
from bough.learner import Learner, Optimizer
from bough.learner.memory_forecast import forecast_memory
from bough.learner.memory_meter import MemoryMeter, allocations
from bough.objective import Normalizer, PpoClip
from bough.policy.policy import Policy
from bough.units import GIB
from machine import machine
from page import section
from texts import batch

SIZES = trees.SIZES | {"150M": (12, 768, 12, 32000), "0.6B": (28, 1024, 16, 151936)}
"""Layers, width, heads, words. With up to four heads each has its own keys, with more two share them."""

HEAD_WIDTH = {"0.6B": 128}
"""Elements of a head where they are not width / heads: the shape of Qwen3-0.6B."""

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
PARTS = ("gradients", "trees", "logprob", "generation", "stages", "memory")
EXACT_SIZES = ("tiny",)
"""Whose gradients are compared with those of a CPU, which takes minutes for larger ones."""

NONE = "-"
"""Where a side can't run on the device."""

SMALL = ["batch_tasks=2", "tasks.count=8", "explorer.n=2", "warmup.epochs=1", "warmup.demonstrations=4"]
SMALL += ["evaluation.tasks.count=4", "policy.layers=1", "policy.width=32"]
"""Settings of a run that is over in seconds."""

Side = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What is measured, and how.

    Attributes:
        device: "cuda" or "cpu".
        sizes: Names of `SIZES`.
        dtypes: Names of `DTYPES`.
        rounds: Of each ratio.
        chunk: Most tokens of a chunk of an update.
        quick: Whether to take the smallest workloads alone.
    """

    device: str
    sizes: Sequence[str]
    dtypes: Sequence[str]
    rounds: int
    chunk: int
    quick: bool

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.startswith("cuda")

    def models(self) -> Iterator[tuple[str, str, Policy]]:
        """Each size in each dtype: names and policy."""
        for size in self.sizes:
            for dtype in self.dtypes:
                yield size, dtype, model(size, self.device, DTYPES[dtype])

    def seconds(self, work: Side) -> float:
        """Wall time of `work` and of all that it leaves to the GPU."""
        self._wait()
        begin = time.perf_counter()
        work()
        self._wait()
        return time.perf_counter() - begin

    def in_turn(self, *sides: Side) -> list[list[float]]:
        """[rounds][sides] seconds, after a round that does not count."""
        return [[self.seconds(side) for side in sides] for _ in range(self.rounds + 1)][1:]

    def peak_mib(self, work: Side) -> float:
        """Most memory that tensors take during `work`, besides what was there."""
        device = torch.device(self.device)
        if not self.on_gpu:
            return float(allocations(work, device)[0].max()) / 2**20
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return (torch.cuda.max_memory_allocated(device) - before) / 2**20

    def _wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize(self.device)


def model(size: str, device: str, dtype: torch.dtype) -> Policy:
    """A policy of a size of `SIZES`, with random weights."""
    shape = SIZES[size]
    kv_heads = shape[2] if shape[2] <= 4 else shape[2] // 2
    return trees.model(shape, kv_heads=kv_heads, head_width=HEAD_WIDTH.get(size), device=device, dtype=dtype)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["tiny", "20M", "150M", "0.6B"])
    parser.add_argument("--dtype", choices=DTYPES, nargs="+", default=list(DTYPES))
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chunk", type=int, default=8192, help="most tokens of a chunk of an update")
    parser.add_argument("--quick", action="store_true", help="the smallest workloads, one round")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    given = parser.parse_args(arguments)
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("got no GPU; need one, or --device cpu")
    rounds = 1 if given.quick else given.rounds
    bench = Bench(
        device=given.device,
        sizes=given.size,
        dtypes=given.dtype,
        rounds=rounds,
        chunk=given.chunk,
        quick=given.quick,
    )
    parts = {
        "gradients": gradients,
        "trees": update,
        "logprob": head,
        "generation": engines,
        "stages": step,
        "memory": memory,
    }
    with section("cuda", keep=given.write) as say:
        for name in given.only:
            for line in parts[name](bench):
                say(line)
            say("")
        say(f"{machine()}; on {given.device}, {rounds} rounds")


def gradients(bench: Bench) -> Iterator[str]:
    """The relative distance of gradients from those of a CPU in float64, path by path."""
    yield "| model | packed, FlexAttention | packed, masks | paths |"
    yield "|---" * 4 + "|"
    for size, dtype, policy in bench.models():
        if size in EXACT_SIZES:
            nodes = trees.SHAPES[list(trees.SHAPES)[1 if bench.quick else 2]](np.random.default_rng(0))
            given = batch(nodes, SIZES[size][3], np.random.default_rng(1))
            exact = model(size, "cpu", torch.float64)
            exact.load_state({name: weight.cpu().double() for name, weight in policy.state().items()})
            wanted = _gradient(exact, given, merges=False, chunk=bench.chunk)
            sides = {"flex": True, "masks": True, "auto": False} if bench.on_gpu else {"masks": True, "auto": False}
            found = list[str]()
            for choice, merges in sides.items():
                with attention(choice):
                    gradient = _gradient(policy, given.to(bench.device), merges=merges, chunk=bench.chunk)
                found.append(f"{(gradient - wanted).norm() / wanted.norm():.1e}")
            yield f"| {size}, {dtype} | {' | '.join(([NONE] if len(found) == 2 else []) + found)} |"


def _gradient(policy: Policy, given: Batch, *, merges: bool, chunk: int) -> torch.Tensor:
    """All gradients of an update, one after the other, in float64 on the CPU."""
    trees.side(policy, given, merges=merges, micro_tokens=chunk)()
    found = list[torch.Tensor]()
    for weight in policy.parameters().values():
        assert weight.grad is not None
        found.append(weight.grad.cpu().double().flatten())
        weight.grad = None
    return torch.cat(found)


def update(bench: Bench) -> Iterator[str]:
    """An update on packed trees, path by path, and on packed trees with dense masks, in chunks of one size."""
    yield "| tree, model | tokens | saving | packed, tokens/s | packed / paths | share | FlexAttention / masks |"
    yield "|---" * 7 + "|"
    shapes = list(trees.SHAPES)[1:2] if bench.quick else list(trees.SHAPES)
    for size, dtype, policy in bench.models():
        for shape in shapes:
            nodes = trees.SHAPES[shape](np.random.default_rng(0))
            given = batch(nodes, SIZES[size][3], np.random.default_rng(1)).to(bench.device)
            yield f"| {shape}, {size}, {dtype} | {_update_line(bench, policy, given)} |"


def _update_line(bench: Bench, policy: Policy, given: Batch) -> str:
    packed, paths = (trees.side(policy, given, merges=merges, micro_tokens=bench.chunk) for merges in (True, False))

    def masked() -> None:
        with attention("masks"):
            packed()

    try:
        # Updates by FlexAttention need a GPU.
        times = bench.in_turn(packed, paths, *([masked] if bench.on_gpu else []))
    except torch.OutOfMemoryError:
        return f"{len(given.prefix_tree()):,} | out of memory; lower --chunk | | | |"
    took, speedup = statistics.median(row[0] for row in times), _ratio(times, 1)
    tokens, factor = len(given.prefix_tree()), trees.saving(policy, given)
    flex = f"**{_ratio(times, 2):.2f}**" if bench.on_gpu else NONE
    return f"{tokens:,} | {factor:.2f} | {tokens / took:,.0f} | **{speedup:.2f}** | {speedup / factor:.2f} | {flex}"


def _ratio(times: list[list[float]], side: int) -> float:
    """How many times as long a side takes as the first one."""
    return statistics.median(row[side] / row[0] for row in times)


@contextmanager
def attention(choice: str) -> Iterator[None]:
    """Have updates take an attention; see `bough.batch.flex_attention`."""
    before = os.environ.get("BOUGH_ATTENTION", "auto")
    os.environ["BOUGH_ATTENTION"] = choice
    try:
        yield
    finally:
        os.environ["BOUGH_ATTENTION"] = before


def head(bench: Bench) -> Iterator[str]:
    """Log-probabilities of chosen tokens beside full logits."""
    yield "| vocabulary, dtype | entropy | Bough, ms | full logits / Bough | full logits, MiB | Bough, MiB |"
    yield "|---" * 6 + "|"
    tokens = 128 if bench.quick else 8 * logprob.TOKENS
    for vocabulary in (4000,) if bench.quick else (32000, 150000):
        for dtype in bench.dtypes:
            for entropy in (False, True):
                tiles, full = (
                    logprob.step(side, vocabulary, entropy, tokens=tokens, device=bench.device, dtype=DTYPES[dtype])
                    for side in ("tiles", "full")
                )
                times = bench.in_turn(tiles, full)
                took_ms = 1000 * statistics.median(row[0] for row in times)
                sizes = f"{bench.peak_mib(full):,.0f} | {bench.peak_mib(tiles):,.0f}"
                name = f"{vocabulary:,}, {dtype} | {'yes' if entropy else 'no'}"
                yield f"| {name} | {took_ms:.2f} | **{_ratio(times, 1):.2f}** | {sizes} |"


def engines(bench: Bench) -> Iterator[str]:
    """`Local`, and vLLM where `VLLM_PYTHON` names a Python that has it."""
    yield "| workload, model | Local, tokens/s | vLLM, tokens/s | vLLM compiled, tokens/s | Local / vLLM compiled |"
    yield "|---" * 5 + "|"
    python = os.environ.get("VLLM_PYTHON")
    workloads = [_shorter(each) for each in generation.WORKLOADS[1:2]] if bench.quick else generation.WORKLOADS
    for size, dtype, policy in bench.models():
        served = {compiled: _vllm(python, policy, compiled=compiled) for compiled in (False, True)} if python else {}
        try:
            for workload in workloads:
                local = Local(slots=workload.rows).build(policy)
                took = _generate(bench, workload, [local, *served.values()])
                asyncio.run(local.close())
                speeds = [workload.sampled_tokens / statistics.median(side) for side in zip(*took, strict=True)]
                shown = [f"{speed:,.0f}" for speed in speeds] + [NONE] * (3 - len(speeds))
                ratio = f"**{_ratio(took, 2):.2f}**" if served else NONE
                yield f"| {workload.name}, {size}, {dtype} | {' | '.join(shown)} | {ratio} |"
        finally:
            for engine in served.values():
                asyncio.run(engine.close())


def _shorter(workload: generation.Workload) -> generation.Workload:
    return replace(workload, name="2 prompts of 32 x 2 branches", prompts=2, branches=2, prompt_tokens=32)


def _vllm(python: str, policy: Policy, *, compiled: bool) -> Engine:
    # Two servers share the GPU, beside the policy and Local's copy of it.
    share = {} if policy.device.type == "cpu" else {"gpu_memory_utilization": 0.3}
    settings = Vllm(slots=128, context_tokens=generation.CONTEXT_TOKENS, python=python, compiled=compiled)
    return replace(settings, arguments=share).build(policy)


def _generate(bench: Bench, workload: generation.Workload, sides: Sequence[Engine]) -> list[list[float]]:
    times = list[list[float]]()
    for seed in range(bench.rounds + 1):
        times.append([bench.seconds(lambda: asyncio.run(generation.bough(workload, side, seed))) for side in sides])  # noqa: B023
    return times[1:]


def step(bench: Bench) -> Iterator[str]:
    """A whole training step by stage."""
    yield f"| recipe, dtype | s a step | {' | '.join(stages.STAGES)} | sampled tokens/s |"
    yield "|---" * (len(stages.STAGES) + 3) + "|"
    for dtype in bench.dtypes:
        changes = [f"policy.device={bench.device}", f"policy.dtype={dtype}", f"steps={2 if bench.quick else 5}"]
        for recipe in stages.GRPO[:1] if bench.quick else stages.GRPO[:2]:
            run = override(find_run(recipe), [*changes, *(SMALL if bench.quick else [])])
            yield stages.measure(f"{recipe}, {dtype}", run)


def memory(bench: Bench) -> Iterator[str]:
    """The forecast of an update's memory beside its peak, in chunks that the limit allows."""
    yield "| model | limit, GiB | tokens of a chunk | forecast, GiB | peak, GiB | peak / forecast |"
    yield "|---" * 6 + "|"
    shape = list(trees.SHAPES)[1 if bench.quick else 4]
    for size, dtype, policy in bench.models():
        given = batch(trees.SHAPES[shape](np.random.default_rng(0)), SIZES[size][3], np.random.default_rng(1))
        yield f"| {size}, {dtype} | {_memory_line(policy, given.to(bench.device))} |"


def _memory_line(policy: Policy, given: Batch) -> str:
    forecast = forecast_memory(policy, copies={}, cache_tokens=0, entropy=False)
    limit_gib = 1.2 * forecast.most(1024) / GIB
    learner = Learner(
        policy, Optimizer(micro_tokens=forecast.fit(limit_gib), memory_gib=limit_gib), total_updates=1, temperature=1.0
    )
    meter = MemoryMeter(policy.device, forecast.always["weights"])
    learner.step(given, PpoClip(), Normalizer())
    learner.step(given, PpoClip(), Normalizer())
    peak, foreseen = meter.peak(), forecast.bytes(learner.chunk_shape, 0)
    found = f"{NONE} | {NONE}" if peak is None else f"{peak / GIB:.2f} | **{peak / foreseen:.2f}**"
    return f"{limit_gib:.2f} | {learner.settings.micro_tokens:,} | {foreseen / GIB:.2f} | {found}"


if __name__ == "__main__":
    main()
