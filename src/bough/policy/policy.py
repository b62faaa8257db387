"""The policy: a model with gradients, its tokenizer, and its chat renderer."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bough.policy.adapters import adapt, merged, strip
from bough.policy.arithmetic import Arithmetic
from bough.policy.chat import ChatRenderer
from bough.policy.check_architecture import AttentionShape, check_architecture
from bough.policy.checkpoint import save
from bough.policy.limits import context_limit
from bough.policy.lora import Lora
from bough.policy.model import Attend, CausalModel
from bough.policy.replica import Replica, check


class Policy:
    """A trainable causal language model. Built by `Tiny.build` and `Pretrained.build`.

    Attributes:
        renderer: Turns text into tokens in the model's own format.
        context_tokens: Most positions of a sequence.
    """

    def __init__(
        self,
        *,
        model: CausalModel,
        shape: AttentionShape,
        tokenizer: PreTrainedTokenizerBase,
        renderer: ChatRenderer,
        context_tokens: int,
    ) -> None:
        self._model = model
        self._shape = shape
        self._tokenizer = tokenizer
        self.renderer = renderer
        self.context_tokens = context_tokens

    @staticmethod
    def assemble(
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        context_tokens: int | None = None,
        template: Mapping[str, object] | None = None,
        lora: Lora | None = None,
    ) -> "Policy":
        """Make a policy of a transformers model and its tokenizer. The policy owns the model.

        Args:
            model: On its device, in its dtype.
            tokenizer: With a chat template.
            context_tokens: Most positions of a sequence; None is the model's limit.
            template: Arguments of the chat template besides the messages.
            lora: Adapters to train; None trains every weight.

        Raises:
            ValueError: when Bough can't train the architecture, the tokenizer does not fit the model or has no usable
                chat template, or the context is longer than the model's.
        """
        causal_model = CausalModel(model)
        if len(tokenizer) > causal_model.vocab_tokens:
            raise ValueError(
                f"got a tokenizer of {len(tokenizer)} tokens for a model of {causal_model.vocab_tokens}; need the "
                "model's own"
            )
        limit = context_limit(model.config, context_tokens)
        renderer = ChatRenderer(tokenizer, template=template or {}, end_tokens=_end_tokens(model))
        shape = check_architecture(causal_model)
        if lora is not None:
            adapt(model, lora)
        return Policy(model=causal_model, shape=shape, tokenizer=tokenizer, renderer=renderer, context_tokens=limit)

    @property
    def vocab_tokens(self) -> int:
        """V, the rows of the head; may exceed the tokenizer's vocabulary."""
        return self._model.vocab_tokens

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._model.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of weights and hidden states; adapters are always float32."""
        return self._model.dtype

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        rows: Int[Tensor, " m"] | None = None,
        attend_last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states, after the last norm, of U concatenated tokens, with gradients.

        Args:
            tokens: [U], ids below `vocab_tokens`.
            positions: [U], the number of tokens before each in its own sequence; below `context_tokens`.
            attend: Computes the attention, and so determines which token sees which.
            rows: [m], the tokens whose states are returned; None is all. The last layer skips most work on the others.
            attend_last: Replaces `attend` in the last layer where it runs for `rows` alone; returns their rows.
        """
        return self._model.hidden(tokens, positions, attend, rows, attend_last)

    @property
    def skips_last_layer(self) -> bool:
        """Whether `hidden` skips the last layer's work on tokens that are not in `rows`."""
        return self._model.skips_last_layer

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The weight, and the bias if there is one, of the output layer."""
        return self._model.head()

    def shadow(self) -> "Policy":
        """A policy with the same weights and separate gradients."""
        again = copy.copy(self)
        again._model = self._model.shadow()
        return again

    def recompute(self, on: bool) -> None:
        """Switch gradient checkpointing: the backward pass computes each layer's activations again.

        Raises:
            ValueError: when the model's layers do not support it.
        """
        self._model.recompute(on)

    def arithmetic(self) -> Arithmetic:
        """The operations of an update. Of a mixture's experts only the routed ones count."""
        head, shape = self.head()[0], self._shape
        met = sum(
            weight.numel() * share
            for name, weight, share in _met(self._model.model)
            if weight.shape != head.shape and "embed" not in name
        )
        attention = shape.layers * shape.heads * shape.head_width
        before = (shape.heads + 2 * shape.kv_heads) * shape.head_width * head.shape[1]
        after = max(0, round(met / shape.layers) - before) if self.skips_last_layer else 0
        return Arithmetic(weights=round(met), after=after, head=head.numel(), attention=attention)

    def parameters(self) -> dict[str, nn.Parameter]:
        """The trained weights by name; tied weights appear once."""
        named = self._model.model.named_parameters()
        return {name: parameter for name, parameter in named if parameter.requires_grad}

    def state(self) -> dict[str, Tensor]:
        """A copy, on the CPU, of the trained weights: with adapters, only them."""
        return {name: parameter.detach().to("cpu", copy=True) for name, parameter in self.parameters().items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned, bit for bit.

        Raises:
            ValueError: when names or shapes differ from the policy's; names the first. No weight is copied then.
        """
        own = self.parameters()
        check(state, own, "Policy.load_state")
        for name, parameter in own.items():
            parameter.copy_(state[name])

    def weights(self) -> dict[str, Tensor]:
        """Every weight, adapters merged in, under the names `Replica.load` takes; tied weights appear once.

        Live tensors where there is no adapter: copy what must outlast the next update.
        """
        return merged(self._model.model)

    def replica(self, dtype: torch.dtype | None = None) -> Replica:
        """An independent frozen copy of the current policy, in `dtype` if given."""
        model = self._copy()
        for parameter in model.parameters():
            # Buffers keep their dtype: rotary frequencies are float32 in every model.
            parameter.data = parameter.data.to(dtype or parameter.dtype)
        return Replica(CausalModel(model, skips_last_layer=self.skips_last_layer), self._shape, self.context_tokens)

    def save(self, directory: Path) -> None:
        """Write config, weights (adapters merged in) and tokenizer as transformers reads them, and `Pretrained` too.

        Args:
            directory: Created if missing; files of the same names are overwritten.
        """
        save(self._copy(), self._tokenizer, directory)

    def _copy(self) -> PreTrainedModel:
        model = copy.deepcopy(self._model.model)
        weights = merged(model)
        strip(model)
        for name, tensor in merged(model).items():
            tensor.copy_(weights[name])
        return model


def _met(model: PreTrainedModel) -> Iterator[tuple[str, Tensor, float]]:
    """Yield every weight with the fraction of tokens that pass through it."""
    config: Any = model.config
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 1
    share = (getattr(config, "num_experts_per_tok", None) or 1) / experts
    for name, weight in model.named_parameters():
        yield name, weight, share if ".experts." in name else 1.0


def _end_tokens(model: PreTrainedModel) -> tuple[int, ...]:
    ends = getattr(model.generation_config, "eos_token_id", None)
    return (ends,) if isinstance(ends, int) else tuple(ends or ())
