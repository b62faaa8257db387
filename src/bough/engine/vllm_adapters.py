"""The adapters of a policy as files that a vLLM server loads."""

import json
import shutil
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor

from bough.engine.adapted_policy import Adapters

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values of vLLM's `--max-lora-rank`."""

LOADED = 2
"""Adapters in vLLM's memory at once: the newest, and those before it, whose completions may be in flight."""


class VllmAdapters:
    """A folder for each update, with a name of its own: vLLM's cache of keys and values is by the adapters' name.

    Attributes:
        name: Name of the newest adapters; vLLM takes it as the name of a model.
    """

    def __init__(self, folder: Path, adapters: Adapters) -> None:
        """Write the first adapters.

        Raises:
            ValueError: when their rank is above vLLM's highest.
        """
        if adapters.rank > RANKS[-1]:
            raise ValueError(f"Vllm.adapters: got adapters of rank {adapters.rank}; need at most {RANKS[-1]}")
        self._folder, self._number = folder, 0
        self._config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "r": adapters.rank,
            "lora_alpha": adapters.alpha,
            "target_modules": list(adapters.targets),
        }
        self.arguments: Mapping[str, object] = {
            "enable_lora": True,
            "max_lora_rank": next(rank for rank in RANKS if rank >= adapters.rank),
            "max_loras": LOADED,
        }
        """Arguments of vLLM's server."""
        self.write(adapters.weights)

    @property
    def name(self) -> str:
        """Name of the newest adapters; vLLM takes it as the name of a model."""
        return f"adapters-{self._number}"

    @property
    def path(self) -> Path:
        """The folder of the newest adapters."""
        return self._folder / self.name

    def write(self, weights: Mapping[str, Tensor]) -> None:
        """Write new adapters; they are the newest from now on."""
        fresh = self._folder / f"adapters-{self._number + 1}"
        fresh.mkdir(parents=True)
        save_file(
            {name: weight.detach().contiguous() for name, weight in weights.items()},
            fresh / "adapter_model.safetensors",
            metadata={"format": "pt"},
        )
        (fresh / "adapter_config.json").write_text(json.dumps(self._config))
        self._number += 1

    def remove_unused(self, used: AbstractSet[str]) -> list[str]:
        """Remove the folders of older adapters that are not in use; returns their names.

        Args:
            used: The names that completions in flight have. vLLM may read their files again.
        """
        kept = {*used, self.name}
        unused = [each.name for each in self._folder.glob("adapters-*") if each.name not in kept]
        for name in unused:
            shutil.rmtree(self._folder / name)
        return unused
