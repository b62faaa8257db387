"""The data of a step for one policy."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from torch import Tensor

from bough.batch import Batch
from bough.rollout import Rollouts
from bough.train.channels import real_episodes
from bough.train.stages import NO_TREES, StageTrees
from bough.train.trained import TrainedPolicy
from bough.tree import Rewarded, Tree, counted, groups


@dataclass(slots=True, kw_only=True)
class StepData:
    """The data of a step for one policy: trees by stage, batch, metrics.

    Attributes:
        policy: The policy.
        trees: The trees by stage; with seats, the views of its seats.
        unstarted: Number of tasks that did not start.
        without_turn: Number of paths on which a seat of the policy did not act.
        metrics: Of this policy, without the prefix of its seat.
        batch: The batch of the update; None without one.
        stale: Whether earlier weights than those before the update sampled the batch.
        before: [M] the log-probabilities of the batch before the update, where hooks need them and the batch is stale.
    """

    policy: TrainedPolicy
    trees: StageTrees = NO_TREES
    unstarted: int = 0
    without_turn: int = 0
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    batch: Batch | None = None
    stale: bool = False
    before: Tensor | None = None

    @property
    def packed(self) -> Batch:
        """The batch of an update."""
        assert self.batch is not None
        return self.batch

    @property
    def episodes(self) -> list[Rewarded]:
        """The trees of the step, each once, with the channels of hooks; see `real_episodes`."""
        return real_episodes(self.trees.rewarded, self.trees.estimated)

    @property
    def signals(self) -> int:
        """Number of trees with a non-zero advantage and of revised paths in the batch; 0 without a batch."""
        if self.batch is None:
            return 0
        return sum(not each.is_zero for each in self.trees.kept) + int(self.metrics.get("train/revisions", 0))

    @property
    def silent_groups(self) -> int:
        """Number of groups, before the filters, in which no token has an advantage."""
        return sum(all(each.is_zero for each in group) for group in groups(self.trees.credited))

    def divergence(self) -> float:
        """The divergence of the policy caused by the update, nats; 0 without one."""
        if self.batch is None:
            return 0.0
        before = self.batch.rollout_logprob if self.before is None else self.before
        return self.policy.learner.divergence(replace(self.batch, rollout_logprob=before))

    def views(self, rollouts: Rollouts) -> list[Tree]:
        """Views of the trees of a round for this policy, empty where its seats did not act; adds to the counts."""
        self.unstarted += len(rollouts.unstarted)
        trees = self.policy.role.views(rollouts.trees)
        if seats := len(self.policy.role.seats):
            self.without_turn += seats * _count_paths(rollouts.trees) - _count_paths(trees)
        return trees

    def most(self, batch_tasks: int) -> int:
        """The number of groups of a batch: one a task and seat."""
        return batch_tasks * max(1, len(self.policy.role.seats))

    @property
    def newest(self) -> int:
        """The newest version of the policy that sampled in the kept trees; -1 without sampled tokens."""
        return max((int(each.tree.policy_version.max(initial=-1)) for each in self.trees.kept), default=-1)

    def staleness(self) -> dict[str, float]:
        """Mean and maximum over the sampled actions of the kept trees: updates of later steps before this one's."""
        sampled = [each.tree.policy_version[each.tree.policy_version >= 0] for each in self.trees.kept]
        versions = np.concatenate([np.empty(0, np.int64), *sampled])
        if not len(versions):
            return {}
        optimizer = self.policy.run.world.optimizer
        behind = (self.policy.learner.updates - versions) / (optimizer.epochs * optimizer.minibatches)
        return {"policy/staleness": float(behind.mean()), "policy/staleness_max": float(behind.max())}

    @property
    def groups(self) -> int:
        """Number of groups that pass the filters."""
        return len(groups(self.trees.kept))


def _count_paths(trees: Sequence[Tree]) -> int:
    return sum(len(counted(tree)) for tree in trees)
