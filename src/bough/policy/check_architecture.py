"""Checks on a few tokens how a model can be run: packed, with its caller's attention, or path by path.

A model runs packed where the logits of a small tree equal its own logits of each path. Else it runs path by path, on
its own forward pass, where those of padded texts equal its own, and no later token changes them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from bough.policy.model import ATTENTION, CausalModel, causal, trunk_of
from bough.policy.own_forward import select_texts

PROMPT, BRANCHES = 5, [4, 3]
"""Tokens of a prompt and of its two continuations, concatenated. A layer that mixes tokens outside of attention
changes the logits at the boundary of the branches."""

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 2e-2}
"""Largest relative difference of logits; norms compute in float32 in all of them."""

WINDOW = re.compile("^(?!.*(layers|pattern)).*(window|chunk|local_attention)")
"""The names of a config's numbers of tokens beyond which a layer's attention may differ."""


CAP = re.compile("^(?!.*attn).*soft_?cap")
"""The names of a config's caps of logits."""

LARGEST_LOGIT = 100.0
EXACT = 1e-3
"""Largest relative difference of logits from a map of the output layer's: hidden states may have 16 bits."""


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


def check_architecture(model: CausalModel, context_tokens: int | None = None) -> AttentionShape | None:
    """Measure the `traits` of a model, and choose how it runs.

    Where the config has a window within the context, the hidden states behind the longest one are compared, too.

    Args:
        model: The model; its `traits` are set.
        context_tokens: Most positions of a sequence; None compares short sequences alone.

    Returns:
        The shape of its attention; None where it runs path by path.

    Raises:
        ValueError: when it can be run in neither way, or memory lacks; the message has the architecture and the reason.
    """
    name = (model.model.config.architectures or [type(model.model).__name__])[0]
    try:
        model.traits = replace(model.traits, **_logit_map(model))
        try:
            shape = _compare(model)
            if context_tokens is not None:
                _compare_beyond(model, context_tokens)
            return shape
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            reason = _reason(error).partition("; need ")[0]
            model.traits = replace(model.traits, by_path=reason, skips_last_layer=False)
        model.attend_with(model.traits.attention)
        _compare_own(model)
        model.traits = replace(model.traits, caches=_caches(model, context_tokens))
        return None
    except torch.OutOfMemoryError as error:
        raise ValueError(
            f"got too little memory on {model.device} for the check of architecture {name}; need a smaller dtype or "
            "context_tokens, or a device with more"
        ) from error
    except Exception as error:
        raise ValueError(
            f"architecture {name} can't be trained by Bough: {_reason(error)}; need a causal language model of "
            "transformers, whose logits depend on the tokens before them alone"
        ) from error


def _reason(error: Exception) -> str:
    """The first line of an error; of one that Bough did not raise, with its type."""
    line = (str(error).strip().splitlines() or ["no message"])[0]
    return line if type(error) is ValueError else f"{type(error).__name__}: {line}"


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
    count = model.model.config.num_hidden_layers
    if missing := sorted(set(range(count)) - set(layers)):
        raise ValueError(f"{len(missing)} of its {count} layers mix tokens without attention that Bough computes")
    if layers != list(range(count)):
        raise ValueError(f"attention ran in layers {layers} of {count}")
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
    found = _windows_within(model, context_tokens)
    if not found:
        return
    prompt = min(max(found.values()) + PROMPT, context_tokens - max(BRANCHES))
    tree = _Tree(model, prompt)
    ours = model.hidden(tree.tokens, tree.positions, tree.attend)
    theirs = tree.by_path(lambda tokens: _stock(model, tokens, trunk=True).last_hidden_state[0])
    theirs = theirs * model.traits.logit_scale
    difference = _difference(ours[prompt:], theirs[prompt:])
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its hidden states differ by {difference:.1e} of their size beyond its windows, {found}")


def _windows_within(model: CausalModel, context_tokens: int) -> dict[str, int]:
    """The windows of the config that are shorter than the context."""
    return {name: size for name, size in windows(model.model.config.to_dict()).items() if size < context_tokens}


