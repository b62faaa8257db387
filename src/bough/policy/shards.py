"""Weights sharded over ranks by PyTorch's FSDP2: each rank stores a part of every weight, gradient and moment.

    layer 0, 1, ...   gathered for its own forward and backward pass, then freed
    ends              embedding, last norm and head: gathered for a whole pass

Gathering is a collective, so all ranks must make the same passes in the same order, though they have different chunks.
Before each pass the ranks agree on its kind. A rank that has no pass of this kind makes an empty one: over one token,
with a loss of 0.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel

from bough.policy.model import AttentionRequest, CausalModel, causal, trunk_of

NO_PASS, BACKWARD, FORWARD = 0, 1, 2
"""Kinds of a pass, the next of which is the highest that a rank needs: none, one with gradients, one without."""


class Shards:
    """This rank's part of a model's weights.

    Attributes:
        parameters: The trained weights by name, as `DTensor`s.
    """

    def __init__(self, causal_model: CausalModel, mesh: DeviceMesh, highest: Callable[[int], int]) -> None:
        """Replace the weights of a model by this rank's shards, on its device. All ranks must do so together.

        Args:
            causal_model: With the same weights on all ranks.
            mesh: The ranks, in one dimension.
            highest: Returns the highest number that a rank has given.

        Raises:
            ValueError: when this version of PyTorch can't add the gradients of ranks that use different weights.
        """
        if not hasattr(FSDPModule, "set_reduce_scatter_unused_params"):
            raise ValueError(f"execution.shard: got PyTorch {torch.__version__}; need 2.13 or later")
        model = causal_model.model
        narrow = model.dtype not in (torch.float32, torch.float64)
        precision = MixedPrecisionPolicy(reduce_dtype=torch.float32 if narrow else None)
        self._root: Any = _Root(model)
        for module in (*causal_model.layers, self._root):
            whole_pass = module is self._root
            sharded = fully_shard(module, mesh=mesh, mp_policy=precision, reshard_after_forward=not whole_pass)
            # FSDP2 takes the mean over ranks, but a loss is the sum of the ranks' parts.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)
        self._root.set_reduce_scatter_unused_params(True)
        self._highest, self._device, self._used = highest, torch.device(mesh.device_type), False
        self._attention = {"bough": AttentionRequest(attend=causal)} if causal_model.packs else {}
        self._reference: dict[str, Tensor] = {}
        self._unfinished: Tensor | None = None
        self.parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}

    def __call__(self, **inputs: object) -> Tensor:
        """The trunk's last hidden states [1, U, W], in step with the other ranks."""
        self._agree(BACKWARD if torch.is_grad_enabled() else FORWARD)
        hidden = self._states(**inputs)
        if hidden.requires_grad:
            self._unfinished = hidden
            hidden.register_hook(self._finish_backward)  # pyright: ignore[reportUnknownMemberType]
        return hidden

    def gather_ends(self) -> None:
        """Gather the weights of the embedding, the last norm and the head, if they are not. A collective."""
        if not self._used:
            # The first pass determines the order of layers.
            self._empty_pass(FORWARD)
        self._root.unshard()

    def end_passes(self) -> None:
        """Make empty passes until no rank has further ones; then free all gathered weights."""
        self._agree(NO_PASS)
        self._root.reshard()

    def freeze(self, weights: Mapping[str, Tensor]) -> None:
        """Store the shards of a reference, given its trained weights."""
        own = self.parameters
        self._reference = {name: local(shard_like(weights[name], each)).clone() for name, each in own.items()}

    @contextmanager
    def reference(self) -> Generator[None]:
        """Within, the weights are those of the reference, if one is frozen."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        # Gathered weights would be those of before.
        self._root.reshard()
        for name, stored in self._reference.items():
            here = local(self.parameters[name])
            now = here.clone()
            here.copy_(stored)
            stored.copy_(now)

    def _agree(self, kind: int) -> None:
        """Make empty passes until all ranks make one of this kind."""
        if self._unfinished is not None:
            # The loss does not depend on the policy, but its gradients must be added like those of empty passes.
            with torch.enable_grad():  # a pass without gradients may follow
                (self._unfinished * 0).sum().backward()  # pyright: ignore[reportUnknownMemberType]
        while (next_kind := self._highest(kind)) != kind:
            self._empty_pass(next_kind)

    def _finish_backward(self, gradient: Tensor) -> None:
        del gradient
        self._unfinished = None

    def _empty_pass(self, kind: int) -> None:
        token = torch.zeros((1, 1), dtype=torch.int64, device=self._device)
        with torch.set_grad_enabled(kind == BACKWARD):
            hidden = self._states(input_ids=token, use_cache=False, **self._attention)
            if kind == BACKWARD:
                (hidden * 0).sum().backward()  # pyright: ignore[reportUnknownMemberType]

    def _states(self, **inputs: object) -> Tensor:
        self._used = True
        return self._root(**inputs)


class _Root(nn.Module):
    """The module whose forward pass is the trunk's, and whose weights include the head's."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: object) -> Tensor:
        return trunk_of(self.model)(**inputs).last_hidden_state


def local(tensor: Tensor) -> Tensor:
    """This rank's shard of a tensor, which shares its memory; a tensor without shards itself."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def shard_like(value: Tensor, like: Tensor) -> Tensor:
    """A whole tensor, sharded as another of its shape is. Without communication."""
    if not isinstance(like, DTensor):
        return value
    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def gather_whole(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Copies of the whole tensors on the CPU; nothing without `keep`, on a rank that only takes part. A collective."""
    found: dict[str, Tensor] = {}
    for name, each in tensors.items():
        whole = each.detach()
        whole = whole.full_tensor() if isinstance(whole, DTensor) else whole
        if keep:
            found[name] = whole.to("cpu", copy=True)
    return found
