import json
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from tests.forks import Fork
from tests.small import run as small
from transformers import AutoModelForCausalLM, Qwen3Config

from bough.batch import Batch, PackedPrefixTree
from bough.config import ConfigError
from bough.engine import Local
from bough.engine.generation import LocalEngine
from bough.learner import Learner, Optimizer
from bough.learner.memory_budget import MemoryBudget
from bough.learner.memory_forecast import (
    MIN_TOKENS,
    ChunkShape,
    _held,
    _Probe,
    forecast_memory,
    measure_chunk_memory,
    nbytes,
)
from bough.learner.memory_meter import MemoryMeter, return_freed
from bough.objective import Loss, LossInputs, Normalizer, PpoClip
from bough.policy.policy import Policy
from bough.policy.vocabulary import small_tokenizer
from bough.train import start
from bough.units import GIB
from texts import Node, batch

WORDS = 2048


def policy(*, layers: int = 3, width: int = 192, context_tokens: int = 1024, windows: bool = False) -> Policy:
    """Of two million parameters, unless told otherwise."""
    config = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=width // 4,
        max_position_embeddings=context_tokens,
        tie_word_embeddings=True,
        use_sliding_window=windows,
        sliding_window=64 if windows else None,
        max_window_layers=0,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return Policy.assemble(model, small_tokenizer((), WORDS, None))


def trees(count: int, written: int) -> Batch:
    """A prompt of 128 tokens, twice two branches of 160 tokens each, so many of them written; so many times."""
    nodes: list[Node] = []
    for _ in range(count):
        level = [len(nodes)]
        nodes.append(Node(-1, 128, trained=False))
        for _ in range(2):
            for place in [place for place in level for _ in range(2)]:
                nodes += [Node(place, written, trained=True), Node(len(nodes), 160 - written, trained=False)]
            level = [place for place in range(level[-1] + 1, len(nodes)) if not nodes[place].trained]
    return batch(nodes, WORDS, np.random.default_rng(0))


CASES = ((0.15, False, 80, 1), (0.3, False, 80, 1), (0.15, True, 80, 1), (0.3, False, 24, 1), (0.3, False, 80, 2))
"""Budgets, whether activations are computed again, how many tokens of a branch are written, and how many readers."""


class Together(PpoClip):
    """Has readers wait for each other where each holds most, so that it is taken at the same time."""

    waiting: ClassVar[threading.Barrier]

    def __call__(self, columns: LossInputs) -> Loss:
        """The same."""
        self.waiting.wait(60)
        return super().__call__(columns)


def update(gib: float, recompute: bool, written: int, cpu_workers: int) -> dict[str, float]:
    """Two updates within a budget."""
    model = policy()
    model.recompute(recompute)
    memory = forecast_memory(model, copies={}, cache_tokens=0, entropy=False, cpu_workers=cpu_workers)
    gauge = MemoryMeter(model.device, nbytes(model.weights().values()))
    most = memory.fit(gib)
    learner = Learner(
        model, Optimizer(micro_tokens=most, memory_gib=gib, cpu_workers=cpu_workers), total_updates=10, temperature=1.0
    )
    Together.waiting = threading.Barrier(cpu_workers)
    # The first makes the moments, the second takes most.
    for count in (1, 4):
        learner.step(trees(count, written), Together(), Normalizer())
    peak = gauge.peak()
    assert peak is not None
    return {"tokens": most, "predicted": memory.bytes(learner.chunk_shape, 0), "most": memory.most(most), "peak": peak}


def measure() -> None:
    """In a process of its own."""
    torch.set_num_threads(1)
    return_freed()
    print(json.dumps([update(*case) for case in CASES]))


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell how much a process takes")
def test_what_is_taken_is_what_was_foreseen() -> None:
    done = Fork(measure).wait().fine()
    for (gib, *_), found in zip(CASES, json.loads(done.splitlines()[-1]), strict=True):
        assert 0.85 <= found["peak"] / found["predicted"] <= 1.15, found
        assert found["predicted"] <= found["most"] <= gib * GIB, found
        assert found["peak"] <= gib * GIB, found


