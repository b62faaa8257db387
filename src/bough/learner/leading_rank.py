"""Rank 0: it has the other ranks start, and tells them what to do."""

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import MappingProxyType

import torch

from bough.critics.critic import Critic
from bough.launch import retried
from bough.learner.commands import Call, End, Freeze, JoinGroup, MakeLearner, TakePolicy
from bough.learner.loss_inputs import ObjectiveContext
from bough.learner.optimizer import Optimizer
from bough.learner.process_group import RankFault
from bough.learner.rank_gpus import check_gpus
from bough.learner.rank_processes import RankProcesses
from bough.learner.ranks import RankGroup
from bough.policy.policy_model import PolicyModel
from bough.units import number_of
from bough.usercode.load import loaded_files


class LeadingRank(RankGroup):
    """Rank 0, in the process of the run.

    Each rank computes on a GPU of its own when the policy is on a GPU, else on the CPU.
    """

    def __init__(
        self,
        processes: RankProcesses,
        *,
        notify: Callable[[str], None],
        update_s: float = 600.0,
        shards: bool = False,
    ) -> None:
        """Start the other ranks and wait for them.

        Args:
            processes: The other ranks; closed with this one.
            notify: Called with a line when the ranks start again, are lost or come back.
            update_s: Longest time of one exchange during an update, seconds.
            shards: Whether each rank has a part of the weights. Rank 0 has whole weights too, on the policy's device.

        Raises:
            RankFault: when too few ranks come.
        """
        if torch.distributed.is_initialized():
            raise RankFault("got a process that is in a group of torch.distributed already; need one run at a time")
        self._processes, self._update_s, self._notify, self._sharded = processes, update_s, notify, shards
        self._events = {"replaced": 0, "lost": 0, "joined": 0}
        self.events = MappingProxyType(self._events)
        self._policies = list[PolicyModel]()
        self._models = list[PolicyModel]()
        self._learners = list[MakeLearner]()
        self._references = dict[int, Freeze]()
        try:
            # Ranks of torchrun are not replaced, so a second try cannot succeed.
            self._start() if processes.remedy else retried(self._start, RankFault)
            self._count(processes.wanted)
        except BaseException:
            processes.close()
            raise

    def _start(self) -> None:
        try:
            self._processes.start(self._update_s)
            self._regroup()
        except BaseException:
            self._end()
            raise

    def _regroup(self) -> None:
        """Join a new group with the ranks that run."""
        processes = self._processes
        join = JoinGroup(
            world_size=processes.world_size,
            host=processes.host,
            update_s=self._update_s,
            shards=self._sharded,
            threads=max(1, torch.get_num_threads() // processes.world_size),
            files=loaded_files(),
            secret=processes.secret,
        )
        super().__init__(0, join, processes.join(join), processes.ended)

    def _count(self, before: int) -> None:
        """Count the ranks that were lost or have come back since there were `before`, and notify."""
        now = self.world_size
        if now < before:
            self._events["lost"] += before - now
            self._notify(
                f"lost {before - now} of {number_of(before, 'rank')} ({self._processes.missing}): batches are divided "
                f"over {now} (rank/world_size), and ranks that start later join at an update"
            )
        elif now > before:
            self._events["joined"] += now - before
            joined = number_of(now - before, "rank")
            self._notify(f"{joined} joined: batches are divided over {now} (rank/world_size)")

    @property
    def pids(self) -> tuple[int | None, ...]:
        """The process ids of the other ranks, where they are known."""
        return self._processes.pids

    def model_of(self, policy: PolicyModel) -> PolicyModel:
        """See `Ranks.model_of`."""
        return self._models[self._index_of(policy)]

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
            policy=self._index_of(policy),
            settings=settings,
            total_updates=total_updates,
            temperature=temperature,
            critic=critic,
            seed=seed,
        )
        self._learners.append(made)
        with self._restarting():
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
        frozen = Freeze(policy=self._index_of(policy), weights=policy.state())
        self._references[frozen.policy] = frozen
        with self._restarting():
            self._send_reference(frozen)

    @contextmanager
    def _restarting(self) -> Generator[None]:
        """Within, ranks that fail start again, with what they had and what is being sent."""
        try:
            yield
        except RankFault as fault:
            self.restart(fault)

    def restart(self, fault: RankFault) -> None:
        """See `Ranks.restart`."""
        if self._processes.remedy:
            raise RankFault(f"{fault}; {self._processes.remedy}") from fault
        before = self.world_size
        self._notify(f"{fault}; all ranks start again (rank/replaced)")
        retried(self._start_again, RankFault)
        self._events["replaced"] += self.world_size - 1
        self._count(before)

    def admit(self) -> None:
        """See `Ranks.admit`."""
        if not self._processes.more(self._update_s):
            return
        before = self.world_size
        try:
            self.send(End())
            self.leave()
            self._regroup()
            self._send_all()
        except RankFault as fault:
            self.restart(fault)
        else:
            self._count(before)

    def _start_again(self) -> None:
        """Start the other ranks, and send them what they had."""
        self._end()
        self._start()
        self._send_all()

    def _send_all(self) -> None:
        """Send the ranks of a new group what they had."""
        self._models = [self._send_policy(index) for index in range(len(self._policies))]
        for made in self._learners:
            self.send(made)
        for frozen in self._references.values():
            self._send_reference(frozen)

    def close(self) -> None:
        """See `Ranks.close`."""
        if torch.distributed.is_initialized() and not self._processes.ended():
            with suppress(RankFault):
                self.send(End())
                self._processes.wait()
        self._end()
        self._processes.close()

    def _end(self) -> None:
        """End the processes at once, and leave the group."""
        self._processes.end()
        self.leave()

    def _index_of(self, policy: PolicyModel) -> int:
        """The index of a policy, which the other ranks get when it is new.

        Raises:
            ValueError: when it is on a GPU and a rank has none.
        """
        check_gpus(self.gpus, policy.device)
        for index, known in enumerate(self._policies):
            if known is policy:
                return index
        self._policies.append(policy)
        self._models.append(self._send_policy(len(self._policies) - 1))
        return len(self._policies) - 1

    def _send_policy(self, index: int) -> PolicyModel:
        """Send a policy to the other ranks; returns the model that computes gradients in this one."""
        policy = self._policies[index]
        self.send(TakePolicy(policy=index, model=policy.without_text))
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
