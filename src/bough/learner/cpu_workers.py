"""CPU threads and ranks that compute the gradients of one batch together, each on a share of its tokens.

Two threads with half of the work each are faster than one thread whose operations use two cores: only large matrix
products gain from the second core inside one operation.
"""

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from bough.batch import ChunkedForward, PackedPrefixTree, shares
from bough.critics.critic import Critic
from bough.learner.optimizer import Optimizer
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.learner.token_outputs import Forward, read
from bough.policy.policy_model import PolicyModel

Result = TypeVar("Result")

SMALL_WEIGHTS = 20_000_000
"""Up to so many weights in products, threads that share a batch are faster than threads inside operations, and
generation gains nothing from a second thread (bench/workers.py, bench/generation.py)."""

MOST_WORKERS = 8
"""Most threads that `chosen_workers` takes: each has gradients of its own, and repeats shared prefixes."""


def chosen_workers(policy: PolicyModel, settings: Optimizer, threads: int) -> int:
    """`Optimizer.cpu_workers` where it is 0: how many threads share a batch of this policy.

    The choice hangs on sizes alone, never on a measured time, so that equal runs stay equal.

    Args:
        policy: The policy.
        settings: Its optimizer's settings. A limit of memory leaves no room for further gradients.
        threads: Threads of this process.

    Returns:
        `threads`, at most `MOST_WORKERS`; 1 on a GPU, for a larger policy, and with a limit of memory.
    """
    if policy.device.type != "cpu" or settings.memory_gib is not None:
        return 1
    sizes = policy.arithmetic()
    return max(1, min(threads, MOST_WORKERS)) if sizes.weights + sizes.head <= SMALL_WEIGHTS else 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CpuWorker:
    """The models of one thread.

    Attributes:
        policy: Shares the policy's weights; has its own gradients.
        critic: Shares the critic's weights; has its own gradients. None without a critic.
    """

    policy: PolicyModel
    critic: Critic | None

    def weights(self) -> list[nn.Parameter]:
        """The trained parameters."""
        return [*self.policy.parameters().values(), *(() if self.critic is None else self.critic.parameters())]


class CpuWorkers:
    """Threads that each compute a part of a batch; a single worker runs in the calling thread.

    With several ranks each has as many threads, and the batch is divided among the threads of all.
    """

    def __init__(self, policy: PolicyModel, critic: Critic | None, count: int, ranks: Ranks = SINGLE_RANK) -> None:
        """Create `count` workers.

        Raises:
            ValueError: when `count` is above 1 and the policy is not on a CPU.
        """
        if count > 1 and policy.device.type != "cpu":
            raise ValueError(
                f"Optimizer.cpu_workers: got {count} for a policy on {policy.device}; need 1: "
                "threads share work on CPUs only"
            )
        self._arithmetic, self._ranks, self._device = policy.arithmetic(), ranks, policy.device
        self._workers = [CpuWorker(policy=policy, critic=critic)]
        for _ in range(count - 1):
            again = None if critic is None else critic.shadow()
            self._workers.append(CpuWorker(policy=policy.shadow(), critic=again))
        self._loads = self._no_loads(count)
        self._weights = [worker.weights() for worker in self._workers]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="bough-worker") if count > 1 else None

    def shares(self, packed: PackedPrefixTree) -> list[PackedPrefixTree]:
        """The parts of a packed prefix tree that this rank's workers compute."""
        count, world_size = len(self._workers), self._ranks.world_size
        found = shares(packed, count * world_size, self._arithmetic.operations)
        return found[self._ranks.rank * count :][:count]

    def read(
        self,
        work: Callable[[CpuWorker, ChunkedForward], Result],
        packed: PackedPrefixTree,
        max_tokens: int,
        model: Forward | None = None,
    ) -> list[Result]:
        """Run `work` on every worker's part of a packed prefix tree; returns the results of all in a fixed order.

        Args:
            work: Function of a worker and its forward pass.
            packed: The packed prefix trees.
            max_tokens: Maximum tokens of a chunk.
            model: Computes the forward pass, without gradients; None for each worker's policy.
        """
        models, own = [model or worker.policy for worker in self._workers], self.shares(packed)
        forwards = [read(each, part, max_tokens) for each, part in zip(models, own, strict=True)]
        found = self._run(work, forwards)
        if (shards := self._workers[0].policy.shards) is not None:
            shards.end_passes()
        with_tokens = [(*each, len(part)) for each, part in zip(found, own, strict=True)]
        every = self._ranks.all_gather(with_tokens, self._device)
        loads = np.array([(tokens, seconds) for _, seconds, tokens in every]).T
        # The number of ranks changes between updates.
        self._loads = self._loads + loads if self._loads.shape == loads.shape else loads
        return [result for result, _, _ in every]

    def take_loads(self) -> dict[str, float]:
        """Metrics of the passes since the last call: tokens and seconds of each share, if there are several."""
        tokens, seconds = self._loads
        self._loads = self._no_loads(len(self._workers))
        if len(tokens) == 1:
            return {}
        return {f"update/tokens/{i}": float(each) for i, each in enumerate(tokens)} | {
            f"time/learn/{i}_s": float(each) for i, each in enumerate(seconds)
        }

    def _no_loads(self, workers: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """[2, shares], tokens and seconds of the workers of all ranks."""
        return np.zeros((2, workers * self._ranks.world_size))

    def _run(
        self, work: Callable[[CpuWorker, ChunkedForward], Result], forwards: Sequence[ChunkedForward]
    ) -> list[tuple[Result, float]]:
        """The results of this rank's workers, with their seconds."""

        def timed(worker: CpuWorker, forward: ChunkedForward) -> tuple[Result, float]:
            begin = time.monotonic()
            result = work(worker, forward)
            return result, time.monotonic() - begin

        if self._pool is None:
            return [timed(self._workers[0], forwards[0])]
        threads = torch.get_num_threads()

        def run_with_threads(worker: CpuWorker, forward: ChunkedForward) -> tuple[Result, float]:
            torch.set_num_threads(max(1, threads // len(forwards)))
            return timed(worker, forward)

        found = [self._pool.submit(run_with_threads, *each) for each in zip(self._workers, forwards, strict=True)]
        try:
            return [each.result() for each in found]
        finally:
            # Also on an error or an interrupt: a thread that still runs would add gradients later.
            wait(found)
            # torch gives new threads the thread count of the latest `set_num_threads` call.
            torch.set_num_threads(threads)

    @contextmanager
    def gathered(self) -> Generator[None]:
        """On exit, adds the gradients of all workers, of all ranks, to the policy and the critic."""
        own, *others = self._weights
        try:
            yield
            for other in others:
                for total, weight in zip(own, other, strict=True):
                    if total.grad is None:
                        total.grad = weight.grad
                    elif weight.grad is not None:
                        total.grad += weight.grad
            self._ranks.all_reduce_gradients(own)
        finally:
            for weight in (weight for other in others for weight in other):
                weight.grad = None
