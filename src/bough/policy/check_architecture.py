"""Checks, on a few tokens, that a model can be run with its caller's attention, and measures its attention's shape."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from bough.policy.model import ATTENTION, CausalModel, causal

PROMPT, BRANCHES = 5, [4, 3]
"""Tokens of a prompt and of its two continuations, concatenated. A layer that mixes tokens outside of attention
changes the logits at the boundary of the branches."""

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 2e-2}
"""Largest relative difference of logits; norms compute in float32 in all of them."""

WINDOW = re.compile("^(?!.*(layers|pattern)).*(window|chunk|local_attention)")
"""The names of a config's numbers of tokens beyond which a layer's attention may differ."""


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


def check_architecture(model: CausalModel, context_tokens: int | None = None) -> AttentionShape:
    """Compare the logits of a small tree, laid out depth first, with the model's own logits of each path.

    Where the config has a window within the context, the hidden states behind the longest one are compared, too. Sets
    `model.skips_last_layer` if the last layer can run for a subset of tokens with the same result.

    Args:
        model: The model.
        context_tokens: Most positions of a sequence; None compares short sequences alone.

    Raises:
        ValueError: when they differ, or the model does not support this forward pass; the message has the architecture
            and the reason.
    """
    name = (model.model.config.architectures or [type(model.model).__name__])[0]
    try:
        shape = _compare(model)
        if context_tokens is not None:
            _compare_beyond(model, context_tokens)
        return shape
    except Exception as error:
        raise ValueError(
            f"architecture {name} can't be trained by Bough: {error}; need a decoder whose layers mix tokens by causal "
            "attention alone (such as Llama, Qwen2, Qwen3, Gemma3)"
        ) from error


class _Tree:
    """A prompt with two continuations as one sequence.

    Attributes:
        tokens: [U].
        positions: [U], in the path of each token.
        first: [U], whether a token is in the first path.
        second: [U], whether it is in the second.
        calls: The layer, the queries and the keys of each call of `attend`.
    """

    def __init__(self, model: CausalModel, prompt: int) -> None:
        draw = torch.Generator().manual_seed(0)
        place = torch.arange(prompt + sum(BRANCHES), device=model.device)
        self.first, self.second = place < prompt + BRANCHES[0], (place < prompt) | (place >= prompt + BRANCHES[0])
        self.tokens = torch.randint(0, model.vocab_tokens, (len(place),), generator=draw).to(model.device)
        self.positions = torch.where(self.first, place, place - BRANCHES[0])
        self.calls: list[tuple[int, Tensor, Tensor]] = []
        self._prompt = prompt

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """Each path by itself; see `Attend`."""
        self.calls.append((layer, query, key))
        one, other = (
            causal(layer, query[:, path], key[:, path], value[:, path], scale, window=window)
            for path in (self.first, self.second)
        )
        return torch.cat([one, other[:, self._prompt :]], dim=1)

    def by_path(self, run: Callable[[Tensor], Tensor]) -> Tensor:
        """[U, ...]: the results of `run` on each path's tokens."""
        return torch.cat([run(self.tokens[self.first]), run(self.tokens[self.second])[self._prompt :]])


@torch.no_grad()
def _compare(model: CausalModel) -> AttentionShape:
    tree = _Tree(model, PROMPT)
    hidden = model.hidden(tree.tokens, tree.positions, tree.attend)
    ours = model.logits(hidden)
    layers = [layer for layer, _, _ in tree.calls]
    if layers != list(range(model.model.config.num_hidden_layers)):
        raise ValueError(f"attention ran in layers {layers} of {model.model.config.num_hidden_layers}")
    widths = {(len(query), *key.shape[::2]) for _, query, key in tree.calls}
    if len(widths) > 1:
        raise ValueError(f"its layers have different (query heads, key heads, head widths): {sorted(widths)}")
    if any(key.dtype != model.dtype for _, _, key in tree.calls):
        raise ValueError(f"its keys are not {model.dtype}, as its weights are")
    difference = _difference(ours, tree.by_path(lambda tokens: _stock(model, tokens).logits[0]))
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its logits differ by {difference:.1e} of their size when paths share their beginning")
    ((heads, kv_heads, head_width),) = widths
    model.skips_last_layer = _skips(
        model, lambda rows: model.hidden(tree.tokens, tree.positions, tree.attend, rows), hidden
    )
    return AttentionShape(layers=len(layers), heads=heads, kv_heads=kv_heads, head_width=head_width)


@torch.no_grad()
def _compare_beyond(model: CausalModel, context_tokens: int) -> None:
    """Compare the continuations of a prompt that is longer than each window of the config within the context."""
    found = {name: size for name, size in windows(model.model.config.to_dict()).items() if size < context_tokens}
    if not found:
        return
    prompt = min(max(found.values()) + PROMPT, context_tokens - max(BRANCHES))
    tree = _Tree(model, prompt)
    ours = model.hidden(tree.tokens, tree.positions, tree.attend)
    theirs = tree.by_path(lambda tokens: _stock(model, tokens, trunk=True).last_hidden_state[0])
    difference = _difference(ours[prompt:], theirs[prompt:])
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its hidden states differ by {difference:.1e} of their size beyond its windows, {found}")


def windows(config: Mapping[str, object]) -> dict[str, int]:
    """The sizes of a config by name beyond which a layer's attention may differ, nested configs included."""
    sizes: dict[str, int] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            sizes |= windows(cast("Mapping[str, object]", value))
        elif isinstance(value, int) and not isinstance(value, bool) and WINDOW.search(name) and value > 0:
            sizes[name] = value
    return sizes


def _difference(ours: Tensor, theirs: Tensor) -> float:
    """The norm of the difference, relative to the norm of `theirs`."""
    theirs = theirs.to(ours.dtype)
    return float((ours - theirs).square().sum().sqrt() / theirs.square().sum().sqrt())


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
    return _difference(some, hidden[rows]) <= TOLERANCE[model.dtype]


def _stock(model: CausalModel, tokens: Tensor, *, trunk: bool = False) -> Any:
    """The result of transformers' own forward pass, of the model or of its trunk."""
    run: Any = model.model.base_model if trunk else model.model
    model.attend_with("sdpa")
    try:
        return run(input_ids=tokens[None], use_cache=False)
    finally:
        model.attend_with(ATTENTION)
