"""SPA-RL (arXiv 2505.20732)."""

from bough.credit import Gae
from bough.critics import ProgressReward, ValueHead
from bough.explore import Chains
from bough.objective import PpoClip, Sum, ValueClip
from bough.train import Run, World


def spa_rl(
    world: World, *, progress: float = 1.0, grounding: float = 0.5, bonus: bool = False, collect: int = 15
) -> Run:
    """SPA-RL (arXiv 2505.20732): PPO on each turn's learned share of the outcome, and a penalty for refused actions.

    Assumes that a turn's context and action show how far the task is. In the first `collect` steps the policy collects
    paths, on which a copy of it learns the progress of turns; see `ProgressReward`, also for `bonus`, the paper's
    reward of executed actions. The progress replaces the world's rewards, whose sums it learns. The batch is that of
    `ppo`: one path of each of 8 times the world's tasks. Discount 1 and lambda .95 are the released trainer's.

    The estimator is then frozen, and a policy that trains on new paths learns to exploit its errors: keep
    `progress/error` below `progress/variance`, or stop. On `sokoban`, after 1,920 paths of 15 steps, it explains a
    quarter of the variance at first; in 25 further steps the reward for progress rises from .25 to .42 and the error
    above the variance, while held-out success falls from 40 % to 22 %. The released code makes one pass of PPO over
    stored paths of the policy before reinforcement learning, so no update changes the rewarded paths.
    """
    reward = ProgressReward(progress=progress, grounding=grounding, bonus=bonus, warmup_steps=collect)
    return world.run(
        explorer=Chains(n=1),
        hooks=(reward,),
        credit=Gae(lam=0.95),
        critic=ValueHead(),
        objective=Sum(terms=(PpoClip(), ValueClip())),
        steps=world.schedule.steps + collect,
        batch_tasks=8 * world.schedule.batch_tasks,
    )
