"""The reference policy: the weights at which reinforcement began, kept only when a rule or a loss asks for them."""

from collections.abc import Mapping

from torch import Tensor

from bough.policy.policy import Policy
from bough.policy.replica import Replica


class Reference:
    """A frozen policy to stay close to."""

    def __init__(self, policy: Policy, *, wanted: bool) -> None:
        self._policy = policy
        self._wanted = wanted
        self.model: Replica | None = None
        """The frozen model; None when nobody needs one."""
        self.state: Mapping[str, Tensor] = {}
        """What a checkpoint keeps of it: the trainable weights as they were."""

    def take(self) -> None:
        """Freeze the policy as it now is."""
        if self._wanted:
            self.state = {name: weight.clone() for name, weight in self._policy.state().items()}
            self.model = self._policy.replica()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Freeze the policy that had these trainable weights; the policy itself is left as it is."""
        if self._wanted:
            now = {name: weight.clone() for name, weight in self._policy.state().items()}
            self._policy.load_state(state)
            self.take()
            self._policy.load_state(now)
