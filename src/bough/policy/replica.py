"""A frozen copy of a policy's model, for an engine to sample from."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bough.policy.adapters import merged
from bough.policy.attention import Attend
from bough.policy.causal import Causal, logits
from bough.policy.compiled import Compiled, Hidden
from bough.policy.probe import Shape


class Replica:
    """A causal model without gradients and without adapters. Shares no memory with the policy it came from."""

    def __init__(self, causal: Causal, shape: Shape, context_tokens: int) -> None:
        causal.model.requires_grad_(False)
        causal.recompute(False)  # which the policy may do
        if causal.device.type == "cpu":
            _lay_out(causal)
        self._causal = causal
        # The model looks for these again whenever it is asked.
        self._head, self._device = causal.head(), causal.device
        self._shape = shape
        self._context_tokens = context_tokens
        self._read: Hidden = causal.hidden

    @property
    def vocab_tokens(self) -> int:
        """V, the rows of the head; may exceed the tokenizer's vocabulary."""
        return self._causal.vocab_tokens

    @property
    def context_tokens(self) -> int:
        """Most positions the model can read."""
        return self._context_tokens

    @property
    def layers(self) -> int:
        """How many times `attend` is called in a forward pass, with layer 0, 1, ..."""
        return self._shape.layers

    @property
    def kv_heads(self) -> int:
        """K of `Attend`."""
        return self._shape.kv_heads

    @property
    def head_width(self) -> int:
        """D of `Attend`."""
        return self._shape.head_width

    @property
    def device(self) -> torch.device:
        """Where tensors live."""
        return self._device

    @property
    def dtype(self) -> torch.dtype:
        """Of keys and values."""
        return self._causal.dtype

    @torch.no_grad()
    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        wanted: Int[Tensor, " m"] | None = None,
        last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states of U tokens of any number of sequences laid end to end, or of those `wanted`.

        `last` attends in the last layer where it runs for the tokens `wanted`, and answers for them alone.
        """
        return self._read(tokens, positions, attend, wanted, last)

    def compile(self) -> None:
        """From now on run compiled code; see `Compiled`.

        Raises:
            ValueError: when the model cannot be compiled here.
        """
        self._causal.part()
        self._read = Compiled(self._causal.hidden, self.device)

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The matrix, and the bias if there is one, that turn hidden states into logits."""
        return self._head

    @torch.no_grad()
    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32 (float64 if the model is)."""
        return logits(hidden, *self._head)

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy new weights in, cast to the replica's dtype.

        Raises:
            ValueError: when names or shapes differ from the model's; names the first. Nothing was copied then.
        """
        own = merged(self._causal.model)
        check(weights, own, "Replica.load")
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def _lay_out(causal: Causal) -> None:
    """Turn the matrices of the layers round in memory: what a token is multiplied by then lies side by side.

    Few tokens, as are read when branches are written, are multiplied up to a third faster so, as nothing is packed.
    """
    for module in causal.model.base_model.modules():
        if isinstance(module, nn.Linear):
            module.weight.data = module.weight.t().contiguous().t()


def check(got: Mapping[str, Tensor], need: Mapping[str, Tensor], where: str) -> None:
    """Refuse tensors whose names or shapes are not the ones needed.

    Raises:
        ValueError: names the first tensor that is missing, unknown or of another shape.
    """
    for name, tensor in need.items():
        if name not in got:
            raise ValueError(f"{where}: got no {name!r}; need {tuple(tensor.shape)}, as the model has")
        if got[name].shape != tensor.shape:
            raise ValueError(
                f"{where}: got {name!r} of shape {tuple(got[name].shape)}; need {tuple(tensor.shape)}, as the model has"
            )
    for name in got:
        if name not in need:
            raise ValueError(f"{where}: got {name!r}, which the model does not have; need the same model")
