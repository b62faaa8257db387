"""Bough beside transformers on SmolLM2-135M, and in bfloat16: generation and an update, in turn.

    python bench/smollm2.py [FOLDER] [--threads 2] [--rounds 3] [--write]

FOLDER holds the model; without it a model of the same shape gets random weights. `generate` of transformers gets all
prompts at once, of one length. Its update is a loop over padded batches with the same clipped loss and AdamW. It
first checks that both compute the same loss. Prints a Markdown table of medians; what counts are the ratios.
"""

import argparse
import asyncio
import copy
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from bough.batch import Batch
from bough.engine import Local, Request, Sampling
from bough.engine.generation import LocalEngine
from bough.learner import Learner
from bough.objective import Normalizer, PpoClip
from bough.policy.policy import Policy
from bough.policy.replica import Replica
from bough.policy.vocabulary import small_tokenizer
from machine import machine
from page import section
from texts import Node, batch
from update import OPTIMIZER, Padded, timed

SHAPE = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "max_position_embeddings": 8192,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
}
NEW_TOKENS = 16
GENERATION = {
    "16 prompts of 128": (16, 1, 128),
    "4 prompts of 256 x 8 branches": (4, 8, 256),
    "one prompt of 128": (1, 1, 128),
}
"""Prompts, branches of each, tokens of a prompt."""

ROWS, SHORTEST, TOKENS, TRAINED = 16, 60, 2880, 40
"""Rows of the update, whose lengths rise evenly from the shortest; their tokens; trained tokens of each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=SHAPE["num_hidden_layers"], help="of the random model")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    plain: Any = load(arguments.folder, arguments.layers)
    tokenizer = small_tokenizer(["hello world"], 300, None)
    policy = Policy.assemble(copy.deepcopy(plain), tokenizer)
    half = Policy.assemble(copy.deepcopy(plain).to(torch.bfloat16), tokenizer)
    with section("smollm2", keep=arguments.write) as say:
        say("| workload | Bough, s | transformers, s | transformers / Bough | bfloat16, s | float32 / bfloat16 |")
        say("|---" * 6 + "|")
        replicas = policy.replica(), half.replica()
        for name, sizes in GENERATION.items():
            say(generation(name, sizes, replicas, plain, arguments.rounds))
        say(update(policy, half, plain, arguments.rounds))
        say(f"\n{machine()}")


def load(folder: Path | None, layers: int) -> PreTrainedModel:
    """The model in float32."""
    if folder is not None:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**{**SHAPE, "num_hidden_layers": layers})).eval()


def generation(
    name: str, sizes: tuple[int, int, int], replicas: tuple[Replica, Replica], plain: Any, rounds: int
) -> str:
    """One line of the table: the same prompts, as many new tokens. The first round is not timed."""

    def theirs(texts: np.ndarray) -> None:
        tokens = torch.as_tensor(texts)
        with torch.no_grad():
            plain.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                do_sample=True,
                min_new_tokens=NEW_TOKENS,
                max_new_tokens=NEW_TOKENS,
                pad_token_id=0,
            )

    times: list[tuple[float, ...]] = []
    for seed in range(rounds + 1):
        texts = draw(replicas[0].vocab_tokens, sizes, seed)
        ours, half = (timed(partial(generate, replica, texts)) for replica in replicas)
        times.append((ours, timed(partial(theirs, texts)), half))
    return line(name, times[1:])


def generate(replica: Replica, texts: np.ndarray) -> None:
    """New tokens after every text, all in flight together."""
    engine, sampling = LocalEngine(Local(slots=len(texts)), replica), Sampling(max_tokens=NEW_TOKENS)

    async def all_() -> None:
        requests = [
            Request(prompt_tokens=tuple(text.tolist()), sampling=sampling, stop_tokens=(), seed=row)
            for row, text in enumerate(texts)
        ]
        await asyncio.gather(*map(engine.generate, requests))
        await engine.close()

    asyncio.run(all_())


def draw(vocab_tokens: int, sizes: tuple[int, int, int], seed: int) -> np.ndarray:
    """[prompts * branches, tokens]: random prompts, repeated for every branch."""
    prompts, branches, length = sizes
    return np.random.default_rng(seed).integers(vocab_tokens, size=(prompts, length)).repeat(branches, axis=0)


def update(policy: Policy, half: Policy, plain: Any, rounds: int) -> str:
    """The line of the update. The first step of each side is not timed.

    Raises:
        AssertionError: when the sides compute different losses.
    """
    rows = make(policy.vocab_tokens)
    learners = [Learner(each, OPTIMIZER, total_updates=1, temperature=1.0) for each in (policy, half)]
    padded = Padded(plain, rows)

    def step(learner: Learner) -> float:
        return learner.step(rows, PpoClip(), Normalizer())["loss/total"]

    losses = [*map(step, learners), padded.step()]
    assert abs(losses[0] - losses[2]) < 1e-4, f"the two sides compute different losses: {losses}"
    times: list[tuple[float, ...]] = []
    for _ in range(rounds):
        ours, in_half = (timed(partial(step, learner)) for learner in learners)
        times.append((ours, timed(padded.step), in_half))
    return line(f"an update of {TOKENS:,} tokens", times)


def make(vocab_tokens: int) -> Batch:
    """Rows that share nothing, of different lengths; the last tokens of each are trained."""
    lengths = np.linspace(SHORTEST, 2 * TOKENS // ROWS - SHORTEST, ROWS).astype(int)
    lengths[-1] += TOKENS - lengths.sum()
    nodes: list[Node] = []
    for length in lengths.tolist():
        nodes.append(Node(-1, length - TRAINED, trained=False))
        nodes.append(Node(len(nodes) - 1, TRAINED, trained=True))
    return batch(nodes, vocab_tokens, np.random.default_rng(0))


def line(name: str, times: list[tuple[float, ...]]) -> str:
    """Medians of Bough, transformers and Bough in bfloat16, and of the ratios to Bough."""
    ours, theirs, half = (statistics.median(side) for side in zip(*times, strict=True))
    ratio = statistics.median(theirs / ours for ours, theirs, _ in times)
    gain = statistics.median(ours / half for ours, _, half in times)
    return f"| {name} | {ours:.2f} | {theirs:.2f} | **{ratio:.2f}** | {half:.2f} | **{gain:.2f}** |"


if __name__ == "__main__":
    main()
