"""What runs on the simulated device: `python -m tests.device.checks` prints the error of each check, as JSON.

A registered device stays for the life of a process, and PyTorch then takes it for the machine's accelerator.
"""

import asyncio
import io
import json
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.device.simulated import device
from tests.small import world

from bough.batch import Batch
from bough.config import override
from bough.engine import Completion, Local, Request, Sampling
from bough.kernels.masked_attention import masked_attention
from bough.learner import Learner, Optimizer
from bough.methods.gspo import gspo
from bough.methods.ppo import ppo
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.store import read_metrics
from bough.train import Run, resume, start
from texts import Node, batch

NODES = [Node(-1, 9, trained=False), *(Node(0, 6, trained=True) for _ in range(3)), Node(1, 3, trained=False)]
NODES += [Node(4, 5, trained=True), Node(-1, 7, trained=False), Node(6, 4, trained=True)]

SHORT = ["steps=2", "batch_tasks=3", "warmup.epochs=4", "evaluation.tasks.count=2"]


def policy(place: str) -> Policy:
    # Adam turns rounding in float32 into differences of whole steps.
    shape = Tiny(layers=2, width=32, heads=4, kv_heads=2, vocab_tokens=300, context_tokens=256, dtype="float64")
    return replace(shape, device=place).build(["north south east west"])


def mixing() -> None:
    """Tensors of the device and of the CPU don't mix; only explicit copies cross."""
    place = device()
    one, other = torch.arange(4.0, device=place), torch.ones(4)
    for mixes in (
        lambda: one + other,
        lambda: one[torch.tensor([0, 1])],
        lambda: torch.where(one > 1, one, other),
        lambda: one.index_select(0, torch.tensor([1])),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            mixes()
    with pytest.raises(RuntimeError, match="numpy"):
        one.numpy()
    assert (one + torch.tensor(1.0)).cpu().tolist() == [1, 2, 3, 4]
    assert torch.equal((one + other.to(place)).cpu(), torch.arange(4.0) + 1)


def attention() -> None:
    """Shared key heads, a query for each row and many, against PyTorch's own on the CPU."""
    for queries in (1, 5):
        query, key, value = torch.randn(3, 4, queries, 8), torch.randn(3, 2, 7, 8), torch.randn(3, 2, 7, 8)
        mask = torch.rand(3, 1, queries, 7) < 0.7
        mask[..., 0] = True
        there = masked_attention(*(each.to(device()) for each in (query, key, value, mask)), 0.3)
        assert torch.allclose(there.cpu(), masked_attention(query, key, value, mask, 0.3), atol=1e-6)


def update() -> None:
    """Metrics and weights after three updates are those of the CPU, in one chunk and in several."""
    for micro_tokens in (10**6, 12):
        found = [_updated(policy(place), micro_tokens) for place in ("cpu", str(device()))]
        (metrics, weights), (other_metrics, other_weights) = found
        assert other_metrics == pytest.approx(metrics, rel=1e-5, abs=1e-6)
        for name, weight in weights.items():
            assert torch.allclose(weight, other_weights[name], rtol=0, atol=1e-7), name


def _updated(model: Policy, micro_tokens: int) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    given: Batch = batch(NODES, model.vocab_tokens, np.random.default_rng(0)).to(model.device)
    learner = Learner(model, Optimizer(micro_tokens=micro_tokens, minibatches=1), total_updates=3, temperature=0.7)
    metrics = dict[str, float]()
    for seed in range(3):
        metrics = learner.learn(given, PpoClip(), Normalizer(), seed=seed)
    assert learner.divergence(given) >= 0
    assert learner.state.finite()
    again = Learner(model, Optimizer(micro_tokens=micro_tokens), total_updates=3, temperature=0.7)
    again.state.restore(learner.state.snapshot())
    again.state.load_moments(learner.state.moments(), 3)
    return metrics, model.state()


def generation() -> None:
    """Completions and scores are those of the CPU, before and after new weights."""
    here, there = (asyncio.run(_completed(place)) for place in ("cpu", str(device())))
    for one, other in zip(here, there, strict=True):
        assert one.tokens == other.tokens
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.policy_version == other.policy_version


async def _completed(place: str) -> list[Completion]:
    model = policy(place)
    engine = Local(slots=8).build(model)
    found = list[Completion]()
    for version in (0, 1):
        if version:
            engine.load_weights(model.weights(), version)
        sampling = Sampling(max_tokens=6, top_p=0.9, temperature=0.8, top_probs=2)
        requests = [
            Request(prompt_tokens=(3, 4, 5 + seed % 3), sampling=sampling, stop_tokens=(9,), seed=seed)
            for seed in range(6)
        ]
        found += await asyncio.gather(*(engine.generate(each) for each in requests))
    await engine.close()
    return found


def run() -> None:
    """Whole runs: warm-up, steps, evaluation, checkpoints, canaries, the policy's files."""
    for method in (gspo, ppo):
        dtype, most = ("bfloat16", 0.05) if method is ppo else ("float32", 1e-4)
        made: Run = override(method(world()), [f"policy.device={device()}", f"policy.dtype={dtype}", *SHORT])
        with tempfile.TemporaryDirectory() as folder:
            directory = start(made, Path(folder), terminal=False)
            rows = read_metrics(directory.metrics)
            last = rows[-1]
            assert float(last["policy/canary_gap"]) < most
            assert float(last["policy/gap"]) < most
            if method is ppo:  # it has all that is restored: weights, a critic, and the moments of both
                again = resume(directory.path, ["steps=3"], terminal=False)
                assert len(read_metrics(again.metrics)) > len(rows)


CHECKS: tuple[Callable[[], None], ...] = (mixing, attention, update, generation, run)


def main() -> None:
    """Run all checks."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    errors = dict[str, str]()
    for check in CHECKS:
        try:
            with redirect_stdout(io.StringIO()):
                check()
        except Exception:  # any error is the result of the check
            errors[check.__name__] = traceback.format_exc()
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
