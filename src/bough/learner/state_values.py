"""State values from a critic during search, in batched forward passes."""

import asyncio
from collections.abc import Sequence
from itertools import accumulate, islice

import numpy as np

from bough.batch import PackedPrefixTree
from bough.critics.critic import Critic
from bough.learner.token_outputs import values_of
from bough.policy.policy import Policy


class StateValues:
    """Computes values of states with a value head, from the policy's hidden states.

    The states of a request share one forward pass, in which equal beginnings are computed once; so do concurrent
    requests.
    """

    def __init__(self, policy: Policy, critic: Critic, *, micro_tokens: int, alone: bool = False) -> None:
        """Use the first head of a critic.

        Args:
            policy: Computes the hidden states.
            critic: The heads.
            micro_tokens: Maximum tokens of one pass.
            alone: Whether every request has its own pass, so that no value depends on concurrent requests.
        """
        self._policy = policy
        self._critic = critic
        self._head = critic.settings.heads[0]
        self._micro_tokens, self._alone = micro_tokens, alone
        self._pending: list[tuple[Sequence[tuple[int, ...]], asyncio.Future[list[float]]]] = []

    async def __call__(self, texts: Sequence[tuple[int, ...]]) -> list[float]:
        """The value of the state after each text [texts]."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[list[float]] = loop.create_future()
        if not self._pending:
            loop.call_soon(self._run)
        self._pending.append((texts, result))
        return await result

    def _run(self) -> None:
        """Compute the values of all pending requests."""
        pending, self._pending = self._pending, []
        while pending:
            ends = list(accumulate(sum(map(len, texts)) for texts, _ in pending))
            count = 1 if self._alone else max(1, sum(end <= self._micro_tokens for end in ends))
            some, pending = pending[:count], pending[count:]
            try:
                values = iter(self._values([tokens for texts, _ in some for tokens in texts]))
            except Exception as error:
                for _, result in some:
                    if not result.done():
                        result.set_exception(error)
                continue
            for texts, result in some:
                found = list(islice(values, len(texts)))
                if not result.done():
                    result.set_result(found)

    def _values(self, states: list[tuple[int, ...]]) -> list[float]:
        texts = [np.asarray(state, dtype=np.int64) for state in states]
        after = np.asarray([len(state) for state in states])
        packed = PackedPrefixTree.pack(texts, np.arange(len(texts)), after, device=str(self._policy.device))
        values = values_of(self._policy, self._critic, packed, self._micro_tokens)[self._head]
        return [float(value) for value in values]
