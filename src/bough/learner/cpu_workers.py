"""CPU threads and ranks that compute the gradients of one batch together, each on its own trees.

Two threads with half of the trees each are faster than one thread whose operations use two cores: only large matrix
products gain from the second core inside one operation.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from bough.batch import Chunk, ChunkedForward, PackedPrefixTree
from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.learner.token_outputs import Forward
from bough.policy.critic import Critic
from bough.policy.policy_model import PolicyModel

Result = TypeVar("Result")


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

    With several ranks each has as many threads, and the batch is dealt to the threads of all.
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
        self._weights = [worker.weights() for worker in self._workers]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="bough-worker") if count > 1 else None

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
        models = [model or worker.policy for worker in self._workers]
        if self._pool is None and self._ranks.world_size == 1:
            return [work(self._workers[0], ChunkedForward(models[0].hidden, packed, max_tokens))]
        rank, world_size = self._ranks.rank, self._ranks.world_size
        everyone = world_size * len(models)
        shares = self._deal(packed.chunk_groups(max_tokens, everyone), everyone)[rank::world_size]
        forwards = [
            ChunkedForward(each.hidden, packed, max_tokens, share) for each, share in zip(models, shares, strict=True)
        ]
        found = self._run(work, forwards)
        if (shards := self._workers[0].policy.shards) is not None:
            shards.end_passes()
        return self._ranks.all_gather(found, self._device)

    def _run(
        self, work: Callable[[CpuWorker, ChunkedForward], Result], forwards: Sequence[ChunkedForward]
    ) -> list[Result]:
        """The results of this rank's workers."""
        if self._pool is None:
            return [work(self._workers[0], forwards[0])]
        threads = torch.get_num_threads()

        def run_with_threads(worker: CpuWorker, forward: ChunkedForward) -> Result:
            torch.set_num_threads(max(1, threads // len(forwards)))
            return work(worker, forward)

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

    def _deal(self, chapters: Sequence[Sequence[Chunk]], everyone: int) -> list[list[Sequence[Chunk]]]:
        """The chapters of each worker of all ranks, balanced by work: the largest first, to the least loaded worker."""
        count = self._arithmetic.operations
        effort = [sum(count(tokens=len(each), trained=0, pairs=each.pairs) for each in some) for some in chapters]
        shares: list[list[int]] = [[] for _ in range(everyone)]
        load = [0] * len(shares)
        for chapter in sorted(range(len(chapters)), key=lambda chapter: -effort[chapter]):
            least = load.index(min(load))
            shares[least].append(chapter)
            load[least] += effort[chapter]
        return [[chapters[chapter] for chapter in sorted(share)] for share in shares]
