"""Processes that compute the gradients of one batch together, each on a share of its tokens.

    rank 0    learn(batch) --command-->  its share --+                     +--> the same step
    rank 1                               its share --+-- gradients added --+--> the same step

Rank 0 is the process of the run. It sends each batch to the others, which have the same weights and optimizers and take
the same step. Gradients are added over ranks, and everything else in rank 0 stays as it is with one process.
"""

import io
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from bough.critics.critic import Critic
from bough.launch import signed, verified
from bough.learner.commands import JoinGroup
from bough.learner.memory_meter import return_freed
from bough.learner.optimizer import Optimizer
from bough.learner.process_group import EndedRanks, RankFault, form_groups, without_sources
from bough.learner.rank_gpus import VisibleGpus, own_gpus
from bough.learner.rendezvous import Store
from bough.policy.policy_model import PolicyModel
from bough.usercode import load as user_pickle

Found = TypeVar("Found")

dist: Any = torch.distributed


@runtime_checkable
class Ranks(Protocol):
    """The processes that compute together, as one of them sees them."""

    @property
    def rank(self) -> int:
        """Which of them this is; 0 leads."""
        ...

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        ...

    @property
    def alone(self) -> bool:
        """Whether there is no other rank, and will be none."""
        ...

    @property
    def events(self) -> Mapping[str, int]:
        """How many ranks so far were started again, "replaced"; did not come back, "lost"; came later, "joined"."""
        ...

    @property
    def machines(self) -> tuple[str, ...]:
        """The name of each rank's machine; empty for a single rank."""
        ...

    def all_gather(self, found: list[Found], device: torch.device) -> list[Found]:
        """What all ranks have found, in their order, with tensors on `device`."""
        ...

    def all_reduce_gradients(self, weights: Sequence[nn.Parameter]) -> None:
        """Add the gradients of all ranks to each other's."""
        ...

    def faults(self) -> AbstractContextManager[None]:
        """Within, an error of the exchange of shards is raised as a `RankFault`."""
        ...

    def model_of(self, policy: PolicyModel) -> PolicyModel:
        """The model that computes the gradients of a policy: this rank's shards of it, or the policy itself."""
        ...

    def new_learner(
        self,
        policy: PolicyModel,
        settings: Optimizer,
        *,
        total_updates: int,
        temperature: float,
        critic: Critic | None,
        seed: int,
    ) -> int:
        """Have the other ranks build a learner too; returns its index."""
        ...

    def call(self, learner: int, method: str, arguments: Sequence[object], named: Mapping[str, object]) -> None:
        """Have the other ranks call a method of a learner. The arguments can be pickled, but for a reference."""
        ...

    def freeze(self, policy: PolicyModel) -> None:
        """Have the other ranks make a policy's present weights its reference."""
        ...

    def admit(self) -> None:
        """Take in lost ranks that have come back. Between calls only."""
        ...

    def restart(self, fault: RankFault) -> None:
        """Start the other ranks again, with the same policies and learners.

        Raises:
            RankFault: the same, on a rank that does not lead.
        """
        ...

    def close(self) -> None:
        """End the other ranks. Safe to call twice."""
        ...


class Following:
    """A rank that gives no commands."""

    alone = False
    events: Mapping[str, int] = MappingProxyType({})
    machines: tuple[str, ...] = ()

    def model_of(self, policy: PolicyModel) -> PolicyModel:
        """The policy."""
        return policy

    def new_learner(
        self,
        policy: PolicyModel,
        settings: Optimizer,
        *,
        total_updates: int,
        temperature: float,
        critic: Critic | None,
        seed: int,
    ) -> int:
        """Do nothing."""
        del policy, settings, total_updates, temperature, critic, seed
        return 0

    def call(self, learner: int, method: str, arguments: Sequence[object], named: Mapping[str, object]) -> None:
        """Do nothing."""

    def freeze(self, policy: PolicyModel) -> None:
        """Do nothing."""

    def admit(self) -> None:
        """Do nothing: rank 0 takes ranks in."""

    def restart(self, fault: RankFault) -> None:
        """Raise the fault: rank 0 starts ranks again."""
        raise fault

    def close(self) -> None:
        """Do nothing."""


