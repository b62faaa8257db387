"""What an update takes of memory, said before it begins: measured on the model itself, and kept within a budget.

All that a run holds on the policy's device is counted, and the rest of the program is not:

    weights, the engine's copy, a reference       their bytes
    gradients                                     those of the weights that are trained, for each reader
    the optimizer's moments                       twice the bytes of those weights
    the engine's keys and values                  as many as it may hold
    keys and values that a later stretch sees     of a text as long as the policy reads
    a stretch                                     see `Appetite`; for each reader

The stretch is what can be chosen: the most tokens with which the sum stays within the budget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.profiler import record_function

from bough.batch import FEW, Attend, ChunkedForward, PackedPrefixTree, chosen_logprobs, logits_at_once
from bough.config.config import ConfigError
from bough.learner.memory_meter import allocations
from bough.learner.process_memory import GIB
from bough.policy.policy import Policy
from bough.tree import Floats

SIZES = {"cpu": (64, 128, 192), "cuda": (1024, 2048, 3072)}
"""Tokens of the texts that are read to find out what reading takes."""

LEAST_TOKENS, MOST_TOKENS = 64, 2**22
"""Of a stretch that is chosen."""

PROCESS_BYTES = {"cpu": 8 * 2**20}
"""What a process takes for an update besides tensors: buffers of the matrix products, pages of the heap partly used."""

LOGITS = "bough.logits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large the pieces are in which a forest is read, each number for itself at its largest.

    Attributes:
        tokens: Of a stretch.
        trained: Of them, how many something is predicted after.
        past: Before a stretch, on the path to it.
        kept: Whose keys and values are kept for later stretches, at a time.
    """

    tokens: int = 0
    trained: int = 0
    past: int = 0
    kept: int = 0

    @staticmethod
    def of(forest: PackedPrefixTree, max_tokens: int, cpu_workers: int = 1) -> "Extent":
        """When it is read in stretches of at most so many tokens, by so many readers."""
        chapters = forest.chunk_groups(max_tokens, cpu_workers)
        stretches = [each for some in chapters for each in some]
        bounds = np.searchsorted(np.sort(forest.at), [each.first for each in stretches] + [len(forest)])
        return Extent(
            tokens=max((len(each) for each in stretches), default=0),
            trained=int(np.diff(bounds).max(initial=0)),
            past=max((len(each.past) for each in stretches), default=0),
            kept=max((len(forest.shared_tokens(some)) for some in chapters), default=0),
        )

    def __or__(self, other: "Extent") -> "Extent":
        """The larger of each."""
        return Extent(
            tokens=max(self.tokens, other.tokens),
            trained=max(self.trained, other.trained),
            past=max(self.past, other.past),
            kept=max(self.kept, other.kept),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Appetite:
    """What it takes to read a stretch and to go backward from it, besides weights and gradients.

    Whatever the length of a text, a model asks for memory and gives it back in the same order. So short texts of
    several lengths are read, every such moment is noted with what is held then, and each is a line in the length (a
    parabola, where a layer looks through a window and needs a mask). What a stretch takes is the largest of them.

    Attributes:
        whole: When the last layer runs for all tokens.
        narrow: When it runs for those alone after which something is predicted; the same, if the policy cannot.
        pair_bytes: Keys and values of a token, in all layers.
        hidden_bytes: A hidden state.
        words: [V, W] of the output layer.
        number_bytes: Of a weight.
        learns_words: Whether the output layer is trained.
    """

    whole: "Moments"
    narrow: "Moments"
    pair_bytes: int
    hidden_bytes: int
    words: tuple[int, int]
    number_bytes: int
    learns_words: bool

    def bytes(self, extent: Extent, *, entropy: bool) -> int:
        """For stretches of that extent."""
        wide = max(4, self.number_bytes)
        at_once = wide * logits_at_once(extent.trained, self.words[0], entropy=entropy)
        layer = wide * self.words[0] * self.words[1] if self.learns_words else 0
        # The states that predict were gathered, and now their gradients are.
        predicting = layer + at_once + self.hidden_bytes * extent.trained
        # A stretch that is not read narrowly has no more tokens than that.
        tokens = min(extent.tokens, int(extent.trained / FEW))
        held = self.whole.most(tokens, extent.trained, predicting)
        if tokens < extent.tokens:
            held = max(held, self.narrow.most(extent.tokens, extent.trained, predicting))
        # At most: where attention is not code of ours, the path is a leaf of the graph, is joined to the stretch's own,
        # and has a gradient, as it had in the later stretch, there in float32.
        path = self.pair_bytes * extent.past * (3 + wide // self.number_bytes)
        return int(held) + path + self.pair_bytes * extent.kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Every time that memory was asked for or given back on the way through a stretch.

    Attributes:
        held: [P, E], coefficients of the bytes held at each of E moments: of the tokens, highest power first, and of
            those trained, in the last row.
        logits: At which of them the logits are made.
    """

    held: Floats
    logits: int

    def most(self, tokens: int, trained: int, predicting: int) -> float:
        """Bytes, when the logits and what comes with them take `predicting`."""
        power = np.arange(len(self.held) - 1)[::-1]
        held = np.append(float(tokens) ** power, trained) @ self.held
        return max(float(held.max()), float(held[self.logits]) + predicting)


def appetite(policy: Policy) -> Appetite:
    """Read a few short texts, forward and backward, and note what is asked for. Leaves no gradients behind."""
    sizes = SIZES["cuda" if policy.device.type == "cuda" else "cpu"]
    watch = _Watch()
    _reading(policy, sizes[0], watch)()  # what is allocated once; from now on there are gradients to add to
    sizes = sizes if watch.windows else sizes[:2]
    whole = _moments(policy, sizes, watch, narrow=False)
    narrow = _moments(policy, sizes, watch, narrow=True) if policy.skips_last_layer else whole
    for weight in policy.parameters().values():
        weight.grad = None
    weight, width = policy.head()[0], policy.dtype.itemsize
    return Appetite(
        whole=whole,
        narrow=narrow,
        pair_bytes=width * sum(watch.pairs.values()),
        hidden_bytes=width * weight.shape[1],
        words=(weight.shape[0], weight.shape[1]),
        number_bytes=width,
        learns_words=weight.requires_grad,
    )


def _moments(policy: Policy, sizes: Sequence[int], watch: "_Watch", *, narrow: bool) -> Moments:
    few, more = sizes[0] // 8, sizes[0] // 4
    found = [_held(policy, size, watch, trained=few, narrow=narrow) for size in sizes]
    # Reading for all tokens, what predicts is only gathered. (Each text that is watched leaves holes in the heap.)
    found += [_held(policy, sizes[0], watch, trained=more, narrow=True)] if narrow else []
    if len({len(held) for held, _ in found}) > 1:
        # The moments are not the same ones: two can be told in any case.
        found = [(np.asarray([held[logits], held.max()]), 0) for held, logits in found]
    held = np.stack([held for held, _ in found])
    gathered = np.full(held.shape[1], float(policy.dtype.itemsize * policy.head()[0].shape[1]))
    each = (held[-1] - held[0]) / (more - few) if narrow else gathered
    by_size = np.polyfit(sizes, held[: len(sizes)] - few * each, len(sizes) - 1)
    return Moments(held=np.concatenate([by_size, each[None]]), logits=found[0][1])


class _Watch:
    """Looks on at attention. Windows are made so narrow that they matter for a short text, too.

    Attributes:
        windows: Whether any layer looks through one.
        pairs: By layer, how many numbers the key and the value of a token have.
    """

    def __init__(self) -> None:
        self.windows = False
        self.pairs: dict[int, int] = {}

    def over(self, attend: Attend) -> Attend:
        """The same attention, watched."""

        def watched(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            self.windows |= window is not None
            self.pairs[layer] = key.shape[0] * (key.shape[2] + value.shape[2])
            return attend(layer, query, key, value, scale, window=None if window is None else 1)

        return watched


def _held(policy: Policy, size: int, watch: _Watch, *, trained: int = 1, narrow: bool = False) -> tuple[Floats, int]:
    """[E], bytes held after each time that memory was asked for or given back; at which of them the logits are made."""
    update = _reading(policy, size, watch, trained=trained, narrow=narrow)
    return allocations(update, policy.device, mark=LOGITS)


def _reading(policy: Policy, size: int, watch: _Watch, *, trained: int = 1, narrow: bool = False) -> Callable[[], None]:
    """Of a text of `size` tokens, of which so many are trained; with `narrow`, the last layer for these alone."""
    after = np.arange(size - trained, size, dtype=np.int64) + 1
    text = np.zeros(size, dtype=np.int64)
    forest = PackedPrefixTree.pack([text], np.zeros_like(after), after, device=str(policy.device))
    # Logits are counted apart.
    target = torch.zeros(1, dtype=torch.int64, device=policy.device)

    def read(tokens: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None, last: Attend | None) -> Tensor:
        del last  # which is asked for longer texts
        if narrow or wanted is None:
            return policy.hidden(tokens, positions, watch.over(attend), wanted)
        return policy.hidden(tokens, positions, watch.over(attend))[wanted]

    weight, bias = policy.head()

    def update() -> None:
        for page in ChunkedForward(read, forest, size).backward():
            with record_function(LOGITS):
                logprob, _ = chosen_logprobs(page.hidden[:1], weight, target, bias)
            logprob.sum().backward()  # pyright: ignore[reportUnknownMemberType]
            del page, logprob

    return update


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What a run holds at the height of an update.

    Attributes:
        always: Bytes by name: what is there all the time, once the first update is done.
        cache_tokens: Most tokens whose keys and values the engine holds.
        path_tokens: Most tokens of a text.
        appetite: Of a stretch.
        entropy: Whether entropies are learned from.
        cpu_workers: How many stretches are read at the same time.
    """

    always: Mapping[str, int]
    cache_tokens: int
    path_tokens: int
    appetite: Appetite
    entropy: bool
    cpu_workers: int

    def bytes(self, extent: Extent, cache_tokens: int) -> int:
        """With stretches of that extent and so many tokens in the engine's cache."""
        reading = self.cpu_workers * self.appetite.bytes(extent, entropy=self.entropy)
        return sum(self.always.values()) + self.appetite.pair_bytes * cache_tokens + reading

    def most(self, tokens: int) -> int:
        """Bytes, with stretches of so many tokens.

        All of them are trained, the engine's cache is full, and the path before them is as long as a text can be.
        """
        extent = Extent(tokens=tokens, trained=tokens, past=self.path_tokens, kept=self.path_tokens)
        return self.bytes(extent, self.cache_tokens)

    def account(self) -> str:
        """What takes how much with short stretches, GiB; the keys and values of the texts before them are theirs."""
        parts = {**self.always, "the engine's cache": self.appetite.pair_bytes * self.cache_tokens}
        parts[f"stretches of {LEAST_TOKENS} tokens after texts of {self.path_tokens}"] = self.most(LEAST_TOKENS) - sum(
            parts.values()
        )
        return ", ".join(f"{name} {size / GIB:.3f}" for name, size in parts.items() if size)

    def fit(self, gib: float) -> int:
        """The most tokens of a stretch with which a run stays within a budget.

        Raises:
            ConfigError: when it does not with a short one.
        """
        if self.most(LEAST_TOKENS) > gib * GIB:
            need = f"{self.most(LEAST_TOKENS) / GIB:.3f} GiB ({self.account()})"
            raise ConfigError(
                f"optimizer.memory_gib: got {gib}; need {need}; raise it, lower engine.cache_tokens or the policy's "
                "context_tokens, set optimizer.recompute=true, train adapters (lora) or take a smaller model"
            )
        fits, too_many = LEAST_TOKENS, MOST_TOKENS
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            fits, too_many = (middle, too_many) if self.most(middle) <= gib * GIB else (fits, middle)
        return fits


def foresee(
    policy: Policy,
    *,
    copies: Mapping[str, int],
    cache_tokens: int,
    entropy: bool,
    cpu_workers: int = 1,
) -> Memory:
    """Measure a policy.

    Args:
        policy: As it is trained.
        copies: Bytes by name of what there is besides: the engine's copy, a reference.
        cache_tokens: Most tokens whose keys and values the engine holds.
        entropy: Whether entropies are learned from.
        cpu_workers: How many stretches are read at the same time, each with gradients of its own.
    """
    learned = nbytes(policy.parameters().values())
    always = {"weights": nbytes(policy.weights().values()), **copies, "moments": 2 * learned}
    always["gradients"] = cpu_workers * learned
    always["the process"] = PROCESS_BYTES.get(policy.device.type, 0)
    return Memory(
        always=always,
        cache_tokens=cache_tokens,
        path_tokens=policy.context_tokens,
        appetite=appetite(policy),
        entropy=entropy,
        cpu_workers=cpu_workers,
    )


def nbytes(tensors: Iterable[Tensor]) -> int:
    """How much memory some tensors take."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
