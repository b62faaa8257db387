"""Finds out, on a few tokens, whether a model can be run with its caller's attention, and what that is like."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bough.policy.attention import ATTENTION, causal
from bough.policy.causal import Causal

LENGTHS = [5, 9]
"""Tokens of the sequences laid end to end: two, for a layer that mixes tokens past its attention shows at the seam."""

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 2e-2}
"""Largest relative difference of logits; norms compute in float32 in all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an attention is handed.

    Attributes:
        layers: How many times it is called in a forward pass, with layer 0, 1, ...
        kv_heads: Key heads.
        head_width: Numbers in a head.
    """

    layers: int
    kv_heads: int
    head_width: int


def probe(model: Causal) -> Shape:
    """Compare the logits of two sequences laid end to end with the model's own, read one by one.

    Raises:
        ValueError: when they differ, or the model can't be run so; names the architecture and says why.
    """
    name = (model.model.config.architectures or [type(model.model).__name__])[0]
    try:
        return _compare(model)
    except Exception as error:
        raise ValueError(
            f"architecture {name} can't be trained by Bough: {error}; need a decoder whose layers mix tokens by plain "
            "causal attention alone (such as Llama, Qwen2, Qwen3)"
        ) from error


@torch.no_grad()
def _compare(model: Causal) -> Shape:
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, model.vocab_tokens, (sum(LENGTHS),), generator=draw).to(model.device)
    positions = torch.cat([torch.arange(length) for length in LENGTHS]).to(model.device)
    calls: list[tuple[int, Tensor]] = []

    def attend(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        calls.append((layer, key))
        pieces = zip(*(torch.split(part, LENGTHS, dim=1) for part in (query, key, value)), strict=True)
        return torch.cat([causal(layer, q, k, v, scale) for q, k, v in pieces], dim=1)

    ours = model.logits(model.hidden(tokens, positions, attend))
    layers = [layer for layer, _ in calls]
    if layers != list(range(model.model.config.num_hidden_layers)):
        raise ValueError(f"attention ran in layers {layers} of {model.model.config.num_hidden_layers}")
    widths = {(key.shape[0], key.shape[2]) for _, key in calls}
    if len(widths) > 1:
        raise ValueError(f"its layers have different (key heads, head widths): {sorted(widths)}")
    if any(key.dtype != model.dtype for _, key in calls):
        raise ValueError(f"its keys are not {model.dtype}, as its weights are")
    stock = torch.cat([_stock(model, piece) for piece in torch.split(tokens, LENGTHS)]).to(ours.dtype)
    difference = float((ours - stock).square().sum().sqrt() / stock.square().sum().sqrt())
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its logits differ by {difference:.1e} of their size when sequences are laid end to end")
    ((kv_heads, head_width),) = widths
    return Shape(layers=len(layers), kv_heads=kv_heads, head_width=head_width)


def _stock(model: Causal, tokens: Tensor) -> Tensor:
    run: Any = model.model
    model.attend_with("sdpa")
    try:
        return run(input_ids=tokens[None], use_cache=False).logits[0]
    finally:
        model.attend_with(ATTENTION)
