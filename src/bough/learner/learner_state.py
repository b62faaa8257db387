"""All that an update changes: the weights of a policy and its critic, and the optimizer's moments."""

import copy
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor

from bough.critics.critic import Critic
from bough.learner.cpu_workers import CpuWorkers
from bough.learner.optimizer import Optimizer, check_sharding
from bough.learner.optimizer_set import OptimizerSet
from bough.learner.rank_calls import LearnerSnapshot
from bough.learner.ranks import Ranks, fingerprint
from bough.learner.token_outputs import Forward
from bough.policy.policy_model import PolicyModel
from bough.policy.shards import gather_whole, local

MOST_WEIGHT = 1e18
"""Maximum size of a weight: squares of larger ones overflow float32."""


class LearnerState:
    """The weights that a learner trains, and their optimizers.

    Without shards `model` is `policy`. With shards `model` has this rank's shards. On rank 0 `policy`, `critic` and a
    copy of the moments are whole, for engines and checkpoints, and take over the values of all shards after each
    update; on the other ranks `policy` is `model`.

    Attributes:
        policy: The policy of the run.
        critic: The critic of the run.
        model: Computes gradients.
        heads: The critic that computes gradients, on the device of `model`.
        weights: The trained weights of `model`.
        optimizers: Of `model` and `heads`.
        workers: Compute passes of `model` and `heads`.
        updates: Number of optimizer steps so far.
    """

    model: PolicyModel
    heads: Critic | None
    weights: dict[str, torch.nn.Parameter]
    optimizers: OptimizerSet
    workers: CpuWorkers

    def __init__(
        self, policy: PolicyModel, critic: Critic | None, settings: Optimizer, *, seed: int, ranks: Ranks
    ) -> None:
        self.policy, self.critic, self.updates = policy, critic, 0
        self._settings, self._seed, self._ranks = settings, seed, ranks
        self._moments: Mapping[str, Tensor] = {}
        self._build(ranks.model_of(policy))

    def _build(self, model: PolicyModel) -> None:
        self.model, self.heads = model, self.critic
        self._settled: list[int] | None = None
        if self.sharded:
            check_sharding(self._settings)
            self.heads = None if self.critic is None else copy.deepcopy(self.critic).to(model.device)
        self.weights = model.parameters()
        self.optimizers = OptimizerSet(self.weights, self._settings, self.heads, seed=self._seed)
        self.workers = CpuWorkers(model, self.heads, self._settings.cpu_workers or 1, self._ranks)

    @property
    def sharded(self) -> bool:
        """Whether each rank has a part of the weights."""
        return self.model.shards is not None

    @property
    def _leads(self) -> bool:
        """Whether this rank has whole copies beside its shards."""
        return self.policy is not self.model

    def renew(self) -> None:
        """Train the new shards, where the ranks have started again."""
        if (model := self._ranks.model_of(self.policy)) is not self.model:
            self._build(model)

    def moments(self) -> Mapping[str, Tensor]:
        """The optimizer's moments by parameter name, for a checkpoint. With shards, as of the last update."""
        return self._moments if self.sharded else self.optimizers.state()

    def load_moments(self, moments: Mapping[str, Tensor], updates: int) -> None:
        """Restore `moments` after a number of updates."""
        self.updates = updates
        self.optimizers.load_state(moments)
        if self._leads:
            self._moments = {name: value.to("cpu", copy=True) for name, value in moments.items()}

    def snapshot(self) -> LearnerSnapshot:
        """See `ReplicatedState.snapshot`."""
        critic = {} if self.critic is None else self.critic.state()
        moments = {name: value.to("cpu", copy=True) for name, value in self.moments().items()}
        return LearnerSnapshot(policy=self.policy.state(), critic=critic, moments=moments, updates=self.updates)

    def restore(self, snapshot: LearnerSnapshot) -> None:
        """See `ReplicatedState.restore`."""
        self._settled = None
        self.optimizers.zero_grad()
        for policy in {self.policy, self.model}:
            policy.load_state(snapshot.policy)
        for critic in (self.critic, self.heads):
            if critic is not None:
                critic.load_state(snapshot.critic)
        self.load_moments(snapshot.moments, snapshot.updates)

    def restore_on_all_ranks(self, snapshot: LearnerSnapshot) -> None:
        """See `ReplicatedState.restore_on_all_ranks`."""
        self.restore(snapshot)
        self._settled = self._whole() if self._leads else None

    def settle(self) -> None:
        """Give rank 0 the values of all shards, after an update. With shards, a collective."""
        if not self.sharded:
            return
        policy = gather_whole(self.weights, keep=self._leads)
        moments = gather_whole(self.optimizers.state(), keep=self._leads)
        if self._leads:
            self.policy.load_state(policy)
            self._moments = moments
        if self.critic is not None and self.heads is not None:
            self.critic.load_state(self.heads.state())
        self._settled = self._whole() if self._leads else None

    def fingerprint(self) -> list[int]:
        """See `ReplicatedState.fingerprint`. With shards, only rank 0 can have other values than in the last update."""
        if not self.sharded:
            return self._whole()
        return [] if not self._leads or self._whole() == self._settled else [1]

    def finite(self) -> bool:
        """Whether the trained weights of this rank and their squares are finite: norms are not, otherwise."""
        critic = () if self.critic is None else self.critic.parameters()
        weights = chain(self.policy.parameters().values(), critic)
        return all(bool((local(weight).abs() < MOST_WEIGHT).all()) for weight in weights)

    @contextmanager
    def reference(self, given: Forward) -> Generator[Forward]:
        """The reference that computes log-probabilities within: the one given, or that of the shards."""
        if self.model.shards is None:
            yield given
            return
        with self.model.shards.reference():
            yield self.model

    def _whole(self) -> list[int]:
        critic = () if self.critic is None else tuple(self.critic.parameters())
        tensors = [*self.policy.parameters().values(), *critic, *self.moments().values()]
        return fingerprint([local(each) for each in tensors])
