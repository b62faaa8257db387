"""Tokens per second of an update, beside a plain loop over padded batches on the same model and tokens.

    python bench/update.py [--threads 2] [--rounds 5]

Two workloads: many short chains of different lengths, as FrozenLake makes them, and a few long rows. The plain loop is
what one writes with transformers alone: rows padded to the longest of a micro-batch, logits of every position, the same
clipped loss, AdamW. Both sides run in turn, so that other work on the machine hits both; what counts is the ratio.
Prints a Markdown table. Tokens are counted without padding.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from bough.batch import Batch
from bough.learner import Learner, Optimizer
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.worlds.frozenlake import FrozenLake
from machine import machine
from page import section
from texts import Node, batch

OPTIMIZER = Optimizer(learning_rate=1e-5, micro_tokens=16384)
CLIP = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The shape of a batch: rows of a prompt and of `turns[0]` to `turns[1]` turns."""

    name: str
    rows: int
    turns: tuple[int, int]
    prompt_tokens: int
    action_tokens: int
    observation_tokens: int


WORKLOADS = (
    Workload(
        name="128 chains of 3 to 12 turns",
        rows=128,
        turns=(3, 12),
        prompt_tokens=70,
        action_tokens=2,
        observation_tokens=30,
    ),
    Workload(name="16 long rows", rows=16, turns=(12, 16), prompt_tokens=200, action_tokens=64, observation_tokens=48),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    with section("update", keep=arguments.write) as say:
        say("| batch | tokens | of them trained | Bough, tokens/s | padded, tokens/s | Bough / padded |")
        say("|---|---|---|---|---|---|")
        for workload in WORKLOADS:
            say(compare(workload, arguments.rounds))
        say(f"\n{machine()}")


def compare(workload: Workload, rounds: int) -> str:
    """One line of the table."""
    policy, plain = models()
    rows = make(workload, policy.vocab_tokens).to(policy.device)
    learner = Learner(policy, OPTIMIZER, total_updates=1, temperature=1.0)
    padded = Padded(plain, rows)
    losses = learner.step(rows, PpoClip(), Normalizer())["loss/total"], padded.step()
    assert abs(losses[0] - losses[1]) < 1e-4, f"the two sides compute different losses: {losses}"
    # The first step of each is not timed: memory is taken, kernels are chosen.
    times = [(timed(lambda: learner.step(rows, PpoClip(), Normalizer())), timed(padded.step)) for _ in range(rounds)]
    ours, theirs = (statistics.median(side) for side in zip(*times, strict=True))
    ratio = statistics.median(theirs / ours for ours, theirs in times)
    tokens = rows.tokens.numel()
    return (
        f"| {workload.name} | {tokens:,} | {rows.at.numel():,} | {tokens / ours:,.0f} | {tokens / theirs:,.0f} "
        f"| **{ratio:.2f}** |"
    )


def models() -> tuple[Policy, PreTrainedModel]:
    """The same weights twice: as a policy, and as transformers loads them."""
    env = FrozenLake()
    texts = [env.instructions, *(env.start(task).observation for task in env.tasks("train", 8, seed=0))]
    disable_progress_bar()
    policy = Tiny(layers=2, width=128, heads=4, context_tokens=2048).build(texts)
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder))
        plain: Any = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    return policy, plain.to(policy.device)


def make(workload: Workload, vocab_tokens: int) -> Batch:
    """Rows of a prompt and turns, nothing shared; actions are trained. The last observation is never read."""
    rng = np.random.default_rng(0)
    nodes: list[Node] = []
    for turns in rng.integers(*workload.turns, endpoint=True, size=workload.rows).tolist():
        nodes.append(Node(-1, workload.prompt_tokens, trained=False))
        for turn in range(turns):
            nodes.append(Node(len(nodes) - 1, workload.action_tokens, trained=True))
            if turn < turns - 1:
                nodes.append(Node(len(nodes) - 1, workload.observation_tokens, trained=False))
    return batch(nodes, vocab_tokens, rng)


class Padded:
    """The plain loop: rows in their order, as many at a time as fit into the same number of tokens with padding."""

    def __init__(self, model: PreTrainedModel, batch: Batch) -> None:
        self._model = model.eval()
        self._adam = torch.optim.AdamW(model.parameters(), lr=OPTIMIZER.learning_rate, weight_decay=0.0, foreach=True)
        self._count = batch.at.numel()
        lengths = batch.row.diff().tolist()
        at_once = max(1, OPTIMIZER.micro_tokens // max(lengths))
        advantage, rollout_logprob, trained = (
            torch.zeros(batch.tokens.numel(), device=batch.tokens.device) for _ in "abc"
        )
        advantage[batch.at], rollout_logprob[batch.at], trained[batch.at] = (
            batch.positive + batch.negative,
            batch.rollout_logprob,
            1.0,
        )
        columns = (batch.tokens, advantage, rollout_logprob, trained, torch.ones_like(batch.tokens))
        rows = [torch.split(column, lengths) for column in columns]
        self._micros = [
            tuple(pad_sequence(list(column[first : first + at_once]), batch_first=True) for column in rows)
            for first in range(0, len(lengths), at_once)
        ]

    def step(self) -> float:
        """One optimizer step; returns the loss."""
        self._adam.zero_grad(set_to_none=True)
        total = 0.0
        for micro in self._micros:
            loss = self._loss(*micro)
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), OPTIMIZER.clip_norm)
        self._adam.step()
        return total

    def _loss(
        self, tokens: Tensor, advantage: Tensor, rollout_logprob: Tensor, trained: Tensor, real: Tensor
    ) -> Tensor:
        logits = self._model(input_ids=tokens, attention_mask=real, use_cache=False).logits[:, :-1].float()
        logprob = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]
        ratio = (logprob - rollout_logprob[:, 1:]).exp()
        value = torch.minimum(ratio * advantage[:, 1:], ratio.clamp(1 - CLIP, 1 + CLIP) * advantage[:, 1:])
        return -(value * trained[:, 1:]).sum() / self._count


def timed(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
