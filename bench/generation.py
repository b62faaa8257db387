"""Tokens per second of `Local`, beside transformers' `generate` on the same model.

    python bench/generation.py [--size tiny] [--threads 2] [--rounds 5]

Unrelated prompts, branches that share a prompt, and trees of agents whose branches end at different times. `generate`
is given all rows of a turn at once, of one length, so that it needs no padding; at every turn it reads them from their
beginning. A third side is `Local` where there is no C++ compiler, and attention is done by operations of torch. All run
in turn, so that other work on the machine hits all; what counts is the ratio. The second table says where the time of
a pass goes, on average over all of them, and how long a pass takes in which all rows decode and no prompt is read. The
third says what a fork costs, in milliseconds of the fastest decode pass: (8 branches that share 512 tokens -
(8 branches - 1 branch, both of one token)) / (1 branch of 512 tokens). Prints Markdown tables.
"""

import argparse
import asyncio
import copy
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from bough.engine import Engine, Local, Request, Sampling
from bough.engine.attention import TorchAttention
from bough.engine.generation import LocalEngine
from bough.engine.model import Attend, Model
from bough.policy.check_architecture import check_architecture
from bough.policy.model import CausalModel
from bough.policy.replica import Replica
from machine import machine
from page import section

VOCAB_TOKENS = 512
CONTEXT_TOKENS = 1024
SIZES = {"tiny": (2, 128), "small": (4, 256)}
"""Layers and width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """P prompts, each with `branches` chains.

    Attributes:
        name: What the tables call it.
        prompts: P.
        branches: Chains of each.
        turns: Fewest and most turns of a chain; the chains of a prompt are spread evenly from one to the other.
        prompt_tokens: Of a prompt.
        action_tokens: Sampled in a turn.
        observation_tokens: Read after it.
    """

    name: str
    prompts: int
    branches: int
    turns: tuple[int, int]
    prompt_tokens: int
    action_tokens: int
    observation_tokens: int

    @property
    def rows(self) -> int:
        """How many chains there are."""
        return self.prompts * self.branches

    @property
    def ends(self) -> np.ndarray:
        """[rows], how many turns each chain has."""
        fewest, most = self.turns
        return np.tile(np.linspace(fewest, most, self.branches).round().astype(np.int64), self.prompts)

    @property
    def sampled_tokens(self) -> int:
        """How many tokens are sampled in all."""
        return int(self.ends.sum()) * self.action_tokens

    def texts(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Prompts [rows, prompt_tokens] and observations [turns, rows, observation_tokens]."""
        rng = np.random.default_rng(seed)
        prompts = rng.integers(VOCAB_TOKENS, size=(self.prompts, self.prompt_tokens)).repeat(self.branches, axis=0)
        return prompts, rng.integers(VOCAB_TOKENS, size=(self.turns[1], self.rows, self.observation_tokens))


def _workload(name: str, prompts: int, branches: int, prompt_tokens: int) -> Workload:
    return Workload(
        name=name,
        prompts=prompts,
        branches=branches,
        turns=(1, 1),
        prompt_tokens=prompt_tokens,
        action_tokens=32,
        observation_tokens=0,
    )


WORKLOADS = (
    _workload("64 prompts of 128", 64, 1, 128),
    _workload("8 prompts of 128 x 8 branches", 8, 8, 128),
    _workload("8 prompts of 512 x 8 branches", 8, 8, 512),
    Workload(
        name="16 trees x 8 branches of 4 to 8 turns",
        prompts=16,
        branches=8,
        turns=(4, 8),
        prompt_tokens=96,
        action_tokens=8,
        observation_tokens=40,
    ),
)
FORK_TOKENS = 512
FORK_BRANCHES = 8
FORK_REPEATS = 16
"""Rounds of forks for each round of the rest: they are short."""