@torch.no_grad()
def _compare_own(model: CausalModel) -> None:
    """Compare the logits of two padded texts, by `CausalModel.hidden`, with the model's own logits of each prefix."""
    tree = _Tree(model, PROMPT)
    texts = [tree.tokens[tree.first], tree.tokens[tree.second].flip(0)]
    positions = torch.cat([torch.arange(len(text), device=model.device) for text in texts])
    ours = model.logits(model.hidden(torch.cat(texts), positions, causal))
    theirs = [_stock(model, text).logits[0] for text in texts]
    # A layer that is not causal gives other logits where the later tokens are missing.
    shorter = [_stock(model, text[:PROMPT]).logits[0] for text in texts]
    difference = _difference(torch.cat([each[:PROMPT] for each in theirs]), torch.cat(shorter))
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its logits differ by {difference:.1e} of their size with the tokens after them")
    difference = _difference(ours, torch.cat(theirs))
    if not difference <= TOLERANCE[model.dtype]:
        raise ValueError(f"its logits differ by {difference:.1e} of their size beside another text")


@torch.no_grad()
def _caches(model: CausalModel, context_tokens: int | None) -> bool:
    """Whether decoding with the model's own cache has the states of one forward pass, for several texts, then fewer."""
    found = {} if context_tokens is None else _windows_within(model, context_tokens)
    steps = max(BRANCHES)
    prompt = max(PROMPT, min(max(found.values(), default=0) + PROMPT, (context_tokens or PROMPT + steps) - steps))
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, model.vocab_tokens, (3, prompt + steps), generator=draw).to(model.device)
    kept = torch.as_tensor([2, 0], device=model.device)
    whole = torch.stack([model.hidden(each, torch.arange(len(each), device=model.device), causal) for each in tokens])
    try:
        states, cache = model.decode(tokens[:, :prompt], None)
        seen = [states[kept]]
        for place in range(prompt, prompt + steps):
            states, cache = model.decode(tokens[:, place : place + 1], cache)
            if place == prompt:
                select_texts(cache, kept)
                states, tokens = states[kept], tokens[kept]
            seen.append(states)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # caches fail in many ways, and a model can do without
        return False
    return _difference(torch.cat(seen, dim=1), whole[kept]) <= TOLERANCE[model.dtype]


@torch.no_grad()
def _logit_map(model: CausalModel) -> dict[str, Any]:
    """The factor before the output layer that gives the model's logits, and their cap.

    Raises:
        ValueError: when the logits are another function of the output layer.
    """
    untyped: Any = model.model
    head: Any = untyped.get_output_embeddings()
    if head is None:
        raise ValueError("it has no output layer of a vocabulary")
    probe = torch.linspace(-LARGEST_LOGIT, LARGEST_LOGIT, model.vocab_tokens, device=model.device)
    inputs = list[Tensor]()

    def replace_output(module: object, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        del module
        inputs.append(given[0])
        return probe.expand(output.shape)

    hook: Any = head.register_forward_hook(replace_output)
    tree = _Tree(model, PROMPT)
    tokens = tree.tokens[tree.first]
    try:
        found = _stock(model, tokens).logits[0, -1].double()
    finally:
        hook.remove()
    if not inputs:
        raise ValueError("its output layer is not called")
    states = _stock(model, tokens, trunk=True).last_hidden_state[0]
    before = _factor(inputs[0].reshape(-1, states.shape[-1])[-1:], states[-1:])
    after = _factor(found, probe)
    if _difference(found, after * probe) <= EXACT:
        return {"logit_scale": _rounded(before * after), "logit_cap": None}
    for cap in logit_caps(model.model.config.to_dict()):
        if _difference(found, cap * torch.tanh(probe.double() / cap)) <= EXACT:
            return {"logit_scale": _rounded(before), "logit_cap": cap}
    raise ValueError("its logits are neither a multiple of its output layer's, nor capped by tanh")


def _factor(theirs: Tensor, ours: Tensor) -> float:
    """The factor between two tensors."""
    ours, theirs = ours.double(), theirs.double()
    return float((theirs * ours).sum() / (ours * ours).sum())


def _rounded(factor: float) -> float:
    """Exactly 1 for a factor of 1 but for rounding."""
    return 1.0 if abs(factor - 1) < EXACT else factor


def logit_caps(config: Mapping[str, object]) -> list[float]:
    """The caps of logits in a config, nested configs included."""
    found = list[float]()
    for name, value in config.items():
        if isinstance(value, Mapping):
            found += logit_caps(cast("Mapping[str, object]", value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0 and CAP.search(name):
            found.append(float(value))
    return found


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
    run: Any = trunk_of(model.model) if trunk else model.model
    model.attend_with(model.traits.attention)
    try:
        return run(input_ids=tokens[None], use_cache=False)
    finally:
        if model.packs:
            model.attend_with(ATTENTION)
