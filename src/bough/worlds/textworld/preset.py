"""TextWorld: text games in the real engine, in houses of one to several rooms."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.objective import Entropy
from bough.policy import Tiny
from bough.reward import EnvReward, InvalidAction
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.textworld.env import TextWorld


def textworld() -> World:
    """TextWorld (arXiv 1806.11532), with task and admissible commands in every observation (2505.10978).

    Trains in under half an hour on two CPU cores. Needs the extra `textworld`. Assumes an oracle for the warm-up.
    """
    return World(
        name="textworld",
        env=TextWorld(levels=(1, 2), max_steps=12, repeat_task=True),
        policy=Tiny(layers=2, width=128, heads=8),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=8),
        rewards=(EnvReward(), InvalidAction(penalty=0.02)),
        regularizers=(Entropy(coefficient=0.01),),
        optimizer=Optimizer(learning_rate=4e-4, minibatches=4, warmup_steps=20),
        warmup=Warmup(demonstrations=100, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=175, batch_tasks=16),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=150), every=25),
    )
