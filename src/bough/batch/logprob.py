"""Log-probabilities of chosen tokens, without a [tokens, vocabulary] tensor."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.autograd.function import once_differentiable

TILES = {"cpu": (2**22, 2048), "cuda": (2**26, 8192)}
"""By kind of device the most logits of a tile, and the most of the vocabulary in one of several. Larger tiles are slow
on a CPU, where they leave its cache; smaller ones are on a GPU, which then waits for the next operation."""

FORBIDDEN = -1e30
"""The logit of a token that was not allowed. Its probability is 0, and 0 times it is 0, which -inf would make nan."""

UNPACKED = 2**20
"""Most bits of sets that are unpacked at a time."""

LogitMap: TypeAlias = tuple[float, float | None]
"""The temperature and the cap of logits."""

Allowed: TypeAlias = tuple[Tensor, Tensor]
"""[M] index of each row's set, -1 for all tokens; [K, B] the sets."""


def chosen_logprobs(
    hidden: Float[Tensor, "M W"],
    weight: Float[Tensor, "V W"],
    target: Int[Tensor, " M"],
    bias: Float[Tensor, " V"] | None = None,
    *,
    cap: float | None = None,
    temperature: float = 1.0,
    entropy: bool = False,
    allowed: Int[Tensor, " M"] | None = None,
    sets: UInt8[Tensor, "K B"] | None = None,
    tile_elements: int | None = None,
    tile_vocab: int | None = None,
) -> tuple[Float[Tensor, " M"], Float[Tensor, " M"] | None]:
    """The log of softmax((hidden @ weight.T + bias) / temperature) at `target`, and that distribution's entropy.

    Logits exist one tile of rows x vocabulary at a time, in memory that every tile uses in turn, and are made again for
    the gradient; when all of them fit in one tile they are kept instead, and it costs what the plain formula costs.
    Both results carry exact first-order gradients to `hidden`, `weight` and `bias`. Sums are in float32 (float64 for
    float64), whatever the inputs are. On CUDA, where weights and states are of 16 bits, so are the gradients of logits
    that are multiplied with them, as PyTorch's own product would have it; their sums are in float32 there too.
    A row with a set of allowed tokens has the softmax over these alone; if that is one token, the results and their
    gradients are 0.

    Args:
        hidden: [M, W] final hidden states of the predicting positions.
        weight: [V, W] of the output layer.
        target: [M] the token whose log-probability is wanted.
        bias: [V] of the output layer.
        cap: Logits z become cap * tanh(z / cap), before the temperature (Gemma 2, arXiv:2408.00118, section 2); None
            leaves them as they are.
        temperature: Divides the logits, > 0.
        entropy: Whether the entropy is wanted.
        allowed: [M] index in `sets` of the tokens that each row may choose; -1 for all. None is all in every row.
        sets: [K, B] uint8, sets of tokens: token t is bit t % 8 of byte t // 8.
        tile_elements: Most logits of a tile; see `logits_at_once` for how many tiles there are. None is `TILES`.
        tile_vocab: Most of the vocabulary in a tile, when there is more than one. None is `TILES`.

    Returns:
        [M] log-probabilities and [M] entropies in nats (None when not wanted), float32 (float64 for float64).

    Raises:
        ValueError: when the temperature is not positive or a target is outside the vocabulary.
    """
    if not temperature > 0:
        raise ValueError(f"chosen_logprobs: got temperature {temperature}; need a number above 0")
    vocab = len(weight)
    if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
        raise ValueError(
            f"chosen_logprobs: got targets from {int(target.min())} to {int(target.max())}; need "
            f"tokens of a vocabulary of {vocab}"
        )
    elements, columns = _tiles(hidden.device.type)
    tile = _tile(len(target), vocab, tile_elements or elements, tile_vocab or columns)
    apply = cast("Callable[..., tuple[Tensor, Tensor | None]]", _Chosen.apply)  # pyright: ignore[reportUnknownMemberType]
    limits = None if allowed is None or sets is None or not len(sets) else (allowed, sets)
    return apply(hidden, weight, bias, target, (temperature, cap), entropy, tile, limits)


