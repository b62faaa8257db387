"""One look of a model at a batch: what it thinks of the trained tokens."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from bough.batch import Batch, chosen_logprobs, segments
from bough.policy.attention import Attend
from bough.policy.critic import Critic


@runtime_checkable
class Forward(Protocol):
    """What log-probabilities are computed with: the policy, or a frozen replica of it."""

    def hidden(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Final hidden states [U, W] of tokens laid end to end."""
        ...

    def head(self) -> tuple[Tensor, Tensor | None]:
        """Weight [V, W] and bias [V] of the output layer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """M trained tokens as a model sees them.

    Attributes:
        logprob: [M].
        entropy: [M] nats; None when not asked for.
        values: By head, [M]: of the state before each token.
    """

    logprob: Tensor
    entropy: Tensor | None
    values: dict[str, Tensor]


def look(
    model: Forward, batch: Batch, *, temperature: float, entropy: bool = False, critic: Critic | None = None
) -> Seen:
    """Read a batch.

    Args:
        model: Reads.
        batch: What is read.
        temperature: Divides the logits.
        entropy: Whether entropies are wanted.
        critic: Speaks about the model's hidden states.
    """
    hidden = model.hidden(batch.tokens, batch.position, segments(batch.row))[batch.predictor]
    weight, bias = model.head()
    logprob, nats = chosen_logprobs(hidden, weight, batch.target, bias=bias, temperature=temperature, entropy=entropy)
    return Seen(logprob=logprob, entropy=nats, values={} if critic is None else critic(hidden))
