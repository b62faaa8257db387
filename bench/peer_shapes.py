"""What every side of bench/peers.py is given: the model's sizes, shapes of trees, and the texts in them.

Needs numpy alone, as each library has an environment of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEARNING_RATE = 1e-4
BETAS = (0.9, 0.999)
CLIP = 0.2
CLIP_NORM = 1.0
EPSILON = 1e-4
"""Added to the standard deviation of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A Qwen3-style model with tied embeddings; 2.0M parameters."""

    layers: int = 4
    width: int = 256
    inner: int = 384
    heads: int = 8
    kv_heads: int = 2
    head_width: int = 32
    vocab_tokens: int = 512
    context_tokens: int = 1024

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of the matrices of one layer: query, key, value, output; gate, up, down."""
        query, pair = self.heads * self.head_width, self.kv_heads * self.head_width
        attention = ((self.width, query), (self.width, pair), (self.width, pair), (query, self.width))
        return (*attention, *((self.width, self.inner),) * 2, (self.inner, self.width))

    @property
    def trunk(self) -> int:
        """Parameters in the matrices of all layers."""
        return self.layers * sum(rows * columns for rows, columns in self.products)

    def matrix_flops(self, *, tokens: int, trained: int) -> int:
        """Floating-point operations of a forward and a backward pass, but for attention.

        Each matrix is in three products, two operations a number; so is the head, for trained tokens.
        """
        return 6 * self.trunk * tokens + 6 * self.vocab_tokens * self.width * trained

    def attention_flops(self, *, pairs: int) -> int:
        """Those of attention, over the pairs of a token and one that it sees.

        Two products forward and five backward, which makes the scores anew.
        """
        return 14 * self.layers * self.heads * self.head_width * pairs


SIZES = Sizes()

MARKS = ("<pad>", "<end>")
"""The first tokens of the vocabulary; the others are words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What the trees of one round are made of, besides what is sampled.

    Attributes:
        prompts: [prompts, prompt_tokens].
        observations: By turn, [nodes, observation_tokens]: what follows each action, where something does.
        goes_on: By turn, [nodes] bool: whether something does.
    """

    prompts: np.ndarray
    observations: Sequence[np.ndarray]
    goes_on: Sequence[np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Trees that all fork alike.

    Attributes:
        name: In tables and on the command line.
        prompts: How many trees.
        forks: How many branches go on from each place, turn by turn: (8, 1, 1) are 8 chains of 3 turns, (2, 2, 2) is a
            binary tree.
        prompt_tokens: Of each prompt.
        action_tokens: Of each action.
        observation_tokens: Of what follows each action but a path's last.
        fewest_turns: Of the shortest chain of a prompt, where all branch at the prompt; the others are spread evenly
            up to all turns. None: all have all turns.
        trains: Whether an update follows; then all have.
    """

    name: str
    prompts: int
    forks: tuple[int, ...]
    prompt_tokens: int
    action_tokens: int
    observation_tokens: int = 0
    fewest_turns: int | None = None
    trains: bool = False

    @property
    def turns(self) -> int:
        """Actions on a path."""
        return len(self.forks)

    @property
    def nodes(self) -> tuple[int, ...]:
        """How many actions are written at each turn, in all trees."""
        return tuple((self.prompts * np.cumprod(self.forks)).tolist())

    @property
    def paths(self) -> int:
        """How many paths all trees have."""
        return self.nodes[-1]

    def stretches(self, *, by_path: bool = False) -> list[tuple[int, int, int]]:
        """(how many, after how many tokens, how many tokens each): prompts, then actions with what follows them.

        By path each is there once for every path through it. Nobody reads an observation after the last action.
        """
        found, start = [(self.paths if by_path else self.prompts, 0, self.prompt_tokens)], self.prompt_tokens
        for turn, nodes in enumerate(self.nodes):
            width = self.action_tokens + (self.observation_tokens if turn < self.turns - 1 else 0)
            found.append((self.paths if by_path else nodes, start, width))
            start += width
        return found

    def tokens(self, *, by_path: bool = False) -> int:
        """Tokens of all trees, each once, or once for every path through it."""
        return sum(count * width for count, _, width in self.stretches(by_path=by_path))

    def trained(self, *, by_path: bool = False) -> int:
        """How many of them are sampled."""
        return sum(count for count, _, _ in self.stretches(by_path=by_path)[1:]) * self.action_tokens

    def update_flops(self, *, by_path: bool = False) -> tuple[int, int]:
        """Operations of an update, without and of attention, that pays for each token once, or once for every path."""
        stretches = self.stretches(by_path=by_path)
        # The tokens that a token sees: itself and all before it.
        pairs = sum(count * (width * start + width * (width + 1) // 2) for count, start, width in stretches)
        trained = self.trained(by_path=by_path)
        matrices = SIZES.matrix_flops(tokens=self.tokens(by_path=by_path), trained=trained)
        return matrices, SIZES.attention_flops(pairs=pairs)

    def texts(self, seed: int) -> Texts:
        """The texts of a round; no two rounds share one."""
        rng = np.random.default_rng([seed, *map(ord, self.name)])
        vocab = (len(MARKS), SIZES.vocab_tokens)
        fewest = self.turns if self.fewest_turns is None else self.fewest_turns
        ends = np.tile(np.linspace(fewest, self.turns, self.paths // self.prompts).round(), self.prompts)
        return Texts(
            prompts=rng.integers(*vocab, size=(self.prompts, self.prompt_tokens)),
            observations=[rng.integers(*vocab, size=(nodes, self.observation_tokens)) for nodes in self.nodes],
            # A chain is node i at every turn; above the forks of a tree nothing ends.
            goes_on=[ends[:: self.paths // nodes] > turn + 1 for turn, nodes in enumerate(self.nodes)],
        )


def reward(completion: Sequence[int]) -> float:
    """What a path is paid: the share of odd tokens among all that follow its prompt."""
    return sum(token % 2 for token in completion) / len(completion)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(name="step", prompts=8, forks=(8,), prompt_tokens=128, action_tokens=32, trains=True),
        Shape(
            name="step-chains",
            prompts=8,
            forks=(8, 1, 1, 1, 1, 1, 1, 1),
            prompt_tokens=96,
            action_tokens=8,
            observation_tokens=40,
            trains=True,
        ),
        Shape(
            name="step-trees",
            prompts=8,
            forks=(2, 2, 2, 2, 2),
            prompt_tokens=96,
            action_tokens=8,
            observation_tokens=40,
            trains=True,
        ),
        Shape(name="prompts", prompts=64, forks=(1,), prompt_tokens=128, action_tokens=32),
        Shape(name="branches-128", prompts=8, forks=(8,), prompt_tokens=128, action_tokens=32),
        Shape(name="branches-512", prompts=8, forks=(8,), prompt_tokens=512, action_tokens=32),
        Shape(
            name="agents",
            prompts=16,
            forks=(8, 1, 1, 1, 1, 1, 1, 1),
            prompt_tokens=96,
            action_tokens=8,
            observation_tokens=40,
            fewest_turns=4,
        ),
    )
}
"""Optimizer steps from generation to the new weights, then generation alone."""
