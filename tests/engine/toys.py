"""Small models for engines, and the plain way to compute what an engine computes cleverly."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from bough.engine import Local, Request, Sampling
from bough.engine.generation import LocalEngine
from bough.engine.model import Attend

T = TypeVar("T")

# Models this small are slower with more.
torch.set_num_threads(1)


class Toy(nn.Module):
    """A transformer with grouped key heads that never leaves its dtype, unlike those of transformers."""

    def __init__(
        self,
        *,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        heads: int = 4,
        kv_heads: int = 2,
        vocab_tokens: int = 29,
        context_tokens: int = 512,
    ) -> None:
        super().__init__()
        self.layers, self.heads, self.kv_heads, self.head_width = 2, heads, kv_heads, 8
        self.vocab_tokens, self.context_tokens = vocab_tokens, context_tokens
        self.device, self.dtype, self.tokenizer = torch.device("cpu"), dtype, None
        width = heads * self.head_width
        self.packs = True
        self.passes: list[int] = []
        self.embed = nn.Embedding(vocab_tokens, width)
        self.place = nn.Embedding(context_tokens, width)
        self.q = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.k = nn.ModuleList(nn.Linear(width, kv_heads * self.head_width) for _ in range(2))
        self.v = nn.ModuleList(nn.Linear(width, kv_heads * self.head_width) for _ in range(2))
        self.o = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.head = nn.Linear(width, vocab_tokens)
        self.to(dtype).requires_grad_(False)
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            scale = 1.0 if parameter.shape[0] in (vocab_tokens, context_tokens) else 1.5
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(noise * scale / parameter.shape[-1] ** 0.5)

    def replica(self) -> "Toy":
        """The engine's own copy; no other object changes a toy."""
        return self

    def weights(self) -> dict[str, Tensor]:
        return dict(self.state_dict())

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        attend: Attend,
        rows: Tensor | None = None,
        attend_last: Attend | None = None,
    ) -> Tensor:
        self.passes.append(len(tokens))
        x = self.embed(tokens) * 4 + self.place(positions) * 2
        for layer in range(self.layers):
            q, k, v = (p[layer](x).view(len(x), -1, self.head_width).transpose(0, 1) for p in (self.q, self.k, self.v))
            few = rows is not None and attend_last is not None and layer == self.layers - 1
            mixed = (attend_last if few else attend)(layer, q, k, v, self.head_width**-0.5)
            x = x[rows] if few else x
            x = x + self.o[layer](mixed.transpose(0, 1).reshape(len(x), -1))
            x = x + torch.tanh(self.up[layer](x))
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return self.head(hidden)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        if weights.keys() != self.state_dict().keys():
            raise ValueError(f"got {sorted(weights)}; need {sorted(self.state_dict())}")
        self.load_state_dict(dict(weights))


def plain(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Attention of one sequence, written out."""
    del layer
    key, value = (x.repeat_interleave(len(query) // len(x), dim=0) for x in (key, value))
    tokens = query.shape[1]
    future = torch.ones(tokens, tokens).triu(1).bool()
    return (query @ key.transpose(-1, -2) * scale).masked_fill(future, -torch.inf).softmax(-1) @ value


def teacher_forced(
    model: Any, prompt: Sequence[int], tokens: Sequence[int], temperature: float = 1.0, top_p: float = 1.0
) -> Tensor:
    """Log-distribution [n, V] float64 at each of n continuation tokens, from one forward pass over everything."""
    text = torch.tensor([*prompt, *tokens])
    with torch.no_grad():
        hidden = model.hidden(text, torch.arange(len(text)), plain)[len(prompt) - 1 : -1]
        rows = (model.logits(hidden).double() / temperature).log_softmax(-1)
    for row in rows:
        total = 0.0
        for token in row.argsort(descending=True, stable=True).tolist():
            probability = float(row[token].exp())
            if total >= top_p:
                row[token] = -torch.inf
            total += probability
    return rows.log_softmax(-1)


def ask(
    prompt: Sequence[int],
    *,
    max_tokens: int = 8,
    temperature: float = 1.0,
    top_p: float = 1.0,
    stop: Sequence[int] = (),
    seed: int = 0,
) -> Request:
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, top_p=top_p)
    return Request(prompt_tokens=tuple(prompt), sampling=sampling, stop_tokens=tuple(stop), seed=seed)


def engine(model: Any = None, **config: Any) -> LocalEngine:
    return LocalEngine(Local(**config), Toy() if model is None else model)


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, timeout=60))


def together(built: LocalEngine, requests: Sequence[Request]) -> list[Any]:
    async def main() -> list[Any]:
        return await asyncio.gather(*(built.generate(request) for request in requests))

    return run(main())


def alone(make: Callable[[], LocalEngine], requests: Sequence[Request]) -> list[Any]:
    """Each on an engine of its own, so nothing is shared."""
    return [run(make().generate(request)) for request in requests]
