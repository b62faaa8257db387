"""Worker processes that each have the weights, on one machine or many."""

import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING

import safetensors.torch
import torch
from torch import Tensor

from bough.engine.local import Local
from bough.engine.sent_policy import SentPolicy
from bough.engine.worker import EngineWorker
from bough.engine.worker_process import Load, Setup
from bough.launch import LaunchError, give_setup

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy
    from bough.engine.replicas import Replicas

ENTRY = "bough.engine.worker_process:serve_replica"


class ReplicaProcesses:
    """Processes with an engine each."""

    def __init__(self, config: "Replicas", policy: "ServedPolicy") -> None:
        """For `Replicas(...)`.

        Raises:
            LaunchError: when there are no free resources for the processes.
        """
        self.count, self.slots = config.count, config.engine.slots
        self.start_s, self.deadline_s = config.start_s, config.deadline_s
        self.context_tokens = config.engine.context_of(policy.context_tokens)
        self.cache_tokens = self.slots * self.context_tokens
        self._config = config
        self._launcher = config.placement.reserve("engines", config.count)
        self._policy = SentPolicy.of(policy, as_files=not isinstance(config.engine, Local))
        self._shapes = {name: weight.shape for name, weight in policy.weights().items()}
        self._threads = max(torch.get_num_threads() // config.count, 1)
        self._newest: Load | None = None

    def start(self, index: int, policy_version: int) -> EngineWorker:
        """See `EngineProcesses.start`."""
        del policy_version
        setup = self._pickled(
            Setup(engine=self._config.engine, policy=self._policy, threads=self._threads, newest=self._newest)
        )
        process = self._launcher.launch(ENTRY, index)
        try:
            connection = give_setup(process, setup, self.start_s)
        except LaunchError as error:
            process.kill()
            raise ValueError(
                f"Replicas: engine {index} did not start: {error}; need a process that connects; see the output above, "
                "or set a higher Replicas.start_s"
            ) from error
        return EngineWorker(
            pid=process.pid,
            connection=connection,
            ending=lambda _: process.kill(),
            start_s=self.start_s,
            deadline_s=self.deadline_s,
        )

    def load(self, weights: Mapping[str, Tensor], policy_version: int) -> Load:
        """See `EngineProcesses.load`."""
        got = {name: weight.shape for name, weight in weights.items()}
        if got != self._shapes:
            wrong = min(name for name in got.keys() | self._shapes.keys() if got.get(name) != self._shapes.get(name))
            raise ValueError(
                f"load_weights: got {wrong!r} {_shown(got.get(wrong))}; need {_shown(self._shapes.get(wrong))}"
            )
        content = safetensors.torch.save({name: weight.detach().cpu().contiguous() for name, weight in weights.items()})
        self._newest = Load(weights=content, policy_version=policy_version)
        return self._newest

    def close(self) -> None:
        """Free the resources."""
        self._launcher.close()

    def _pickled(self, setup: Setup) -> bytes:
        try:
            # Connection.send would put tensors into shared memory, which another machine does not have.
            return pickle.dumps(setup)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ValueError(
                f"Replicas: got a policy or an engine that cannot be sent to another process ({error}); need one that "
                "can be pickled"
            ) from error


def _shown(shape: torch.Size | None) -> object:
    return "not at all" if shape is None else tuple(shape)
