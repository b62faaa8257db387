"""SPA-RL (arXiv 2505.20732)."""

from typing import Literal

from bough.credit import Gae
from bough.explore import Chains
from bough.objective import PpoClip, Sum, ValueClip
from bough.policy import ProgressReward, ValueHead
from bough.train import Run, World


def spa_rl(
    world: World,
    *,
    progress: float = 1.0,
    grounding: float = 0.5,
    collect: int = 5,
    head: Literal["mlp", "linear"] = "mlp",
) -> Run:
    """SPA-RL (arXiv 2505.20732): PPO on each turn's learned share of the outcome, and a bonus for executed actions.

    Assumes that a turn's context and action show how far the task is, in the reference's hidden states: where they do
    not, as with models of a few layers, it pays noise and success falls. In the first `collect` steps only the
    estimator learns; see `ProgressReward`. The paid progress replaces the world's rewards, whose sums it learns. The
    batch is that of `ppo`: one path of each of 8 times the world's tasks. Discount 1 and lambda .95 are the released
    trainer's.
    """
    reward = ProgressReward(progress=progress, grounding=grounding, warmup_steps=collect, head=head)
    return world.run(
        explorer=Chains(n=1),
        hooks=(reward,),
        credit=Gae(lam=0.95),
        critic=ValueHead(),
        objective=Sum(terms=(PpoClip(), ValueClip())),
        steps=world.schedule.steps + collect,
        batch_tasks=8 * world.schedule.batch_tasks,
    )
