"""Loads new weights from a safetensors file into a running vLLM.

vLLM imports this module in its workers (`--worker-extension-cls`); it imports nothing of Bough, which may live in
another environment. The sequence of calls is vLLM's own for reinforcement learning: start, update, finish.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from safetensors.torch import load_file  # pyright: ignore[reportUnknownVariableType]

# Bough's own environment need not have vLLM, so its types are not known there.
transfer: Any = import_module("vllm.distributed.weight_transfer.base")
factory: Any = import_module("vllm.distributed.weight_transfer.factory")
layers: Any = import_module("vllm.model_executor.layers.utils")
embedding: Any = import_module("vllm.model_executor.layers.vocab_parallel_embedding")
reload: Any = import_module("vllm.model_executor.model_loader.reload")


@dataclass
class Start(transfer.WeightTransferInitInfo):
    """Nothing has to be known beforehand."""


@dataclass
class WeightFile(transfer.WeightTransferUpdateInfo):
    """The file.

    Attributes:
        path: A safetensors file with every weight of the model under its Hugging Face name; tied weights once.
    """

    path: str


class FileWeights(transfer.WeightTransferEngine):
    """Reads the weights of an update from a file."""

    init_info_cls = Start
    update_info_cls = WeightFile
    model: Any
    model_config: Any
    device: Any

    def init_transfer_engine(self, init_info: Start) -> None:
        """Do nothing."""

    def start_weight_update(self) -> None:
        """Make every layer ready to be loaded again."""
        reload.initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, str]) -> None:
        """Load a file. The inherited method waits for an accelerator, which a CPU has not."""
        self.receive_weights(WeightFile(**update_info))

    def receive_weights(self, update_info: WeightFile) -> None:
        """Load a file."""
        self.model.load_weights(iter(load_file(update_info.path, device=str(self.device)).items()))

    def finish_weight_update(self) -> None:
        """Bring the layers into the form in which they compute."""
        reload.finalize_layerwise_reload(self.model, self.model_config)
        if self.device.type != "cpu":
            return
        # On a CPU the head keeps a packed copy of its weight, which the reload leaves as it was where the head is tied
        # to the embedding.
        for module in self.model.modules():
            if isinstance(module, embedding.VocabParallelEmbedding) and hasattr(module, "cpu_linear"):
                layers.dispatch_cpu_unquantized_gemm(module, remove_weight=False)

    def shutdown(self) -> None:
        """Do nothing."""


factory.WeightTransferEngineFactory.register_engine("bough-file", FileWeights)


class Worker:
    """The extension of vLLM's worker; importing its module is all that it is for."""
