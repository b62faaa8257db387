"""Worker processes that share the memory of the weights."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.process import BaseProcess

import torch
import torch.multiprocessing
from torch import Tensor

from bough.engine.local import Local
from bough.engine.model import Model
from bough.engine.worker import EngineWorker
from bough.engine.worker_process import Renew, serve
from bough.launch import check_count

START_S = 600.0
"""Longest time of a start, seconds."""

METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""How a process is started: as a fork of one that has imported what it needs, where system libraries survive a fork."""


class SharedProcesses:
    """Processes with a `LocalEngine` each, over one copy of the weights; no other object may change the model."""

    def __init__(self, config: Local, model: Model) -> None:
        """For `Local(processes=...)`.

        Raises:
            ValueError: when the model is not on the CPU.
            LaunchError: when there are more processes than this machine can run.
        """
        check_count("Local.processes", config.processes)
        if model.device.type != "cpu":
            raise ValueError(
                f"Local.processes: got {config.processes} with a model on {model.device}; need a model on the CPU, or "
                "processes=0, as this one keeps a GPU busy"
            )
        self.count, self.start_s, self.deadline_s = config.processes, START_S, config.deadline_s
        self.slots = -(-config.slots // config.processes)
        cache = None if config.cache_tokens is None else config.cache_tokens // config.processes
        self.context_tokens = config.context_of(model.context_tokens)
        self.cache_tokens = cache or self.slots * self.context_tokens
        self._config = replace(config, processes=0, slots=self.slots, cache_tokens=cache)
        self._model = model
        self._threads = max(torch.get_num_threads() // config.processes, 1)

    def start(self, index: int, policy_version: int) -> EngineWorker:
        """See `EngineProcesses.start`.

        Raises:
            ValueError: when the model cannot be sent, or does not fit the memory that processes share.
        """
        del index
        context = torch.multiprocessing.get_context(METHOD)
        if METHOD == "forkserver":
            context.set_forkserver_preload([serve.__module__])
        ours, theirs = context.Pipe()
        arguments = (theirs, self._config, self._model, policy_version, self._threads)
        process = context.Process(target=serve, args=arguments, name="bough-engine", daemon=True)
        try:
            process.start()
        except Exception as error:  # pickling fails in many ways
            ours.close()
            why = f"{type(error).__name__}: {error}"
            raise ValueError(
                f"Local.processes: got a model that cannot be sent to another process ({why}); need one that can be "
                "pickled, and room for its weights in the memory that processes share (/dev/shm; in a container "
                "--shm-size); or set processes=0"
            ) from error
        finally:
            theirs.close()
        return EngineWorker(
            pid=process.pid,
            connection=ours,
            ending=lambda wait_s: _end(process, wait_s),
            start_s=self.start_s,
            deadline_s=self.deadline_s,
        )

    def load(self, weights: Mapping[str, Tensor], policy_version: int) -> Renew:
        """See `EngineProcesses.load`. The weights are copied once."""
        self._model.load(weights)
        return Renew(policy_version=policy_version)

    def close(self) -> None:
        """Do nothing: the memory is free when the processes have ended."""


def _end(process: BaseProcess, wait_s: float) -> int | None:
    process.join(wait_s)
    if process.is_alive():
        process.kill()
    process.join()
    return process.exitcode