def logits_at_once(rows: int, vocab: int, *, entropy: bool = False, device: str = "cpu", number_bytes: int = 4) -> int:
    """The number of logits that `chosen_logprobs` holds at a time, forward or backward, on a kind of device.

    On CUDA weights of 16 bits add half a tile: the copy of the gradients in 16 bits.
    """
    tile = _tile(rows, vocab, *_tiles(device))
    kept = rows <= tile[0] and vocab <= tile[1]
    size = min(rows, tile[0]) * tile[1]
    return size * (1 + entropy + kept) + (size // 2 if device == "cuda" and number_bytes == 2 else 0)


def _tiles(device: str) -> tuple[int, int]:
    return TILES.get(device, TILES["cpu"])


def _tile(rows: int, vocab: int, elements: int, columns: int) -> tuple[int, int]:
    """Rows and columns of a tile."""
    width = vocab if rows * vocab <= elements else min(vocab, columns)
    return max(1, elements // width), width


class _Chosen(torch.autograd.Function):
    """Log-sum-exp, and the mean logit, accumulated over tiles of the vocabulary."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        logit_map: LogitMap,
        entropy: bool,
        tile: tuple[int, int],
        limits: Allowed | None,
    ) -> tuple[Tensor, Tensor | None]:
        wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        chosen, normaliser = (hidden.new_empty(len(hidden), dtype=wide) for _ in range(2))
        spread = hidden.new_empty(len(hidden), dtype=wide) if entropy else None
        whole = len(hidden) <= tile[0] and len(weight) <= tile[1]
        buffers = _buffers(hidden, weight, tile, wide, two=entropy or whole)
        logits = hidden.new_empty((0, len(weight)), dtype=wide)
        for rows in _slices(len(hidden), tile[0]):
            read, wanted = hidden[rows].to(_factor(hidden, weight, wide)), target[rows]
            top = chosen.new_full((len(read),), -torch.inf)  # the largest logit so far
            total, mean, picked = (torch.zeros_like(top) for _ in range(3))  # sums of exp(z - top), and of that times z
            for cols in _slices(len(weight), tile[1]):
                logits = _logits(read, weight, bias, cols, logit_map, buffers[0])
                _forbid(logits, limits, rows, cols)
                inside, place = _inside(wanted, cols)
                picked = torch.where(inside, logits.gather(1, place[:, None])[:, 0], picked)
                raised = torch.maximum(top, logits.amax(dim=1))
                fade, top = (top - raised).exp(), raised
                mass = torch.sub(logits, top[:, None], out=_view(buffers[-1], logits)).exp_()
                total = total * fade + mass.sum(dim=1)
                if entropy:
                    mean = mean * fade + torch.einsum("rv,rv->r", mass, logits)
            normaliser[rows] = top + total.log()
            chosen[rows] = picked - normaliser[rows]
            if spread is not None:
                spread[rows] = normaliser[rows] - mean / total
        ctx.save_for_backward(hidden, weight, bias, target, normaliser, spread, logits if whole else None)
        ctx.logit_map, ctx.tile, ctx.limits = logit_map, tile, limits
        return chosen, spread

    @staticmethod
    @once_differentiable  # which torch leaves untyped
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad_logprob, grad_entropy = grad_outputs
        hidden, weight, bias, target, normaliser, spread, whole = ctx.saved_tensors
        wide = normaliser.dtype
        wants_hidden, wants_weight, wants_bias = ctx.needs_input_grad[:3]
        to_hidden = torch.zeros_like(hidden, dtype=wide) if wants_hidden else None
        to_weight = torch.zeros_like(weight, dtype=wide) if wants_weight else None
        to_bias = torch.zeros_like(bias, dtype=wide) if wants_bias else None
        two = spread is not None and grad_entropy is not None
        buffers = _buffers(hidden, weight, ctx.tile, wide, two=two)
        factor = _factor(hidden, weight, wide)
        for rows in _slices(len(hidden), ctx.tile[0]):
            read, wanted, pull = hidden[rows].to(factor), target[rows], grad_logprob[rows, None]
            for cols in _slices(len(weight), ctx.tile[1]):
                known = whole is not None
                logits = whole if known else _logits(read, weight, bias, cols, ctx.logit_map, buffers[0])
                if not known:
                    _forbid(logits, ctx.limits, rows, cols)
                derivative = _derivative(logits, ctx.logit_map)
                logprobs = torch.sub(logits, normaliser[rows, None], out=_view(buffers[0], logits))
                # d logprob / dz = [chosen] - p;  d entropy / dz = -p (log p + entropy)
                if spread is None or grad_entropy is None:
                    grad = logprobs.exp_().mul_(-pull)
                else:
                    pulls = torch.add(logprobs, spread[rows, None], out=_view(buffers[1], logits))
                    pulls.mul_(grad_entropy[rows, None]).add_(pull)
                    grad = logprobs.exp_().mul_(pulls).neg_()
                inside, place = _inside(wanted, cols)
                grad.scatter_add_(1, place[:, None], torch.where(inside[:, None], pull, 0.0))
                if ctx.logit_map[0] != 1.0:
                    grad /= ctx.logit_map[0]
                if derivative is not None:
                    grad *= derivative
                if to_bias is not None:
                    to_bias[cols] += grad.sum(dim=0)
                grad = grad.to(factor)
                if to_hidden is not None:
                    _add_product(to_hidden[rows], grad, weight[cols].to(factor))
                if to_weight is not None:
                    _add_product(to_weight[cols], grad.T, read)
        grads = zip((to_hidden, to_weight, to_bias), (hidden, weight, bias), strict=True)
        return (*(None if grad is None else grad.to(like.dtype) for grad, like in grads), *[None] * 5)


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def _buffers(hidden: Tensor, weight: Tensor, tile: tuple[int, int], dtype: torch.dtype, *, two: bool) -> list[Tensor]:
    """Memory for one tile, or two, which every tile uses in turn."""
    size = min(len(hidden), tile[0]) * min(len(weight), tile[1])
    return [hidden.new_empty(size, dtype=dtype) for _ in range(2 if two else 1)]


def _view(buffer: Tensor, like: Tensor) -> Tensor:
    return buffer[: like.numel()].view(like.shape)


def _factor(hidden: Tensor, weight: Tensor, wide: torch.dtype) -> torch.dtype:
    """The dtype of the factors of products whose sums are in `wide`: a GPU multiplies those of 16 bits much faster."""
    halves = hidden.dtype == weight.dtype and hidden.dtype in (torch.bfloat16, torch.float16)
    return hidden.dtype if hidden.is_cuda and halves else wide


def _logits(
    read: Tensor, weight: Tensor, bias: Tensor | None, cols: slice, logit_map: LogitMap, buffer: Tensor
) -> Tensor:
    """One tile of logits, capped, over the temperature, in the dtype of `buffer`."""
    matrix = weight[cols].to(read.dtype).T
    logits = buffer[: len(read) * matrix.shape[1]].view(len(read), -1)
    if read.dtype == buffer.dtype:
        torch.mm(read, matrix, out=logits)
    else:
        torch.mm(read, matrix, out_dtype=buffer.dtype, out=logits)
    if bias is not None:
        logits += bias[cols].to(buffer.dtype)
    temperature, cap = logit_map
    if cap is not None:
        logits.div_(cap).tanh_().mul_(cap)
    return logits if temperature == 1.0 else logits.div_(temperature)


def _derivative(logits: Tensor, logit_map: LogitMap) -> Tensor | None:
    """The derivative of capped logits by the output layer's; None without a cap."""
    temperature, cap = logit_map
    # A forbidden logit is far below the cap, and has no gradient.
    return None if cap is None else (1 - (logits * (temperature / cap)).square_()).clamp_(min=0)


def _forbid(logits: Tensor, limits: Allowed | None, rows: slice, cols: slice) -> None:
    """Set the logits of a tile to `FORBIDDEN` where the set of a row does not have the token."""
    if limits is None:
        return
    index, sets = limits[0][rows], limits[1]
    token = torch.arange(cols.start, cols.stop, device=logits.device)
    for some in torch.split((index >= 0).nonzero()[:, 0], max(1, UNPACKED // len(token))):
        bits = sets[index[some]][:, token // 8] >> (token % 8).to(torch.uint8)
        logits[some] = logits[some].masked_fill((bits & 1) == 0, FORBIDDEN)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to `total`, which may be wider."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)


def _inside(target: Tensor, cols: slice) -> tuple[Tensor, Tensor]:
    """Which targets lie in a tile, and where in it (anywhere for the others)."""
    place = target - cols.start
    inside = (place >= 0) & (place < cols.stop - cols.start)
    return inside, place.where(inside, 0)
