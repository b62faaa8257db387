"""A model's outputs at the trained tokens of a batch: log-probabilities, entropies, values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bough.batch import Batch, ChunkedForward, ChunkOutput, PackedPrefixTree, chosen_logprobs
from bough.critics.critic import Critic
from bough.policy.model import Attend


@runtime_checkable
class Forward(Protocol):
    """A model that computes log-probabilities: the policy, or a frozen copy of it."""

    @property
    def packs(self) -> bool:
        """Whether `hidden` takes texts that share a prefix; else it takes whole texts."""
        ...

    @property
    def logit_cap(self) -> float | None:
        """The model's logits are cap * tanh(logits / cap) of the head's; None where they are the head's."""
        ...

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        attend: Attend,
        rows: Tensor | None = None,
        attend_last: Attend | None = None,
    ) -> Tensor:
        """Hidden states [U, W] before the head, of concatenated tokens, or [u, W] of the tokens `rows`.

        `attend_last` may replace `attend` in the last layer, and returns only `rows`.
        """
        ...

    def head(self) -> tuple[Tensor, Tensor | None]:
        """Weight [V, W] and bias [V] of the output layer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOutputs:
    """A model's outputs at M trained tokens.

    Attributes:
        logprob: [M].
        entropy: [M] nats; None when not needed.
        values: By head, [M]: of the state before each token.
        hidden: [M, W], the hidden states from which the tokens are predicted, without gradients; None when not needed.
    """

    logprob: Tensor
    entropy: Tensor | None
    values: dict[str, Tensor]
    hidden: Tensor | None = None

    def columns(self) -> list[Tensor]:
        """All tensors that may have gradients, in a fixed order."""
        return [self.logprob, *([] if self.entropy is None else [self.entropy]), *self.values.values()]


def token_outputs(
    model: Forward,
    chunk: ChunkOutput,
    batch: Batch,
    *,
    temperature: float,
    entropy: bool = False,
    critic: Critic | None = None,
    hidden: bool = False,
) -> TokenOutputs:
    """Outputs at the trained tokens of a chunk.

    Args:
        model: Its head computes the logits.
        chunk: The chunk's hidden states.
        batch: The target tokens, and the tokens among which each was sampled.
        temperature: Divides the logits.
        entropy: Whether to compute entropies.
        critic: Maps the model's hidden states to values.
        hidden: Whether to keep the hidden states.
    """
    weight, bias = model.head()
    target = batch.target[chunk.trained]
    logprob, nats = chosen_logprobs(
        chunk.hidden,
        weight,
        target,
        bias=bias,
        cap=model.logit_cap,
        temperature=temperature,
        entropy=entropy,
        allowed=batch.allowed[chunk.trained],
        sets=batch.allowed_sets,
    )
    values = dict[str, Tensor]() if critic is None else critic(chunk.hidden)
    return TokenOutputs(logprob=logprob, entropy=nats, values=values, hidden=chunk.hidden.detach() if hidden else None)


def token_outputs_of_batch(
    model: Forward,
    batch: Batch,
    forward: ChunkedForward,
    *,
    temperature: float,
    entropy: bool = False,
    critic: Critic | None = None,
) -> TokenOutputs:
    """Outputs at all trained tokens of a batch, without gradients.

    Args:
        model: Its head computes the logits.
        batch: The target tokens.
        forward: The model's forward pass over the batch's packed prefix tree.
        temperature: Divides the logits.
        entropy: Whether to compute entropies.
        critic: Maps the model's hidden states to values.
    """
    return in_order(
        token_outputs_per_chunk(model, batch, forward, temperature=temperature, entropy=entropy, critic=critic)
    )


@torch.no_grad()
def token_outputs_per_chunk(
    model: Forward,
    batch: Batch,
    forward: ChunkedForward,
    *,
    temperature: float,
    entropy: bool = False,
    critic: Critic | None = None,
    hidden: bool = False,
) -> list[tuple[Tensor, TokenOutputs]]:
    """For each chunk, the indices of its trained tokens and the model's outputs there; see `token_outputs_of_batch`."""
    # A chunk without trained tokens gives every column its dtype, also when it is the only one.
    blank = ChunkOutput(hidden=model.head()[0][:0], trained=batch.at[:0])
    return [
        (
            chunk.trained,
            token_outputs(model, chunk, batch, temperature=temperature, entropy=entropy, critic=critic, hidden=hidden),
        )
        for chunk in chain([blank], forward.forward())
    ]


@torch.no_grad()
def values_of(model: Forward, critic: Critic, packed: PackedPrefixTree, max_tokens: int) -> dict[str, Tensor]:
    """By head, [M]: a critic's values at the M predicting positions of a packed prefix tree.

    Args:
        model: Computes the hidden states.
        critic: Maps hidden states to values.
        packed: The tokens of the forward pass.
        max_tokens: Maximum tokens of one forward pass.
    """
    nothing = model.head()[0][:0]
    chunks = [ChunkOutput(hidden=nothing, trained=nothing.new_zeros(0, dtype=torch.int64))]
    chunks += read(model, packed, max_tokens).forward()
    order = torch.cat([chunk.trained for chunk in chunks]).argsort()
    values = [critic(chunk.hidden) for chunk in chunks]
    return {name: torch.cat([each[name] for each in values])[order] for name in critic.settings.heads}


@torch.no_grad()
def last_states(model: Forward, texts: Sequence[NDArray[np.int32]], max_tokens: int) -> Tensor:
    """[n, W]: a model's hidden states at the last tokens of n texts.

    Args:
        model: Computes the hidden states.
        texts: Tokens, at least one a text.
        max_tokens: Maximum tokens of one forward pass.
    """
    weight, _ = model.head()
    if not texts:
        return weight[:0]
    chunks = list(read(model, pack_ends(texts, device=str(weight.device)), max_tokens).forward())
    order = torch.cat([chunk.trained for chunk in chunks]).argsort()
    return torch.cat([chunk.hidden for chunk in chunks])[order]


def pack_ends(texts: Sequence[NDArray[np.int32]], *, device: str) -> PackedPrefixTree:
    """Packs n texts, whose output positions are their last tokens."""
    whole = [text.astype(np.int64) for text in texts]
    ends = np.asarray([len(text) for text in texts])
    return PackedPrefixTree.pack(whole, np.arange(len(texts)), ends, device=device)


def in_order(chunks: Sequence[tuple[Tensor, TokenOutputs]]) -> TokenOutputs:
    """The outputs at all trained tokens of a batch, from its chunks in any order."""
    order = torch.cat([trained for trained, _ in chunks]).argsort()
    columns = zip(*(outputs.columns() for _, outputs in chunks), strict=True)
    logprob, *others = (torch.cat(column)[order] for column in columns)
    nats = others.pop(0) if chunks[0][1].entropy is not None else None
    hidden = [outputs.hidden for _, outputs in chunks if outputs.hidden is not None]
    return TokenOutputs(
        logprob=logprob,
        entropy=nats,
        values=dict(zip(chunks[0][1].values, others, strict=True)),
        hidden=torch.cat(hidden)[order] if hidden else None,
    )


def read(model: Forward, packed: PackedPrefixTree, max_tokens: int) -> ChunkedForward:
    """A model's forward pass over a packed prefix tree, in chunks of at most `max_tokens` tokens.

    For a model that runs path by path the texts of the tree are taken apart, and a longer text is a chunk of its own.
    """
    return ChunkedForward(model.hidden, packed if model.packs else packed.separate(), max_tokens)
