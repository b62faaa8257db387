"""Rank 0: it starts the other ranks on this machine, and tells them what to do."""

import copy
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch

from bough.learner.commands import Call, End, Freeze, MakeLearner, TakePolicy
from bough.learner.follow import follow
from bough.learner.loss_inputs import ObjectiveContext
from bough.learner.optimizer import Optimizer
from bough.learner.ranks import RankFault, RankGroup, check_gpus
from bough.policy.critic import Critic
from bough.policy.policy_model import PolicyModel

END_S = 10.0
"""Longest wait for a rank to end, seconds."""

STARTS = 3
"""Most starts of the ranks in a row."""


class LeadingRank(RankGroup):
    """Rank 0 of processes on this machine. Rank i computes on GPU i when the policy is on a GPU, else on the CPU."""

    def __init__(
        self, count: int, *, notify: Callable[[str], None], update_s: float = 600.0, shards: bool = False
    ) -> None:
        """Start the other ranks and wait for them.

        Args:
            count: Number of ranks, this process included.
            notify: Called with a line when the ranks start again.
            update_s: Longest time of one exchange during an update, seconds.
            shards: Whether each rank has a part of the weights. Rank 0 has whole weights too, on the policy's device.

        Raises:
            RankFault: when a rank does not come.
        """
        self._processes = list[SpawnProcess]()
        if torch.distributed.is_initialized():
            raise RankFault("got a process that is in a group of torch.distributed already; need one run at a time")
        self._total, self._update_s, self._notify, self._shards = count, update_s, notify, shards
        self._policies = list[PolicyModel]()
        self._models = list[PolicyModel]()
        self._learners = list[MakeLearner]()
        self._references = dict[int, Freeze]()
        _retried(self._start)

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        threads = max(1, torch.get_num_threads() // self._total)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="bough-ranks-")
            meeting = f"file://{Path(self._folder.name) / 'meeting'}"
            self._processes = [
                spawn.Process(
                    target=follow,
                    args=(rank, self._total, meeting, self._update_s, self._shards, threads),
                    daemon=True,
                )
                for rank in range(1, self._total)
            ]
            for process in self._processes:
                process.start()
            super().__init__(0, self._total, rendezvous=meeting, update_s=self._update_s, shards=self._shards)
        except BaseException:
            self._end()
            raise

    @property
    def pids(self) -> tuple[int | None, ...]:
        """The process ids of the other ranks."""
        return tuple(process.pid for process in self._processes)

    def model_of(self, policy: PolicyModel) -> PolicyModel:
        """See `Ranks.model_of`."""
        return self._models[self._number(policy)]

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
        """See `Ranks.new_learner`."""
        made = MakeLearner(
            learner=len(self._learners),
            policy=self._number(policy),
            settings=settings,
            total_updates=total_updates,
            temperature=temperature,
            critic=critic,
            seed=seed,
        )
        self._learners.append(made)
        self.send(made)
        return made.learner

    def call(self, learner: int, method: str, arguments: Sequence[object], named: Mapping[str, object]) -> None:
        """See `Ranks.call`."""
        sent, takes_reference = dict(named), False
        if isinstance(context := sent.get("context"), ObjectiveContext):
            takes_reference = context.reference is not None
            sent["context"] = replace(context, reference=None)
        self.send(
            Call(
                learner=learner,
                method=method,
                arguments=tuple(arguments),
                named=sent,
                takes_reference=takes_reference,
            )
        )

    def freeze(self, policy: PolicyModel) -> None:
        """See `Ranks.freeze`."""
        frozen = Freeze(policy=self._number(policy), weights=policy.state())
        self._references[frozen.policy] = frozen
        self._send_reference(frozen)

    def restart(self, fault: RankFault) -> None:
        """See `Ranks.restart`."""
        self._notify(f"{fault}; all ranks start again")
        _retried(self._start_again)

    def _start_again(self) -> None:
        """Start the other ranks, and send them what they had."""
        self._end()
        self._start()
        self._models = [self._send_policy(number) for number in range(len(self._policies))]
        for made in self._learners:
            self.send(made)
        for frozen in self._references.values():
            self._send_reference(frozen)

    def close(self) -> None:
        """See `Ranks.close`."""
        if self._processes and all(process.is_alive() for process in self._processes):
            with suppress(RankFault):
                self.send(End())
                for process in self._processes:
                    process.join(END_S)
        self._end()

    def _end(self) -> None:
        """End the processes at once, and leave the group."""
        for process in self._processes:
            if process.pid is not None:
                process.kill()
                process.join()
        self._processes = []
        self.leave()
        self._folder.cleanup()

    def _number(self, policy: PolicyModel) -> int:
        """The number of a policy, which the other ranks get when it is new.

        Raises:
            ValueError: when it is on a GPU and there are fewer GPUs than ranks.
        """
        check_gpus(self._total, policy.device)
        for number, known in enumerate(self._policies):
            if known is policy:
                return number
        self._policies.append(policy)
        self._models.append(self._send_policy(len(self._policies) - 1))
        return len(self._policies) - 1

    def _send_policy(self, number: int) -> PolicyModel:
        """Send a policy to the other ranks; returns the model that computes gradients in this one."""
        policy = self._policies[number]
        self.send(TakePolicy(policy=number, model=policy.without_text))
        if not self.shards:
            return policy
        model = copy.deepcopy(policy.without_text)
        self.shard(model)
        return model

    def _send_reference(self, frozen: Freeze) -> None:
        """Send a reference to the other ranks, and store this rank's shards of it."""
        self.send(frozen)
        if (shards := self._models[frozen.policy].shards) is not None:
            shards.freeze(frozen.weights)


def _retried(start: Callable[[], None]) -> None:
    """Start the ranks; once more where one dies or hangs meanwhile, a few times."""
    for again in reversed(range(STARTS)):
        try:
            start()
            return
        except RankFault:
            if not again:
                raise
