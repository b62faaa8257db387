"""The canary: fixed tokens whose log-probabilities must agree in engine and learner after every weight sync."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from bough.batch import PackedPrefixTree, chosen_logprobs
from bough.engine import Engine
from bough.engine.engine import PerProcessScoring
from bough.learner.token_outputs import read
from bough.policy.policy import Policy
from bough.rollout import Deadlines
from bough.train.health import NoLearningSignal

VISIBLE = 1e-6
"""A change of the learner's log-probabilities, in nats, that the engine's must show too."""


class Canary:
    """Fixed tokens, and their log-probabilities under the engine after the last sync.

    A weight sync that silently transfers nothing leaves the engine sampling from an old policy while every metric looks
    plausible. After a sync the log-probabilities of every process of the engine must equal the learner's, and change
    when the learner's do, with the KV cache that the sync left and with an empty one.
    """

    def __init__(
        self, prompt: Sequence[int], continuation: Sequence[int], *, tolerance: float, name: str = "the engine"
    ) -> None:
        """Keep the tokens.

        Args:
            prompt: Token ids.
            continuation: Token ids whose log-probabilities are compared.
            tolerance: Largest difference, in nats, between the log-probabilities of a certain token. It grows in
                proportion to 1 minus the log-probability, as rounding errors do.
            name: The engine, for messages.
        """
        self.prompt = tuple(prompt)
        self.continuation = tuple(continuation)
        self.tolerance = tolerance
        self.name = name
        self._last: tuple[frozenset[tuple[float, ...]], Tensor] | None = None

    async def scores(
        self, engine: Engine, deadlines: Deadlines, *, deadline_s: float
    ) -> Mapping[int, tuple[float, ...]]:
        """The log-probabilities of each process of an engine, and the tokens in its cache.

        Called before a sync, so that a cache that outlives the weights is noticed.
        """
        if isinstance(engine, PerProcessScoring):
            scores = engine.score_each_process(self.prompt, self.continuation)
            return await deadlines.until(scores, owner="weight sync", thing="canary scores", deadline_s=deadline_s)
        score = engine.score(self.prompt, self.continuation)
        return {0: await deadlines.until(score, owner="weight sync", thing="canary scores", deadline_s=deadline_s)}

    async def check(
        self, engine: Engine, true: Tensor, deadlines: Deadlines, *, moved: bool, deadline_s: float
    ) -> float:
        """Compare after a sync.

        Args:
            engine: The newly synced engine, without pending requests.
            true: [continuation] `learner` of the policy of the sync, nats.
            deadlines: The run's register.
            moved: Whether the weights have changed since the last check.
            deadline_s: Deadline of the engine's replies.

        Returns:
            The largest absolute difference between engine and learner, nats.

        Raises:
            NoLearningSignal: when they disagree, or when the engine's values are the old ones although the weights
                changed.
        """
        through_cache = await self.scores(engine, deadlines, deadline_s=deadline_s)
        # A cached prompt is rounded differently, and may hide that the values are exactly the old ones.
        engine.reset_cache()
        fresh = await self.scores(engine, deadlines, deadline_s=deadline_s)
        gap = max([self._gap(seen, true) for seen in (*_named(fresh), *_named(through_cache, ", through its cache"))])
        # A step with a zero gradient changes neither.
        seen = frozenset(fresh.values())
        if moved and self._last and seen & self._last[0] and (true - self._last[1]).abs().max() > VISIBLE:
            raise NoLearningSignal(
                f"after a weight sync the log-probabilities of {self.name} are exactly the old ones although the "
                "weights changed; the sync transferred nothing"
            )
        self._last = seen, true
        return gap

    def _gap(self, named: tuple[str, tuple[float, ...]], true: Tensor) -> float:
        """The largest absolute difference of scores from the learner's, nats."""
        name, seen = named
        gaps, allowed = (torch.tensor(seen) - true).abs(), self.tolerance * (1 + true.abs())
        if not (gaps <= allowed).all():
            worst = int((gaps / allowed).nan_to_num(torch.inf).argmax())
            raise NoLearningSignal(
                f"after a weight sync a log-probability of {self.name}{name} differs from the learner's by "
                f"{gaps[worst]:.3g} nats; need at most {allowed[worst]:.3g}. The engine did not load the new weights, "
                "or computes another model"
            )
        return float(gaps.max())

    @torch.no_grad()
    def learner(self, policy: Policy) -> Tensor:
        """[continuation]: the log-probabilities under a policy, nats."""
        text = np.asarray((*self.prompt, *self.continuation))
        after = np.arange(len(self.prompt), len(text))
        packed = PackedPrefixTree.pack([text], np.zeros_like(after), after, device=str(policy.device))
        (chunk,) = read(policy, packed, len(text)).forward()
        weight, bias = policy.head()
        target = torch.as_tensor(text[after], device=policy.device)
        return chosen_logprobs(chunk.hidden, weight, target, bias=bias, cap=policy.logit_cap)[0].float().cpu()


def _named(scores: Mapping[int, tuple[float, ...]], how: str = "") -> list[tuple[str, tuple[float, ...]]]:
    """The scores of each process, with its name in messages."""
    return [(f" process {index}{how}" if len(scores) > 1 else how, each) for index, each in scores.items()]
