"""Forecasts the memory of an update, measured on the model itself, and fits it to a budget.

The forecast counts everything that a run holds on the policy's device, without the rest of the program:

    weights, the engine's copy, a reference       their bytes
    gradients                                     bytes of the trained weights, for each worker
    the optimizer's moments                       twice the bytes of the trained weights
    the engine's keys and values                  the cache capacity
    keys and values for later chunks              of a text of the policy's context length
    a chunk                                       see `ChunkMemory`; for each worker

The chunk size is free: it is the largest with which the sum stays within the budget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.profiler import record_function

from bough.batch import (
    MAX_TARGET_SHARE,
    Attend,
    ChunkedForward,
    PackedPrefixTree,
    chosen_logprobs,
    logits_at_once,
    needs_masks,
)
from bough.config.config import ConfigError
from bough.learner.memory_meter import allocations
from bough.policy.policy import Policy
from bough.tree import Floats
from bough.units import GIB, MIB

SIZES = {"cpu": (64, 128, 192), "cuda": (1024, 2048, 3072)}
"""Lengths in tokens of the texts that measure the memory of a forward and backward pass."""

MIN_TOKENS, MAX_TOKENS = 64, 2**22
"""Minimum tokens of a chosen chunk."""

PROCESS_BYTES = {"cpu": 8 * MIB, "cuda": 112 * MIB}
"""Memory of an update besides its tensors: buffers of the matrix products, on a CPU partly used heap pages. PyTorch
gives cuBLAS up to 32 MiB in each of two threads, of the forward and of the backward pass; on an H200 tensors took 30 to
40 MiB besides."""

LOGITS = "bough.logits"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkShape:
    """Chunk sizes of a packed prefix tree; each number is the maximum over all chunks.

    Attributes:
        tokens: Tokens of a chunk.
        trained: Tokens of a chunk that predict a trained token.
        past: Tokens before a chunk on its path.
        kept: Tokens whose keys and values are stored for later chunks at one time.
    """

    tokens: int = 0
    trained: int = 0
    past: int = 0
    kept: int = 0

    @staticmethod
    def of(packed: PackedPrefixTree, max_tokens: int) -> "ChunkShape":
        """The chunk_shape for chunks of at most `max_tokens` tokens."""
        groups = packed.chunk_groups(max_tokens)
        chunks = [each for some in groups for each in some]
        bounds = np.searchsorted(np.sort(packed.at), [each.first for each in chunks] + [len(packed)])
        return ChunkShape(
            tokens=max((len(each) for each in chunks), default=0),
            trained=int(np.diff(bounds).max(initial=0)),
            past=max((len(each.past) for each in chunks), default=0),
            kept=max((len(packed.shared_tokens(some)) for some in groups), default=0),
        )

    def __or__(self, other: "ChunkShape") -> "ChunkShape":
        """The maximum of each field."""
        return ChunkShape(
            tokens=max(self.tokens, other.tokens),
            trained=max(self.trained, other.trained),
            past=max(self.past, other.past),
            kept=max(self.kept, other.kept),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkMemory:
    """Memory of the forward and backward pass of a chunk, besides weights and gradients.

    A model allocates and frees memory in the same order for any text length. So short texts of several lengths are
    run, and the bytes held after each allocation are recorded. Each is fitted as a line in the length, or as a parabola
    where attention needs a mask. The memory of a chunk is the maximum over these fits.

    Attributes:
        whole: When the last layer runs for all tokens.
        narrow: When the last layer runs only for predicting tokens; equal to `whole` if the policy cannot do that.
        pair_bytes: Keys and values of a token, in all layers.
        mask_bytes: Of a pair of a query and a key; 0 where attention needs no mask.
        hidden_bytes: A hidden state.
        words: [V, W] of the output layer.
        number_bytes: Bytes of one weight.
        learns_words: Whether the output layer is trained.
        device: Its kind, "cpu" or "cuda".
    """

    whole: "MemoryByPhase"
    narrow: "MemoryByPhase"
    pair_bytes: int
    mask_bytes: float
    hidden_bytes: int
    words: tuple[int, int]
    number_bytes: int
    learns_words: bool
    device: str

    def bytes(self, chunk_shape: ChunkShape, *, entropy: bool) -> int:
        """Bytes for chunks of that chunk_shape."""
        wide = max(4, self.number_bytes)
        at_once = wide * logits_at_once(
            chunk_shape.trained, self.words[0], entropy=entropy, device=self.device, number_bytes=self.number_bytes
        )
        layer = wide * self.words[0] * self.words[1] if self.learns_words else 0
        # The gathered predicting states, and their gradients.
        predicting = layer + at_once + self.hidden_bytes * chunk_shape.trained
        # A chunk that runs the whole last layer has at most so many tokens.
        tokens = min(chunk_shape.tokens, int(chunk_shape.trained / MAX_TARGET_SHARE))
        held = self.whole.most(tokens, chunk_shape.trained, predicting)
        if tokens < chunk_shape.tokens:
            held = max(held, self.narrow.most(chunk_shape.tokens, chunk_shape.trained, predicting))
        # An upper bound: with external attention kernels the path's keys and values are a leaf of the graph and are
        # joined to the chunk's own. Their gradient in the later chunk is float32.
        path = self.pair_bytes * chunk_shape.past * (3 + wide // self.number_bytes)
        masks = int(self.mask_bytes * chunk_shape.tokens * chunk_shape.past)
        return int(held) + path + masks + self.pair_bytes * chunk_shape.kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryByPhase:
    """Fitted bytes held at each allocation and release during a chunk.

    Attributes:
        held: [P, E], coefficients of the bytes held at each of E events: of the tokens, highest power first, and of
            the trained tokens, in the last row.
        logits: Index of the event that allocates the logits.
    """

    held: Floats
    logits: int

    def most(self, tokens: int, trained: int, predicting: int) -> float:
        """Maximum bytes, when the logits and their intermediate tensors take `predicting`."""
        power = np.arange(len(self.held) - 1)[::-1]
        held = np.append(float(tokens) ** power, trained) @ self.held
        return max(float(held.max()), float(held[self.logits]) + predicting)


def measure_chunk_memory(policy: Policy) -> ChunkMemory:
    """Measure the forward and backward pass of a few short texts. Leaves no gradients behind.

    Raises:
        ConfigError: when the policy runs path by path: the memory of its own forward pass has no forecast.
    """
    if not policy.packs:
        raise ConfigError(
            "optimizer.memory_gib: got a number with a policy that runs path by path; need none, and an "
            "optimizer.micro_tokens that fits; a longer path is computed at once"
        )
    sizes = SIZES["cuda" if policy.device.type == "cuda" else "cpu"]
    probe = _Probe()
    _update_of(policy, sizes[0], probe)()  # one-time allocations; later passes add to existing gradients
    sizes = sizes if probe.windows or probe.masks else sizes[:2]
    whole = _moments(policy, sizes, probe, narrow=False)
    narrow = _moments(policy, sizes, probe, narrow=True) if policy.skips_last_layer else whole
    for weight in policy.parameters().values():
        weight.grad = None
    weight, width = policy.head()[0], policy.dtype.itemsize
    return ChunkMemory(
        whole=whole,
        narrow=narrow,
        pair_bytes=width * sum(probe.pairs.values()),
        mask_bytes=max(0.0, float(whole.held[0].max())) if probe.masks else 0.0,
        hidden_bytes=width * weight.shape[1],
        words=(weight.shape[0], weight.shape[1]),
        number_bytes=width,
        learns_words=weight.requires_grad,
        device=policy.device.type,
    )


def _moments(policy: Policy, sizes: Sequence[int], probe: "_Probe", *, narrow: bool) -> MemoryByPhase:
    few, more = sizes[0] // 8, sizes[0] // 4
    found = [_held(policy, size, probe, trained=few, narrow=narrow) for size in sizes]
    # A pass with the whole last layer only gathers predicting states. (Each measured text fragments the heap.)
    found += [_held(policy, sizes[0], probe, trained=more, narrow=True)] if narrow else []
    if len({len(held) for held, _ in found}) > 1:
        # Sizes differ in their events; only the logits and the maximum correspond in all of them.
        found = [(np.asarray([held[logits], held.max()]), 0) for held, logits in found]
    held = np.stack([held for held, _ in found])
    gathered = np.full(held.shape[1], float(policy.dtype.itemsize * policy.head()[0].shape[1]))
    each = (held[-1] - held[0]) / (more - few) if narrow else gathered
    by_size = np.polyfit(sizes, held[: len(sizes)] - few * each, len(sizes) - 1)
    return MemoryByPhase(held=np.concatenate([by_size, each[None]]), logits=found[0][1])


class _Probe:
    """Wraps attention and records its window and key-value sizes. Reduces windows so that short texts exceed them.

    Attributes:
        windows: Whether any layer has a sliding window.
        masks: Whether attention needs masks.
        pairs: By layer, the number of key and value elements per token.
    """

    def __init__(self) -> None:
        self.windows = self.masks = False
        self.pairs: dict[int, int] = {}

    def wrap(self, attend: Attend) -> Attend:
        """The same attention with recording."""

        def probed(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            self.windows |= window is not None
            self.masks |= needs_masks(query, key.shape[1])
            self.pairs[layer] = key.shape[0] * (key.shape[2] + value.shape[2])
            return attend(layer, query, key, value, scale, window=None if window is None else 1)

        return probed


def _held(policy: Policy, size: int, probe: _Probe, *, trained: int = 1, narrow: bool = False) -> tuple[Floats, int]:
    """[E], bytes held after each allocation and release; index of the event that allocates the logits."""
    update = _update_of(policy, size, probe, trained=trained, narrow=narrow)
    return allocations(update, policy.device, mark=LOGITS)


def _update_of(
    policy: Policy, size: int, probe: _Probe, *, trained: int = 1, narrow: bool = False
) -> Callable[[], None]:
    """A forward and backward pass of `size` tokens, `trained` of them trained; `narrow`: last layer only for these."""
    after = np.arange(size - trained, size, dtype=np.int64) + 1
    text = np.zeros(size, dtype=np.int64)
    packed = PackedPrefixTree.pack([text], np.zeros_like(after), after, device=str(policy.device))
    # Logits are counted separately.
    target = torch.zeros(1, dtype=torch.int64, device=policy.device)

    def read(tokens: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None, last: Attend | None) -> Tensor:
        del last  # the mask-free last layer needs longer texts
        if narrow or wanted is None:
            return policy.hidden(tokens, positions, probe.wrap(attend), wanted)
        return policy.hidden(tokens, positions, probe.wrap(attend))[wanted]

    weight, bias = policy.head()

    def update() -> None:
        for chunk in ChunkedForward(read, packed, size).backward():
            with record_function(LOGITS):
                logprob, _ = chosen_logprobs(chunk.hidden[:1], weight, target, bias)
            logprob.sum().backward()  # pyright: ignore[reportUnknownMemberType]
            del chunk, logprob

    return update


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryForecast:
    """Memory of a run at the peak of an update.

    Attributes:
        always: Bytes by name of permanent allocations after the first update.
        cache_tokens: Maximum tokens whose keys and values the engine holds.
        path_tokens: Maximum tokens of a text.
        chunk: Memory of a chunk.
        entropy: Whether the loss needs entropies.
        cpu_workers: Number of chunks computed at the same time.
    """

    always: Mapping[str, int]
    cache_tokens: int
    path_tokens: int
    chunk: ChunkMemory
    entropy: bool
    cpu_workers: int

    def bytes(self, chunk_shape: ChunkShape, cache_tokens: int) -> int:
        """Bytes with chunks of that chunk_shape and so many tokens in the engine's cache."""
        chunks = self.cpu_workers * self.chunk.bytes(chunk_shape, entropy=self.entropy)
        return sum(self.always.values()) + self.chunk.pair_bytes * cache_tokens + chunks

    def most(self, tokens: int) -> int:
        """Maximum bytes with chunks of so many tokens.

        Assumes that all of them are trained, the engine's cache is full, and the path before them has maximum length.
        """
        chunk_shape = ChunkShape(tokens=tokens, trained=tokens, past=self.path_tokens, kept=self.path_tokens)
        return self.bytes(chunk_shape, self.cache_tokens)

    def fitted_cache(self, gib: float) -> int:
        """The engine's cache within a budget, tokens: half of what the smallest chunk leaves, and at least one text."""
        left = gib * GIB - replace(self, cache_tokens=0).most(MIN_TOKENS)
        return min(self.cache_tokens, max(self.path_tokens, int(left / 2 / self.chunk.pair_bytes)))

    def account(self) -> str:
        """Memory by purpose with the smallest chunks, GiB; keys and values of preceding text count to the chunks."""
        parts = {**self.always, "the engine's cache": self.chunk.pair_bytes * self.cache_tokens}
        parts[f"chunks of {MIN_TOKENS} tokens after texts of {self.path_tokens}"] = self.most(MIN_TOKENS) - sum(
            parts.values()
        )
        return ", ".join(f"{name} {size / GIB:.3f}" for name, size in parts.items() if size)

    def fit(self, gib: float) -> int:
        """The maximum tokens of a chunk with which a run stays within a budget.

        Raises:
            ConfigError: when the smallest chunk exceeds the budget.
        """
        if self.most(MIN_TOKENS) > gib * GIB:
            need = f"{self.most(MIN_TOKENS) / GIB:.3f} GiB ({self.account()})"
            raise ConfigError(
                f"optimizer.memory_gib: got {gib}; need {need}; raise it, lower engine.cache_tokens or the policy's "
                "context_tokens, set optimizer.recompute=true, train adapters (lora) or take a smaller model"
            )
        fits, too_many = MIN_TOKENS, MAX_TOKENS
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            fits, too_many = (middle, too_many) if self.most(middle) <= gib * GIB else (fits, middle)
        return fits


def forecast_memory(
    policy: Policy,
    *,
    copies: Mapping[str, int],
    cache_tokens: int,
    entropy: bool,
    cpu_workers: int = 1,
) -> MemoryForecast:
    """Measure a policy.

    Args:
        policy: The trained policy.
        copies: Bytes by name of further tensors: the engine's copy, a reference.
        cache_tokens: Maximum tokens whose keys and values the engine holds.
        entropy: Whether the loss needs entropies.
        cpu_workers: Number of chunks computed at the same time, each with its own gradients.
    """
    learned = nbytes(policy.parameters().values())
    always = {"weights": nbytes(policy.weights().values()), **copies, "moments": 2 * learned}
    always["gradients"] = cpu_workers * learned
    always["the process"] = PROCESS_BYTES.get(policy.device.type, 0)
    return MemoryForecast(
        always=always,
        cache_tokens=cache_tokens,
        path_tokens=policy.context_tokens,
        chunk=measure_chunk_memory(policy),
        entropy=entropy,
        cpu_workers=cpu_workers,
    )


def nbytes(tensors: Iterable[Tensor]) -> int:
    """Total bytes of some tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