class Clock:
    """A model that knows how many seconds its parts took, and which of its passes only decoded."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.vocab_tokens, self.context_tokens = model.vocab_tokens, model.context_tokens
        self.layers, self.kv_heads, self.head_width = model.layers, model.kv_heads, model.head_width
        self.packs = model.packs
        self.device, self.dtype, self.tokenizer = model.device, model.dtype, model.tokenizer
        self.attend_s, self.model_s, self.began_s = 0.0, 0.0, list[tuple[float, int]]()

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        rows: Int[Tensor, " m"] | None = None,
        attend_last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """The model's, clocked; the attention apart."""
        begin = time.perf_counter()
        self.began_s.append((begin, len(tokens)))
        clocked = None if attend_last is None else self._clocked(attend_last)
        hidden = self._model.hidden(tokens, positions, self._clocked(attend), rows, clocked)
        self.model_s += time.perf_counter() - begin
        return hidden

    def _clocked(self, attend: Attend) -> Attend:
        def clocked(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            begin = time.perf_counter()
            mixed = attend(layer, query, key, value, scale, window=window)
            self.attend_s += time.perf_counter() - begin
            return mixed

        return clocked

    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """The model's, clocked."""
        begin = time.perf_counter()
        logits = self._model.logits(hidden)
        self.model_s += time.perf_counter() - begin
        return logits

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """The model's."""
        self._model.load(weights)

    def decoding_s(self, rows: int) -> list[float]:
        """How long every pass took in which so many rows decoded and no prompt was read."""
        ends = zip(self.began_s, self.began_s[1:], strict=False)
        return [after - begin for (begin, tokens), (after, _) in ends if tokens == rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    replica, plain = models(arguments.size)
    layers, width = SIZES[arguments.size]
    with section(f"generation {arguments.size}", keep=arguments.write) as say:
        say("| workload | Local, tokens/s | generate | no compiler | Local / generate | Local / no compiler |")
        say("|---|---|---|---|---|---|")
        for workload in WORKLOADS:
            say(compare(workload, replica, plain, arguments.rounds))
        say("\n| workload | passes | ms a pass | model | attention | the rest | ms a pass that decodes |")
        say("|---|---|---|---|---|---|---|")
        for workload in WORKLOADS:
            say(share(workload, replica, arguments.rounds))
        most = FORK_BRANCHES
        say(f"\n| 1 branch at {FORK_TOKENS} | {most} at {FORK_TOKENS} | 1 at 1 | {most} at 1 | price of the fork |")
        say("|---|---|---|---|---|")
        say(fork(replica, arguments.rounds))
        say(f"\n{layers} layers of width {width}, float32; {machine()}")


def models(size: str) -> tuple[Replica, PreTrainedModel]:
    """The same weights twice: as an engine takes them, and as transformers does."""
    layers, width = SIZES[size]
    config = Qwen3Config(
        vocab_size=VOCAB_TOKENS,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    made: Any = Qwen3ForCausalLM(config)
    plain = made.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    # A causal changes the settings of the model it is given.
    causal = CausalModel(copy.deepcopy(plain))
    return Replica(causal, check_architecture(causal), CONTEXT_TOKENS), plain


def compare(workload: Workload, replica: Replica, plain: PreTrainedModel, rounds: int) -> str:
    """One line of the first table. The first round of each side is not timed."""
    times: list[list[float]] = []
    for seed in range(rounds + 1):
        engine = LocalEngine(Local(slots=workload.rows), replica)
        with patch("bough.engine.decoder.attention_for", return_value=TorchAttention):
            bare = LocalEngine(Local(slots=workload.rows), replica)
        sides = [timed(lambda: asyncio.run(bough(workload, engine, seed)))]  # noqa: B023
        sides.append(timed(lambda: reread(workload, plain, seed)))  # noqa: B023
        times.append([*sides, timed(lambda: asyncio.run(bough(workload, bare, seed)))])  # noqa: B023
    speeds = (f"{workload.sampled_tokens / statistics.median(side):,.0f}" for side in zip(*times[1:], strict=True))
    ratios = (statistics.median(row[side] / row[0] for row in times[1:]) for side in (1, 2))
    return f"| {workload.name} | {' | '.join(speeds)} | {' | '.join(f'**{ratio:.1f}**' for ratio in ratios)} |"


def share(workload: Workload, replica: Replica, rounds: int) -> str:
    """One line of the second table: the round of median length."""
    lines: list[tuple[float, str]] = []
    for seed in range(rounds):
        clock = Clock(replica)
        engine = LocalEngine(Local(slots=workload.rows), clock)
        wall = timed(lambda: asyncio.run(bough(workload, engine, seed)))  # noqa: B023
        passes = len(clock.began_s)
        parts = (clock.model_s - clock.attend_s, clock.attend_s, wall - clock.model_s)
        shares = " | ".join(f"{part / wall:.0%}" for part in parts)
        alone = 1000 * statistics.median(clock.decoding_s(workload.rows))
        lines.append((wall, f"| {workload.name} | {passes} | {1000 * wall / passes:.1f} | {shares} | {alone:.1f} |"))
    return sorted(lines)[len(lines) // 2][1]


async def bough(workload: Workload, engine: Engine, seed: int) -> None:
    prompts, observations = workload.texts(seed)
    ends = workload.ends
    sampling = Sampling(max_tokens=workload.action_tokens)

    async def chain(row: int) -> None:
        text = tuple(prompts[row].tolist())
        for turn in range(ends[row]):
            request = Request(
                prompt_tokens=text, sampling=sampling, stop_tokens=(), seed=row * workload.turns[1] + turn
            )
            completion = await engine.generate(request)
            text = (*text, *completion.tokens, *observations[turn, row].tolist())

    await asyncio.gather(*(chain(row) for row in range(workload.rows)))


def reread(workload: Workload, model: Any, seed: int) -> None:
    """The plain loop: `generate` on all chains that go on, again from the beginning at every turn."""
    prompts, observations = workload.texts(seed)
    ends, rows = workload.ends, np.arange(workload.rows)
    text = torch.as_tensor(prompts, device=model.device)
    for turn in range(workload.turns[1]):
        text = model.generate(
            text,
            attention_mask=torch.ones_like(text),
            max_new_tokens=workload.action_tokens,
            do_sample=True,
            top_k=0,
            eos_token_id=None,
            pad_token_id=0,
        )
        text = torch.cat([text, torch.as_tensor(observations[turn, rows], device=model.device)], dim=1)
        going_on = ends[rows] > turn + 1
        rows, text = rows[going_on], text[torch.as_tensor(going_on)]


def fork(replica: Replica, rounds: int) -> str:
    """What eight branches cost at depth 512, in decode passes of one branch, without their own new tokens' work.

    That work is what seven more branches add to a pass where there is next to nothing to attend to.
    """
    cases = [(1, FORK_TOKENS), (FORK_BRANCHES, FORK_TOKENS), (1, 1), (FORK_BRANCHES, 1)]
    lines: list[tuple[float, ...]] = []
    for seed in range(FORK_REPEATS * rounds + 1):
        took: list[float] = []
        for branches, depth in cases:
            clock = Clock(replica)
            workload = _workload("", 1, branches, depth)
            asyncio.run(bough(workload, LocalEngine(Local(slots=branches), clock), seed))
            took.append(1000 * statistics.median(clock.decoding_s(branches)))
        one, many, one_flat, many_flat = took
        lines.append((*took, (many - (many_flat - one_flat)) / one))
    *times, price = (statistics.median(column) for column in zip(*lines[1:], strict=True))
    return f"| {' | '.join(f'{took_ms:.2f}' for took_ms in times)} | **{price:.2f}** |"


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
