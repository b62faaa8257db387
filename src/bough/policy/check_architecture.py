"""Checks, on a few tokens, that a model can be run with its caller's attention, and measures its attention's shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bough.policy.model import ATTENTION, CausalModel, causal

PROMPT, BRANCHES = 5, [4, 3]
"""Tokens of a prompt and of its two continuations, concatenated. A layer that mixes tokens outside of attention
changes the logits at the boundary of the branches."""

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 2e-2}
"""Largest relative difference of logits; norms compute in float32 in all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """The sizes of a model's attention.

    Attributes:
        layers: The number of attention calls in a forward pass, with layer 0, 1, ...
        heads: Query heads.
        kv_heads: Key heads.
        head_width: Elements of a head.
    """

    layers: int
    heads: int
    kv_heads: int
    head_width: int


def check_architecture(model: CausalModel) -> AttentionShape:
    """Compare the logits of a small tree, laid out depth first, with the model's own logits of each path.

    Sets `model.skips_last_layer` if the last layer can run for a subset of tokens with the same result.

    Raises:
        ValueError: when they differ, or the model does not support this forward pass; the message has the architecture
            and the reason.
    """
    name = (model.model.config.architectures or [type(model.model).__name__])[0]
    try:
        return _compare(model)
    except Exception as error:
        raise ValueError(
            f"architecture {name} can't be trained by Bough: {error}; need a decoder whose layers mix tokens by causal "
            "attention alone (such as Llama, Qwen2, Qwen3, Gemma3)"
        ) from error


@torch.no_grad()
def _compare(model: CausalModel) -> AttentionShape:
    draw = torch.Generator().manual_seed(0)
    place = torch.arange(PROMPT + sum(BRANCHES), device=model.device)
    first, second = place < PROMPT + BRANCHES[0], (place < PROMPT) | (place >= PROMPT + BRANCHES[0])
    tokens = torch.randint(0, model.vocab_tokens, (len(place),), generator=draw).to(model.device)
    positions = torch.where(first, place, place - BRANCHES[0])
    calls: list[tuple[int, Tensor, Tensor]] = []

    def attend(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        calls.append((layer, query, key))
        one, other = (
            causal(layer, query[:, path], key[:, path], value[:, path], scale, window=window)
            for path in (first, second)
        )
        return torch.cat([one, other[:, PROMPT:]], dim=1)

    hidden = model.hidden(tokens, positions, attend)
    ours = model.logits(hidden)
    layers = [layer for layer, _, _ in calls]
    if layers != list(range(model.model.config.num_hidden_layers)):
        raise ValueError(f"attention ran in layers {layers} of {model.model.config.num_hidden_layers}")
    widths = {(len(query), *key.shape[::2]) for _, query, key in calls}
    if len(widths) > 1:
        raise ValueError(f"its layers have different (query heads, key heads, head widths): {sorted(widths)}")
    if any(key.dtype != model.dtype for _, _, key in calls):
        raise ValueError(f"its keys are not {model.dtype}, as its weights are")
    stock = torch.cat([_stock(model, tokens[first]), _stock(model, tokens[second])[PROMPT:]]).to(ours.dtype)
    difference = float((ours - stock).square().sum().sqrt() / stock.square().sum().sqrt())
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its logits differ by {difference:.1e} of their size when paths share their beginning")
    ((heads, kv_heads, head_width),) = widths
    model.skips_last_layer = _skips(model, lambda rows: model.hidden(tokens, positions, attend, rows), hidden)
    return AttentionShape(layers=len(layers), heads=heads, kv_heads=kv_heads, head_width=head_width)


def _skips(model: CausalModel, run: Callable[[Tensor], Tensor], hidden: Tensor) -> bool:
    """Whether `run`, called with rows, returns the hidden states of these rows."""
    rows = torch.as_tensor([PROMPT - 1, len(hidden) - 1], device=model.device)
    model.skips_last_layer = True
    try:
        some = run(rows)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False  # its layers have other arguments
    if some.shape != (len(rows), hidden.shape[1]):
        return False
    difference = float((some - hidden[rows]).square().sum().sqrt() / hidden[rows].square().sum().sqrt())
    return difference <= TOLERANCE[model.dtype]


def _stock(model: CausalModel, tokens: Tensor) -> Tensor:
    run: Any = model.model
    model.attend_with("sdpa")
    try:
        return run(input_ids=tokens[None], use_cache=False).logits[0]
    finally:
        model.attend_with(ATTENTION)
