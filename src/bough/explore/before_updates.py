"""One explorer before the first update of the policy, another one after it."""

from dataclasses import dataclass

from bough.explore.chains import Chains
from bough.rollout.rollout import Rollout
from bough.rollout.runner import Explorer


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeUpdates:
    """Grows trees by `first` while the policy is as it began, and by `then` after its first update.

    With a hook that first collects trees (`FrozenRewardModel`, `FrozenCritic`) the policy is not updated meanwhile, so
    a search can make the hook's data, and chains the samples of reinforcement. The step of the first update still has
    trees of `first`, since they grow before it.

    Attributes:
        first: The explorer before the first update.
        then: The explorer after it.
    """

    first: Explorer
    then: Explorer = Chains()

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        await (self.then if rollout.agent.engine.policy_version > 0 else self.first)(rollout)
