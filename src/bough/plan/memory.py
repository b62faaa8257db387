"""The memory of a device, by part."""

from dataclasses import dataclass

from bough.batch import logits_at_once
from bough.plan.model_size import ModelSize


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Bytes on one device.

    Attributes:
        weights: Weights of the learner, of the engine and of a reference.
        gradients: Gradients.
        optimizer: Two moments of each weight, in the type of the weights.
        activations: Stored for the backward pass of a chunk, with its logits.
        cache: Keys and values: all memory that is left, on devices that generate.
    """

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    cache: float = 0.0

    @property
    def fixed(self) -> float:
        """Bytes without the cache."""
        return self.weights + self.gradients + self.optimizer + self.activations


def activation_bytes(model: ModelSize, tokens: int, *, recompute: bool) -> float:
    """Bytes that a backward pass over a chunk of tokens needs: stored activations, logits, the head's gradient.

    A layer stores for each token four hidden states (the residual stream and its norm, twice), queries, keys and
    values before and after their positions, the attention's output, and four vectors of the MLP. With recomputation
    only the residual stream of each layer is stored, and one layer at a time in full.
    """
    layer = 4 * model.width + 3 * model.query_width + 3 * model.kv_width + 4 * model.inner
    numbers = model.layers * model.width + layer if recompute else model.layers * layer
    wide = max(4, model.number_bytes)
    logits = logits_at_once(tokens, model.vocab, entropy=True, device="cuda", number_bytes=model.number_bytes)
    head = wide * (model.vocab * model.width + logits)
    return tokens * model.number_bytes * (numbers + model.width) + head


def learner_memory(model: ModelSize, *, activations: float, reference: bool, shards: int) -> DeviceMemory:
    """The memory of a learner's device; weights, gradients and moments are divided over `shards` devices."""
    weights = model.weight_bytes / shards
    return DeviceMemory(
        weights=weights * (1 + reference), gradients=weights, optimizer=2 * weights, activations=activations
    )


def engine_memory(model: ModelSize, *, usable: float, devices_per_replica: int, beside: DeviceMemory) -> DeviceMemory:
    """The memory of a device that generates.

    Args:
        model: The model.
        usable: Bytes that may be used.
        devices_per_replica: Devices over which the weights are split.
        beside: The learner's memory on the same device; the cache stays during an update.
    """
    weights = beside.weights + model.weight_bytes / devices_per_replica
    left = usable - weights - beside.gradients - beside.optimizer - beside.activations
    return DeviceMemory(
        weights=weights,
        gradients=beside.gradients,
        optimizer=beside.optimizer,
        activations=beside.activations,
        cache=max(left, 0.0),
    )
