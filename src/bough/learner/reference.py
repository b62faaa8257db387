"""The reference policy: the weights at the start of reinforcement learning, stored only when a setting needs them."""

from collections.abc import Mapping

from torch import Tensor

from bough.learner.ranks import SINGLE_RANK, Ranks
from bough.policy.policy_model import PolicyModel
from bough.policy.replica import Replica


class Reference:
    """A frozen copy of the policy, for KL penalties."""

    def __init__(self, policy: PolicyModel, *, wanted: bool, ranks: Ranks = SINGLE_RANK) -> None:
        self._policy, self._ranks = policy, ranks
        self._wanted = wanted
        self.model: Replica | None = None
        """The frozen model; None when no setting needs one."""
        self.state: Mapping[str, Tensor] = {}
        """The trainable weights of the reference, for a checkpoint."""

    def freeze(self) -> None:
        """Freeze the present policy."""
        if self._wanted:
            self.state = {name: weight.clone() for name, weight in self._policy.state().items()}
            self.model = self._policy.replica()
            self._ranks.freeze(self._policy)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Freeze the policy with these trainable weights; the policy itself does not change."""
        if self._wanted:
            now = {name: weight.clone() for name, weight in self._policy.state().items()}
            self._policy.load_state(state)
            self.freeze()
            self._policy.load_state(now)
