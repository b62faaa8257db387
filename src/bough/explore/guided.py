"""Attempts, and guided attempts where all of them fail."""

from collections.abc import Sequence
from typing import Annotated

from bough.env import EnvFault
from bough.piece import AtLeast, piece
from bough.rollout.attempt import Attempt, Hints, attempt_with_retries
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import AgentAction, action_text, text_in


@piece
class Guided:
    """Experimental: Agent-RLVR (arXiv 2506.11425): where all attempts fail, new ones get hints.

    `n` chains are sampled. If none of them solves the task, `again` more are sampled, with a hint in the prompt of
    every action. The hint is the next `ahead` actions of the environment's oracle. Without an oracle or a plan it is
    the actions of one failed attempt and its last observation. With a success, and without:

        0 0 1 0         ->  no more attempts
        0 0 0 0         ->  0 0 0 0 and, with hints, 1 0 1 1

    The tree does not hold the hint: the paths read as if the policy had acted without it. So their tokens have no
    log-probabilities, and their actions count as a teacher's. Losses over samples skip them, while their returns are in
    the baseline of the failed attempts. `demonstrations.from_trees=true` learns from the successful ones: a preference
    loss such as `Dpo` prefers them to the attempts that failed, as in the paper; `Imitation` and `SftMix` imitate them.

    Written from the abstract and a summary. The paper's guidance comes from a teacher with access to tests and plans;
    its environments run code.

    Attributes:
        n: Attempts without guidance.
        again: Attempts with guidance.
        ahead: Number of the oracle's next actions in the hint.
        retries: How often an attempt that fails by a fault is retried.
    """

    n: Annotated[int, AtLeast(1)] = 4
    again: Annotated[int, AtLeast(0)] = 4
    ahead: Annotated[int, AtLeast(1)] = 1
    retries: Annotated[int, AtLeast(0)] = 2

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        most = rollout.max_cost(root, attempts=self.retries + 1)
        calls = [self._play(rollout, root, number, None) for number in range(self.n)]
        attempts = await together(rollout, calls, [most] * self.n)
        lost = [each for each in attempts if each is not None and each.unsolved]
        if not lost or any(each is not None and each.success for each in attempts):
            return
        hints = [self._hints(rollout, lost[number % len(lost)]) for number in range(self.again)]
        calls = [self._play(rollout, root, self.n + at, hint) for at, hint in enumerate(hints)]
        await together(rollout, calls, [most] * self.again)

    async def _play(self, rollout: Rollout, root: Cursor, number: int, hints: Hints | None) -> Attempt | None:
        step = self.n + self.again
        return await attempt_with_retries(rollout, root, number=number, step=step, retries=self.retries, hints=hints)

    def _hints(self, rollout: Rollout, lost: Attempt) -> Hints:
        """The hints after a failed attempt."""
        nodes = rollout.builder.nodes
        done = [text_in(nodes[action].info) or "" for action in lost.actions]
        failure = f"This failed: {', '.join(done)}. It ended so: {text_in(nodes[lost.leaf].info) or ''}"

        async def hint(cursor: Cursor) -> str:
            try:
                plan: Sequence[AgentAction] | None = await rollout.plan(cursor)
            except EnvFault:
                plan = None
            return f"Do this: {', '.join(map(action_text, plan[: self.ahead]))}" if plan else failure

        return hint
