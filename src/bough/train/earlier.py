"""Earlier versions of the policy as models of roles and seats."""

from collections.abc import Mapping

import torch
from torch import Tensor

from bough.engine.gated import GatedEngine
from bough.policy.policy import Policy

VERSION = "policy_version"
"""The key of the version among the weights in a checkpoint."""


class EarlierWeights:
    """The weights of an earlier version, in an engine of their own.

    Attributes:
        every: Steps between two versions.
    """

    def __init__(self, every: int, engine: GatedEngine, policy: Policy) -> None:
        self.every = every
        self._engine, self._policy = engine, policy
        self._weights, self._version = _copy(policy), 0

    async def begin_step(self, number: int, version: int) -> None:
        """Take the policy's weights when a new version is due.

        Args:
            number: Steps of reinforcement done.
            version: The policy's number of updates.
        """
        if number % self.every == 0:
            self._weights, self._version = _copy(self._policy), version
            async with self._engine.loading():
                self._engine.load_policy(self._policy, version)

    def state(self) -> Mapping[str, Tensor]:
        """The weights and their version."""
        return {**self._weights, VERSION: torch.tensor(self._version)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`; the policy does not change."""
        self._weights = {name: weight for name, weight in state.items() if name != VERSION}
        self._version = int(state[VERSION])
        now = _copy(self._policy)
        self._policy.load_state(self._weights)
        self._engine.load_policy(self._policy, self._version)
        self._policy.load_state(now)


def _copy(policy: Policy) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in policy.state().items()}
