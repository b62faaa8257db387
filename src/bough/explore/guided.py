"""Attempts, and where all fail, attempts with guidance."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.env import EnvFault
from bough.rollout.attempt import Attempt, Hints, insist
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together


@dataclass(frozen=True, slots=True, kw_only=True)
class Guided:
    """Experimental: Agent-RLVR (arXiv 2506.11425): where all attempts fail, new ones are told how to do it.

    `n` chains are played. If none of them solves the task, `again` more are, in which the policy reads a hint before
    every action: what the environment's oracle would do next, `ahead` actions of it; without an oracle, or where it
    knows no way, what was done in one of the failed attempts and how that ended. One success among the first:

        0 0 1 0         ->  nothing more
        0 0 0 0         ->  0 0 0 0 and, with hints, 1 0 1 1

    The hint is no part of the tree: the paths read as if the policy had found them by itself. So their tokens have no
    log-probabilities, and their actions count as a teacher's. Losses over samples leave them alone, while their returns
    are in the baseline of those that failed. `demonstrations.from_trees=true` learns from those that succeeded: a
    preference loss such as `Dpo` prefers them to the attempts that failed, as in the paper; `Imitation` and `SftMix`
    imitate them.

    Written from the abstract and a summary. The paper's guidance comes from a teacher who sees tests and plans; its
    environments run code.

    Attributes:
        n: Attempts without guidance.
        again: Attempts with it.
        ahead: Actions of an oracle's plan that are told.
        retries: How often an attempt that fails by a fault is tried again.
    """

    n: int = 4
    again: int = 4
    ahead: int = 1
    retries: int = 2

    def __post_init__(self) -> None:
        if self.n < 1 or self.again < 0 or self.ahead < 1 or self.retries < 0:
            raise ValueError(
                f"Guided: got n={self.n}, again={self.again}, ahead={self.ahead}, retries={self.retries}; need n >= 1, "
                "ahead >= 1 and the others >= 0"
            )

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        attempts = await together(rollout, [self._play(rollout, root, number, None) for number in range(self.n)])
        lost = [each for each in attempts if each is not None and each.lost]
        if not lost or any(each is not None and each.success for each in attempts):
            return
        hints = [self._hints(rollout, lost[number % len(lost)]) for number in range(self.again)]
        await together(rollout, [self._play(rollout, root, self.n + at, hint) for at, hint in enumerate(hints)])

    async def _play(self, rollout: Rollout, root: Cursor, number: int, hints: Hints | None) -> Attempt | None:
        step = self.n + self.again
        return await insist(rollout, root, number=number, step=step, retries=self.retries, hints=hints)

    def _hints(self, rollout: Rollout, lost: Attempt) -> Hints:
        """What is told after an attempt that was lost."""
        nodes = rollout.builder.nodes
        done = [str(nodes[action].info["text"]) for action in lost.actions]
        said = f"This failed: {', '.join(done)}. It ended so: {nodes[lost.leaf].info.get('text', '')}"

        async def tell(place: Cursor) -> str:
            try:
                plan: Sequence[str] | None = await rollout.plan(place)
            except EnvFault:
                plan = None
            return f"Do this: {', '.join(plan[: self.ahead])}" if plan else said

        return tell