class SingleRank(Following):
    """The only process."""

    rank, world_size, alone = 0, 1, True

    def faults(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def all_gather(self, found: list[Found], device: torch.device) -> list[Found]:
        """What this process has found."""
        del device
        return found

    def all_reduce_gradients(self, weights: Sequence[nn.Parameter]) -> None:
        """Do nothing."""


SINGLE_RANK = SingleRank()


class RankGroup(Following):
    """Ranks that talk through `torch.distributed`: gloo between CPUs, NCCL between GPUs."""

    def __init__(self, rank: int, join: JoinGroup, store: Store, ended: EndedRanks = lambda: ()) -> None:
        """Join the group, and wait for the others.

        Args:
            rank: Which rank this process is.
            join: The same for all ranks.
            store: Where they exchange their addresses.
            ended: Returns the ranks that will not come.

        Raises:
            RankFault: when a rank does not come within `update_s`, or ends before all have come.
        """
        self.rank, self.world_size, self.shards, self._files = rank, join.world_size, join.shards, join.files
        self._secret = join.secret
        try:
            self._commands, self._objects = form_groups(rank, join, store, ended)
            self.gpus = self._own_gpus()
            if join.shards and self.device.type == "cuda":
                torch.cuda.set_device(self.device)
            elif join.shards:
                return_freed()
            with _faults():
                self._mesh = dist.init_device_mesh(self.device.type, (join.world_size,)) if join.shards else None
        except RuntimeError:
            self.leave()
            raise

    def _own_gpus(self) -> list[int | None]:
        visible = self.all_gather([VisibleGpus.here()], torch.device("cpu"))
        self.machines = tuple(each.machine[0] for each in visible)
        return own_gpus(visible)

    @property
    def device(self) -> torch.device:
        """The rank's own GPU, if every rank has one."""
        gpu = self.gpus[self.rank]
        return torch.device("cpu") if gpu is None or None in self.gpus else torch.device("cuda", gpu)

    def shard(self, policy: PolicyModel) -> None:
        """Replace the weights of a policy by this rank's shards, if ranks have shards."""
        if self._mesh is not None:
            policy.shard(self._mesh, self._highest)

    def _highest(self, number: int) -> int:
        """The highest number that a rank has given."""
        found = torch.tensor(number)
        with _faults():
            dist.all_reduce(found, dist.ReduceOp.MAX, group=self._objects)
        return int(found)

    @contextmanager
    def faults(self) -> Generator[None]:
        """See `Ranks.faults`."""
        try:
            yield
        except RuntimeError as error:
            if self.shards and _raised_by_exchange(error):
                raise _fault(error) from error
            raise

    def all_gather(self, found: list[Found], device: torch.device) -> list[Found]:
        """See `Ranks.all_gather`."""
        own = self._signed(found)
        with _faults():
            sizes = [torch.tensor(0) for _ in range(self.world_size)]
            dist.all_gather(sizes, torch.tensor(len(own)), group=self._objects)
            most = int(max(sizes))
            parts = [torch.empty(most, dtype=torch.uint8) for _ in sizes]
            dist.all_gather(parts, nn.functional.pad(own, (0, most - len(own))), group=self._objects)
        return [
            each for part, size in zip(parts, sizes, strict=True) for each in self._loaded(part[: int(size)], device)
        ]

    def all_reduce_gradients(self, weights: Sequence[nn.Parameter]) -> None:
        """See `Ranks.all_reduce_gradients`. A weight without a gradient in any rank keeps none.

        Gradients of shards are sums over ranks already.
        """
        weights = [weight for weight in weights if not isinstance(weight, DTensor)]
        if not weights:
            return
        with _faults():
            used = torch.tensor([weight.grad is not None for weight in weights], dtype=torch.uint8)
            dist.all_reduce(used, dist.ReduceOp.MAX, group=self._objects)
            waits = list[Any]()
            for weight, in_any in zip(weights, used, strict=True):
                if in_any:
                    weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad.contiguous()
                    waits.append(dist.all_reduce(weight.grad, async_op=True))
            for wait in waits:
                wait.wait()

    def send(self, command: object) -> None:
        """Send a command to the other ranks."""
        text = self._signed(command)
        with _faults():
            for each in (torch.tensor(len(text)), text):
                dist.broadcast(each, src=0, group=self._commands)

    def receive(self) -> Any:
        """The next command of rank 0. Tensors of its GPU come to this rank's own GPU, others to the CPU.

        Where ranks have shards, whole weights come to the CPU, as they may not fit a GPU.
        """
        with _faults():
            dist.broadcast(size := torch.tensor(0), src=0, group=self._commands)
            dist.broadcast(text := torch.empty(int(size), dtype=torch.uint8), src=0, group=self._commands)
        own = torch.device("cpu") if self.shards else partial(_to_own_gpu, self.gpus[self.rank])
        return self._loaded(text, own)

    def _signed(self, value: object) -> Tensor:
        """A value for the other ranks, bytes."""
        buffer = io.BytesIO()
        torch.save(value, buffer)
        return torch.frombuffer(bytearray(signed(self._secret, buffer.getvalue())), dtype=torch.uint8)

    def _loaded(self, text: Tensor, location: torch.device | Callable[[Any, str], Any]) -> Any:
        """The value of `_signed`, which only a process of the run has made."""
        try:
            content = io.BytesIO(verified(self._secret, text.numpy().tobytes()))
        except PermissionError as error:
            raise RankFault(f"rank {self.rank} of {self.world_size}: {error}") from error
        return torch.load(
            content, map_location=location, weights_only=False, pickle_module=user_pickle, files=self._files
        )

    def leave(self) -> None:
        """Leave the group."""
        if dist.is_initialized():
            dist.destroy_process_group()
        # Groups find each other by this number. A meeting that failed has counted on, and new ranks start at 0.
        dist.distributed_c10d._world.group_count = 0


def _fault(error: RuntimeError) -> RankFault:
    return RankFault(f"a rank of the learner died or did not answer: {without_sources(error)}")


@contextmanager
def _faults() -> Generator[None]:
    """Turns an error of `torch.distributed` into a `RankFault`."""
    try:
        yield
    except RuntimeError as error:
        raise _fault(error) from error


def _raised_by_exchange(error: RuntimeError) -> bool:
    """Whether `torch.distributed` raised an error. Gloo's errors have no type of their own."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("torch.distributed")


def _to_own_gpu(gpu: int | None, storage: Any, location: str) -> Any:
    """Where `torch.load` puts a storage that was at `location` in rank 0."""
    untyped: Any = torch.serialization
    return untyped.default_restore_location(storage, f"cuda:{gpu}" if location.startswith("cuda") else "cpu")


def fingerprint(tensors: Sequence[Tensor]) -> list[int]:
    """One number for each tensor, of all its bits."""
    return [int(torch.hash_tensor(each.detach()).view(torch.int64).cpu()) for each in tensors if each.numel()]
