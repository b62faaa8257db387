"""A transformers causal language model that reads tokens laid end to end."""

import copy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from bough.policy.attention import APART, ATTENTION, Asked, Attend, causal
from bough.policy.compiled import uncompilable
from bough.policy.fused import fits, fuse, learns, part
from bough.policy.gate import Gate
from bough.policy.layer import Layer
from bough.policy.narrow import narrow
from bough.policy.norm import Norm
from bough.policy.product import Matrix, Opaque, multiply
from bough.policy.project import Projected


class Causal:
    """A causal language model without padding, without a cache and without dropout; its caller does the attention.

    Attributes:
        model: The transformers model.
    """

    def __init__(self, model: PreTrainedModel, *, narrows: bool = False) -> None:
        # Evaluation mode switches dropout off; gradients flow all the same.
        self.model = model.eval()
        self._narrows, self._recomputes, self._compiled = narrows, False, False
        self.attend_with(ATTENTION)
        layers = self._layers()
        if layers:
            # A copy of a model has it already, and then the second finds nothing left to do.
            layers[-1].register_forward_pre_hook(narrow, with_kwargs=True)
            _forget_compiled(layers[-1])
        fuse(model, Norm, Matrix, Gate, Projected, Layer)

    def _layers(self) -> list[GradientCheckpointingLayer]:
        return [module for module in self.model.modules() if isinstance(module, GradientCheckpointingLayer)]

    @property
    def narrows(self) -> bool:
        """Whether the last layer leaves out most of its work on tokens that are not wanted."""
        return self._narrows and not self._recomputes

    @narrows.setter
    def narrows(self, can: bool) -> None:
        self._narrows = can

    def shadow(self) -> "Causal":
        """The same weights, with gradients of their own."""
        memo: dict[int, Any] = {
            id(weight): nn.Parameter(weight.detach(), requires_grad=weight.requires_grad)
            for weight in self.model.parameters()
        }
        memo |= {id(buffer): buffer for buffer in self.model.buffers()}
        again = copy.copy(self)
        again.model = copy.deepcopy(self.model, memo)
        if self._compiled:
            again._compile_layers()  # the same code, which a copy has lost
        return again

    def attend_with(self, implementation: str) -> None:
        """Choose the attention by the name it has in transformers."""
        model: Any = self.model
        model.set_attn_implementation(implementation)

    def recompute(self, on: bool) -> None:
        """Whether going backward computes each layer's activations again, instead of keeping them all.

        Raises:
            ValueError: when the model has no layers that can.
        """
        model: Any = self.model
        if on and hasattr(model, "activation_checkpointing_enable"):
            model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
        elif on:  # its name in older versions
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self._recomputes = on
        for layer in self._layers():
            # Layers do so in training only. What is in them stays in evaluation mode: no dropout.
            layer.training = on

    def part(self) -> None:
        """Get ready to be compiled as a whole, without gradients: of our code attention and products are left."""
        part(self.model)
        fuse(self.model, Opaque)

    def compile(self) -> None:
        """From now on run each layer as compiled code, forward and backward, but for attention, its caller's.

        Layers are alike, so one is compiled, for any number of tokens; it takes tens of seconds, and later processes
        find it on disk.

        Raises:
            ValueError: when that fails, or there are no such layers.
        """
        if not self._layers():
            raise ValueError(
                f"got a {type(self.model).__name__} without layers that can be compiled one by one; say compile=false"
            )
        self.attend_with(APART)
        self._compile_layers()
        self._compiled = True
        place = torch.arange(3, device=self.device)
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        try:
            out = self.hidden(place, place.clone(), causal).sum()
            torch.autograd.grad(out, trained, allow_unused=True)
        except Exception as error:  # of many kinds, as code of many tools is run
            raise ValueError(uncompilable(error)) from error

    def _compile_layers(self) -> None:
        part(self.model)
        *others, last = self._layers()
        for layer in others:
            layer.compile(dynamic=True)  # pyright: ignore[reportUnknownMemberType]
        _forget_compiled(last)
        # What makes the last run twice stays outside: it leaves compiled code as it leaves other code.
        whole: Any = last.forward
        vars(last)["forward"] = torch.compile(whole, dynamic=True)  # pyright: ignore[reportUnknownMemberType]

    @property
    def device(self) -> torch.device:
        """Where the weights live."""
        return self._head.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights, and of hidden states."""
        return self._head.weight.dtype

    @property
    def vocab_tokens(self) -> int:
        """V, the rows of the head; may exceed the tokenizer's vocabulary."""
        return self._head.weight.shape[0]

    @property
    def _head(self) -> nn.Linear:
        model: Any = self.model
        return model.get_output_embeddings()

    def hidden(
        self,
        tokens: Int[Tensor, " U"],
        positions: Int[Tensor, " U"],
        attend: Attend,
        wanted: Int[Tensor, " m"] | None = None,
        last: Attend | None = None,
    ) -> Float[Tensor, "_ W"]:
        """Final hidden states, after the last norm, of U tokens of any number of sequences, or of those `wanted`.

        `last` attends in the last layer where it runs for the tokens `wanted`, and answers for them alone.
        """
        trunk: Any = self.model.base_model
        # A compiled layer is made anew for a view that does not begin where its memory does.
        places = positions[None].clone()
        few = self.narrows and wanted is not None
        asked = Asked(attend, wanted, last) if few else Asked(attend)
        read = trunk(input_ids=tokens[None], position_ids=places, use_cache=False, bough=asked)
        hidden = read.last_hidden_state[0]
        return hidden if few or wanted is None else hidden[wanted]

    def head(self) -> tuple[Float[Tensor, "V W"], Float[Tensor, " V"] | None]:
        """The matrix, and the bias if there is one, that turn hidden states into logits."""
        return self._head.weight, self._head.bias

    def logits(self, hidden: Float[Tensor, "M W"]) -> Float[Tensor, "M V"]:
        """Next-token logits, float32 (float64 if the model is)."""
        return logits(hidden, *self.head())


def logits(
    hidden: Float[Tensor, "M W"], weight: Float[Tensor, "V W"], bias: Float[Tensor, " V"] | None
) -> Float[Tensor, "M V"]:
    """Those of a head, float32 (float64 if it is)."""
    product = multiply if fits(hidden) and not learns(hidden, weight, bias) else linear
    found = product(hidden, weight, bias)
    return found if found.dtype == torch.float64 else found.float()


def _forget_compiled(layer: nn.Module) -> None:
    """What a copy of a compiled layer has is the code of the other, with the other's weights."""
    vars(layer).pop("forward", None)
