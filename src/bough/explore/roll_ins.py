"""Roll-ins and roll-outs of a guide: where the policy acts, and where the guide does."""

import random
from typing import Annotated

from bough.engine import EngineFault
from bough.env import EnvFault
from bough.explore.teach import teach, teacher_needs
from bough.needs import FORKS, Need
from bough.piece import AtLeast, Between, piece
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import Cursor
from bough.rollout.rollout import Rollout
from bough.rollout.together import together
from bough.tree import Outcome, TruncatedBy
from bough.varying import constant


@piece
class RollIns:
    """RLGF (arXiv 2306.11816): a guide leads to states, or completes the policy's paths and so values its actions.

    Each of `n` roll-ins takes a random number of turns, from 0 to the limit of a path less 1. From the state that it
    reaches the policy takes `width` actions, and each is rolled out to the end. The kind is drawn for each roll-in:

        with probability `ppo`   PPO++        the guide rolls in with probability `mix`, else the policy;
                                              the policy rolls out
        else                     AggreVaTeD   the policy rolls in, the guide rolls out

    Roll-ins of an episode of five turns, p the policy and g the guide:

        PPO++        g g [p p p]   [p p p]          AggreVaTeD        p p [p] g g   [p] g g          [ ] one branch

    ppo=0 is AggreVaTeD (arXiv 1703.01030): the return of a branch is the guide's value of the policy's action. ppo=1 is
    PPO++, and ppo between them is LOLS (1502.02206). The guide's actions are marked `TEACHER` and have no loss.
    `TreeRpo(within_chains=True)` compares the branches of a state. The policy's own turns of a roll-in have no signal
    there: their returns depend on how long the guide waited. A roll-in that ends early branches at its last state. A
    branch that fails by a fault is left out.

    The paper's text has one state a path and the tokens of both parts; here states have `width` actions, and turns are
    steps. D2LOLS, AggreVaTeD first and then PPO++, is two runs.

    Attributes:
        guide: The role whose model is the guide; "" for the oracle.
        n: Number of roll-ins.
        width: Actions of the policy in the state that a roll-in reaches.
        ppo: Probability of PPO++, in [0, 1].
        mix: Probability that the guide rolls in for PPO++, in [0, 1].
    """

    guide: str = ""
    n: Annotated[int, AtLeast(1)] = 4
    width: Annotated[int, AtLeast(1)] = 4
    ppo: Annotated[float, Between(0, 1)] = 0.5
    mix: Annotated[float, Between(0, 1)] = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """Forks, and the guide."""
        return frozenset({FORKS}) | teacher_needs(self.guide)

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        root = await rollout.root()
        # A guide's action costs at most what the policy's does.
        most = [rollout.max_cost(root, attempts=1 + self.width)] * self.n
        await together(rollout, [self._roll_in(rollout, root, number) for number in range(self.n)], most)
        for node in rollout.builder.nodes:
            if node.parent == root.node:
                node.chain = node.branch // self.width

    async def _roll_in(self, rollout: Rollout, root: Cursor, number: int) -> None:
        """Roll in, and branch at the state reached; at the root the branches have numbers of their own."""
        rng = random.Random(rollout.seed("roll-in", number))
        ppo, guided = rng.random() < self.ppo, rng.random() < self.mix
        turns = rng.randrange(constant(rollout.limits.turns))
        here, first = root, number * self.width
        for _ in range(turns):
            after = await self._act(rollout, here, first, guided=ppo and guided)
            if not isinstance(after, Cursor):
                break
            here, first = after, 0
        # The numbers at a state other than the root follow that of the roll-in's own next action.
        base = first if here is root else 1
        calls = [self._branch(rollout, here, base + number, guided=not ppo) for number in range(self.width)]
        await together(rollout, calls, [rollout.max_cost(here)] * self.width)

    async def _branch(self, rollout: Rollout, cursor: Cursor, branch: int, *, guided: bool) -> None:
        """An action of the policy, and a roll-out."""
        after = await rollout.advance(cursor, branch=branch)
        while isinstance(after, Cursor):
            after = await self._act(rollout, after, 0, guided=guided)

    async def _act(self, rollout: Rollout, cursor: Cursor, branch: int, *, guided: bool) -> Cursor | Outcome:
        """A turn of the guide or the policy."""
        if not guided:
            return await rollout.advance(cursor, branch=branch)
        try:
            plan = await teach(rollout, cursor, self.guide)
        except BudgetExceeded as short:
            rollout.stop(cursor, short.budget)
            return Outcome.TRUNCATED
        except (EnvFault, EngineFault):
            plan = None
        if not plan:
            rollout.stop(cursor, TruncatedBy.NO_PLAN)
            return Outcome.TRUNCATED
        return await rollout.advance(cursor, branch=branch, action=plan[0], ahead=plan)
