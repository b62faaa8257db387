"""State values from a critic during search, in batched forward passes."""

import asyncio
from itertools import accumulate

import numpy as np

from bough.batch import PackedPrefixTree
from bough.learner.token_outputs import values_of
from bough.policy.critic import Critic
from bough.policy.policy import Policy


class StateValues:
    """Computes the value of a state with a value head, from the policy's hidden states.

    Concurrent requests share one forward pass.
    """

    def __init__(self, policy: Policy, critic: Critic, *, micro_tokens: int, alone: bool = False) -> None:
        """Use the first head of a critic.

        Args:
            policy: Computes the hidden states.
            critic: The heads.
            micro_tokens: Maximum tokens of one pass.
            alone: Whether every state has its own pass, so that no value depends on concurrent requests.
        """
        self._policy = policy
        self._critic = critic
        self._head = critic.settings.heads[0]
        self._micro_tokens, self._alone = micro_tokens, alone
        self._pending: list[tuple[tuple[int, ...], asyncio.Future[float]]] = []

    async def __call__(self, tokens: tuple[int, ...]) -> float:
        """The value of the state after `tokens`."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[float] = loop.create_future()
        if not self._pending:
            loop.call_soon(self._run)
        self._pending.append((tokens, result))
        return await result

    def _run(self) -> None:
        """Compute the values of all pending requests."""
        pending, self._pending = self._pending, []
        while pending:
            ends = list(accumulate(len(tokens) for tokens, _ in pending))
            count = 1 if self._alone else max(1, sum(end <= self._micro_tokens for end in ends))
            some, pending = pending[:count], pending[count:]
            try:
                values = self._values([tokens for tokens, _ in some])
            except Exception as error:
                for _, result in some:
                    if not result.done():
                        result.set_exception(error)
                continue
            for (_, result), value in zip(some, values, strict=True):
                if not result.done():
                    result.set_result(value)

    def _values(self, states: list[tuple[int, ...]]) -> list[float]:
        texts = [np.asarray(state, dtype=np.int64) for state in states]
        after = np.asarray([len(state) for state in states])
        packed = PackedPrefixTree.pack(texts, np.arange(len(texts)), after, device=str(self._policy.device))
        values = values_of(self._policy, self._critic, packed, self._micro_tokens)[self._head]
        return [float(value) for value in values]
