"""What the check of a model finds about its forward pass."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Properties of a model's forward pass; `check_architecture` measures them.

    Attributes:
        attention: The name in transformers of the attention of its own forward pass.
        by_path: Why it runs path by path; "" for a model that runs packed.
        caches: Whether its own forward pass with a cache has the logits of the one without.
        logit_scale: Multiplies the hidden states before the output layer.
        logit_cap: Logits are cap * tanh(logits / cap); None leaves them as they are.
        skips_last_layer: Whether its last layer can run for some tokens alone.
    """

    attention: str
    by_path: str = ""
    caches: bool = False
    logit_scale: float = 1.0
    logit_cap: float | None = None
    skips_last_layer: bool = False
