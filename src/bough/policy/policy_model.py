"""The model of a policy: with gradients, without text."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from transformers import PreTrainedModel

from bough.policy.adapters import Adapters, adapters, merged, strip
from bough.policy.arithmetic import Arithmetic
from bough.policy.check_architecture import AttentionShape
from bough.policy.model import Attend, CausalModel
from bough.policy.replica import Replica, check
from bough.policy.shards import Shards, shard_like


class PolicyModel:
    """A trainable causal language model that can be pickled, for processes that compute gradients.

    Attributes:
        context_tokens: Most positions of a sequence.
        shards: This rank's shards of the weights; None for whole weights.
    """

    def __init__(self, *, model: CausalModel, shape: AttentionShape | None, context_tokens: int) -> None:
        """Use a model, with the result of `check_architecture`."""
        self.shards: Shards | None = None
        self._model = model
        self._shape = shape
        self.context_tokens = context_tokens

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
    def packs(self) -> bool:
        """Whether `hidden` takes texts that share a prefix; else it takes whole texts."""
        return self._model.packs

    @property
    def how_it_runs(self) -> str:
        """One line for a model that runs path by path, with the reason; "" for one that runs packed."""
        if self.packs:
            return ""
        kind, traits = type(self._model.model).__name__, self._model.traits
        no_cache = "" if traits.caches else "; its cache gives other logits, so each token computes its whole text"
        return f"{kind} runs path by path, a shared prefix once for each path: {traits.by_path}{no_cache}"

    @property
    def logit_cap(self) -> float | None:
        """See `Traits`."""
        return self._model.traits.logit_cap

    @property
    def skips_last_layer(self) -> bool:
        """Whether `hidden` skips the last layer's work on tokens that are not in `rows`."""
        return self._model.skips_last_layer

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The weight, and the bias if there is one, of the output layer."""
        return self._model.head()

    def shadow(self) -> "PolicyModel":
        """A policy with the same weights and separate gradients."""
        again = copy.copy(self)
        again._model = self._model.shadow()
        return again

    def trainable_copy(self) -> "PolicyModel":
        """A policy with its own trained weights, at first the same. With adapters both share the frozen weights."""
        again = self.shadow()
        for weight in again.parameters().values():
            weight.data = weight.data.clone()
        return again

    def recompute(self, on: bool) -> None:
        """Switch gradient checkpointing: the backward pass computes each layer's activations again.

        Raises:
            ValueError: when the model's layers do not support it.
        """
        self._model.recompute(on)

    def shard(self, mesh: DeviceMesh, highest: Callable[[int], int]) -> None:
        """Replace the weights by this rank's shards, on its device. All ranks must do so together.

        Args:
            mesh: The ranks.
            highest: Returns the highest number that a rank has given.
        """
        self.shards = Shards(self._model, mesh, highest)
        self._model.shards = self.shards

    def arithmetic(self) -> Arithmetic:
        """The operations of an update. Of a mixture's experts only the routed ones count."""
        head, shape = self._model.head_shape, self._shape
        met = sum(
            weight.numel() * share
            for name, weight, share in _met(self._model.model)
            if weight.shape != head and "embed" not in name
        )
        if shape is None:
            # Of attention, if there is any, that is as wide as the hidden states.
            attention = len(self._model.layers) * head[1]
            return Arithmetic(weights=round(met), after=0, head=head.numel(), attention=attention)
        attention = shape.layers * shape.heads * shape.head_width
        before = (shape.heads + 2 * shape.kv_heads) * shape.head_width * head[1]
        after = max(0, round(met / shape.layers) - before) if self.skips_last_layer else 0
        return Arithmetic(weights=round(met), after=after, head=head.numel(), attention=attention)

    def parameters(self) -> dict[str, nn.Parameter]:
        """The trained weights by name; tied weights appear once. With shards, `DTensor`s."""
        if self.shards is not None:
            return self.shards.parameters
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
            parameter.copy_(shard_like(state[name], parameter))

    def weights(self) -> dict[str, Tensor]:
        """Every weight, adapters merged in, under the names `Replica.load` takes; tied weights appear once.

        Live tensors where there is no adapter: copy what must outlast the next update.
        """
        return merged(self._model.model)

    def adapters(self) -> Adapters | None:
        """The adapters in PEFT's format, with live tensors; None when every weight is trained."""
        return adapters(self._model.model)

    def replica(self, dtype: torch.dtype | None = None) -> Replica:
        """An independent frozen copy of the current policy, in `dtype` if given."""
        model = self._copy()
        for parameter in model.parameters():
            # Buffers keep their dtype: rotary frequencies are float32 in every model.
            parameter.data = parameter.data.to(dtype or parameter.dtype)
        traits = replace(self._model.traits, skips_last_layer=self.skips_last_layer)
        whole = CausalModel(model, traits)
        return Replica(whole, self._shape, self.context_tokens, self.tokenizer)

    @property
    def tokenizer(self) -> str | None:
        """The text of its `tokenizer.json`; None where there is none."""
        return None

    @property
    def without_text(self) -> "PolicyModel":
        """The same model and weights, without tokenizer and renderer."""
        return PolicyModel(model=self._model, shape=self._shape, context_tokens=self.context_tokens)

    def _copy(self, device: str | None = None, *, merges: bool = True) -> PreTrainedModel:
        """The model, adapters merged in or left out; with a device, on it, and without memory on the policy's own."""
        moved = dict[int, Tensor]()
        if device is not None:
            for weight in self._model.model.parameters():
                moved[id(weight)] = nn.Parameter(weight.detach().to(device, copy=True), weight.requires_grad)
            moved |= {id(buffer): buffer.to(device, copy=True) for buffer in self._model.model.buffers()}
        model = copy.deepcopy(self._model.model, moved)
        weights = merged(model) if merges else {}
        strip(model)
        for name, tensor in merged(model).items() if merges else ():
            tensor.copy_(weights[name])
        return model


def _met(model: PreTrainedModel) -> Iterator[tuple[str, Tensor, float]]:
    """Yield every weight with the fraction of tokens that pass through it."""
    config: Any = model.config
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    experts = next((count for name in names if (count := getattr(config, name, None))), 1)
    share = (getattr(config, "num_experts_per_tok", None) or 1) / experts
    for name, weight in model.named_parameters():
        yield name, weight, share if ".experts." in name else 1.0