@pytest.mark.parametrize(
    ("windows", "recompute", "masks"),
    [(False, False, False), (False, True, False), (True, False, False), (False, False, True)],
)
def test_what_a_long_stretch_takes_is_known_from_short_ones(
    windows: bool, recompute: bool, masks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOUGH_ATTENTION", "masks" if masks else "auto")
    model = policy(layers=2, width=64, windows=windows)
    model.recompute(recompute)
    found = measure_chunk_memory(model)
    assert all(weight.grad is None for weight in model.parameters().values())
    assert len(found.whole.held) == len(found.narrow.held) == 3 + (windows or masks)
    watch = _Probe()
    _held(model, 64, watch)
    for trained, narrow in ((1, True), (200, True), (500, False)):
        longer = _held(model, 640, watch, trained=trained, narrow=narrow)[0].max()
        forecast = (found.narrow if narrow else found.whole).most(640, trained, 0)
        # PyTorch's own attention takes less memory for a pair in long texts than in short ones.
        assert longer * 0.98 <= forecast <= longer * (1.25 if masks else 1.02)


def test_masks_of_a_prefix_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH_ATTENTION", "masks")
    found = measure_chunk_memory(policy(layers=2, width=64))
    # Of a byte at least, by PyTorch in the heads' dtype besides.
    assert found.mask_bytes >= 1
    near, far = (found.bytes(ChunkShape(tokens=500, trained=1, past=past), entropy=False) for past in (0, 1000))
    assert far - near >= 500 * 1000 + 1000 * found.pair_bytes


def test_keys_and_values_of_other_stretches_cost_what_they_are() -> None:
    found = measure_chunk_memory(policy(layers=2, width=64))
    pair = 4 * 2 * 2 * 2 * 16  # float32, layers, keys and values, key heads, their width
    assert found.pair_bytes == pair
    base, past, kept = (
        found.bytes(ChunkShape(tokens=100, trained=1, **more), entropy=False)
        for more in ({}, {"past": 10}, {"kept": 10})
    )
    assert (past - base, kept - base) == (10 * 4 * pair, 10 * pair)


def test_a_budget_allows_the_longest_stretch_that_fits() -> None:
    memory = forecast_memory(
        policy(layers=2, width=64), copies={"the engine's copy": 10**6}, cache_tokens=1000, entropy=False
    )
    tokens = memory.fit(0.1)
    assert memory.most(tokens) <= 0.1 * GIB < memory.most(tokens + 1)
    assert memory.fit(0.2) > tokens > MIN_TOKENS
    assert memory.fit(memory.most(MIN_TOKENS) / GIB) == MIN_TOKENS
    with pytest.raises(
        ConfigError, match=r"optimizer.memory_gib: got 0.001; need 0.\d+ GiB \(weights .* copy 0.001.*\)"
    ):
        memory.fit(0.001)


def test_the_extent_of_a_forest() -> None:
    texts = [np.arange(6), np.asarray([0, 1, 2, 9, 8, 7, 6])]
    forest = PackedPrefixTree.pack(texts, np.asarray([0, 1, 1]), np.asarray([6, 6, 7]))
    assert ChunkShape.of(forest, 100) == ChunkShape(tokens=10, trained=3, past=0, kept=0)
    minibatches = ChunkShape.of(forest, 6)
    # Cut within the first branch, behind its first token.
    assert (minibatches.tokens, minibatches.trained, minibatches.past, minibatches.kept) == (6, 3, 4, 4)
    two = PackedPrefixTree.pack([*texts, *(each + 10 for each in texts)], np.arange(4), np.asarray([6, 7, 6, 7]))
    assert ChunkShape.of(two, 6) == ChunkShape(tokens=6, trained=2, past=4, kept=4)
    assert ChunkShape(tokens=1, trained=9) | ChunkShape(tokens=5, kept=2) == ChunkShape(tokens=5, trained=9, kept=2)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_run_keeps_to_its_budget_and_says_so(
    recompute: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small()
    run = run.replace(steps=2, warmup=replace(run.world.warmup, epochs=4))
    optimizer = replace(run.world.optimizer, memory_gib=0.25, recompute=recompute)
    directory = start(run.replace(optimizer=optimizer), tmp_path, terminal=False)
    rows = [json.loads(line) for line in directory.metrics.read_text().splitlines()]
    said = [row for row in rows if "memory/predicted_gib" in row]
    assert said
    assert re.search(r"memory: at most 0.25 of 0.25 GiB, with micro_tokens=\d+\n", capsys.readouterr().out)
    assert all(0 < row["memory/predicted_gib"] < 0.25 for row in said)
    assert (
        json.loads(directory.config.read_text())["world"]["optimizer"]["micro_tokens"]
        == run.world.optimizer.micro_tokens
    )


def test_a_budget_that_no_update_fits_is_refused(tmp_path: Path) -> None:
    run = small()
    with pytest.raises(ConfigError, match=r"engine's cache .*lower engine.cache_tokens"):
        start(run.replace(optimizer=replace(run.world.optimizer, memory_gib=0.001)), tmp_path, terminal=False)
    assert not (tmp_path / run.name).exists()
    with pytest.raises(ValueError, match=r"Optimizer.memory_gib: got 0.0; need a number above 0, or None"):
        Optimizer(memory_gib=0.0)


def test_the_engines_cache_is_what_fits() -> None:
    model = policy(layers=2, width=64)
    every = 256 * model.context_tokens
    for settings in (Local(slots=256), Local(slots=256, cache_tokens=1024)):
        engine = settings.build(model)
        assert isinstance(engine, LocalEngine)
        budget = MemoryBudget(0.1, Optimizer(memory_gib=0.1), model, engine, entropy=False, reference=False)
        assert budget.micro_tokens > MIN_TOKENS
        bound = settings.cache_tokens
        assert engine.cache_tokens == bound if bound else model.context_tokens <= engine.cache_tokens < every
    whole = Local(slots=256, cache_tokens=every).build(model)
    with pytest.raises(ConfigError, match=r"lower engine.cache_tokens"):
        MemoryBudget(0.1, Optimizer(memory_gib=0.1), model, whole, entropy=False, reference=False)
