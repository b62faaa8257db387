"""A policy that is sent to a process."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import safetensors.torch
import torch
from torch import Tensor

from bough.engine.model import Model, ServedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPolicy:
    """A policy on its way to another process: a `ServedPolicy` there.

    Attributes:
        context_tokens: Most positions of the model.
        dtype: The dtype of the weights.
        model: The model, for an engine that computes with it.
        files: The files of `ServedPolicy.save`, by name, for an engine that loads them.
    """

    context_tokens: int
    dtype: torch.dtype
    model: Model | None = None
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @staticmethod
    def of(policy: ServedPolicy, *, as_files: bool) -> "SentPolicy":
        """The policy, as files or as a model."""
        if not as_files:
            return SentPolicy(context_tokens=policy.context_tokens, dtype=policy.dtype, model=policy.replica())
        with TemporaryDirectory() as folder:
            policy.save(Path(folder))
            files = {each.name: each.read_bytes() for each in Path(folder).iterdir()}
        return SentPolicy(context_tokens=policy.context_tokens, dtype=policy.dtype, files=files)

    @property
    def device(self) -> torch.device:
        """The device on which the process computes: its GPU, if it has one."""
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def replica(self) -> Model:
        """A copy of the model."""
        assert self.model is not None
        return copy.deepcopy(self.model)

    def save(self, directory: Path) -> None:
        """Write the files."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (directory / name).write_bytes(content)

    def weights(self) -> Mapping[str, Tensor]:
        """Every weight by name."""
        parts = [
            safetensors.torch.load(content) for name, content in self.files.items() if name.endswith("safetensors")
        ]
        return {name: weight for part in parts for name, weight in part.items()}
