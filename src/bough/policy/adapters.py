"""Inserts low-rank adapters into a transformers model, merges, exports and removes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from bough.policy.lora import Lora
from bough.policy.seeding import seeded
from bough.version import install

LINEAR = (nn.Linear, Conv1D)
"""Layers that adapters can be added to; GPT-2 has the second kind."""

NAME = "default"
"""PEFT's name of the adapters in a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The adapters of a model.

    Attributes:
        rank: Rows of A.
        alpha: The adapters are scaled by alpha / rank.
        targets: Names of the adapted layers within their blocks.
        weights: A and B of every adapted layer, under the names of a PEFT file.
    """

    rank: int
    alpha: float
    targets: tuple[str, ...]
    weights: Mapping[str, Tensor]


def adapt(model: PreTrainedModel, lora: Lora) -> None:
    """Insert adapters into `model`, which keeps its class, and freeze all other weights.

    Raises:
        ImportError: when peft is not installed.
        ValueError: when `lora.targets` matches no layer, or matches the embedding or the head.
    """
    try:
        import peft
    except ImportError as error:
        raise ImportError(f"Lora needs peft, which can't be imported; do: {install('lora')}") from error
    ends: Any = model
    head: object = ends.get_output_embeddings()
    # Peft does not see a model of transformers: of those with experts it adapts tensors too, which have no plain sum.
    whole: Any = nn.ModuleDict({"model": model})
    every: list[str] = [name for name, each in whole.named_modules() if isinstance(each, LINEAR) and each is not head]
    named = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    targets = every if named == "all-linear" else named
    untyped: Any = peft
    config = untyped.LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules=targets, task_type="CAUSAL_LM")
    with seeded(lora.seed):
        try:
            untyped.inject_adapter_in_model(config, whole)
        except ValueError as error:
            raise ValueError(f"Lora.targets: got {lora.targets!r}; need names of linear layers: {error}") from error
    if any(map(_adapted, (ends.get_input_embeddings(), ends.get_output_embeddings()))):
        raise ValueError(f"Lora.targets: got {lora.targets!r}; need layers other than the embedding and the head")
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def merged(model: nn.Module) -> dict[str, Tensor]:
    """Every weight under its name in the plain model, with adapters merged in; tied weights appear once.

    Weights without an adapter are the live tensors, not copies.
    """
    layers = _layers(model)
    weights: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        if ".lora_" in name or tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        layer = layers.get(name.removesuffix(".base_layer.weight"))
        weights[name.replace(".base_layer.", ".")] = tensor if layer is None else _sum(tensor, layer)
    return weights


def adapters(model: nn.Module) -> Adapters | None:
    """The adapters in PEFT's format, with live tensors; None without any."""
    layers = _layers(model)
    if not layers:
        return None
    first = next(iter(layers.values()))
    weights = {name: tensor for name, tensor in model.state_dict().items() if ".lora_" in name}
    return Adapters(
        rank=first.r[NAME],
        alpha=first.lora_alpha[NAME],
        targets=tuple(sorted({name.rpartition(".")[2] for name in layers})),
        weights={"base_model.model." + name.replace(f".{NAME}.", "."): tensor for name, tensor in weights.items()},
    )


def strip(model: nn.Module) -> None:
    """Remove the adapters; the base weights stay as they are."""
    for name, layer in _layers(model).items():
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, layer.base_layer)


def _layers(model: Any) -> dict[str, Any]:
    return {name: module for name, module in model.named_modules() if _adapted(module)}


def _adapted(module: nn.Module) -> bool:
    return hasattr(module, "get_delta_weight")


@torch.no_grad()
def _sum(weight: Tensor, layer: Any) -> Tensor:
    wide = torch.promote_types(weight.dtype, torch.float32)
    for adapter in layer.active_adapters:
        weight = (weight.to(wide) + layer.get_delta_weight(adapter).to(wide)).to(weight.dtype)
    return weight
