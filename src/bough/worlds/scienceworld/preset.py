"""ScienceWorld: find and classify living and non-living things in a house."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import Replay
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.scienceworld.env import ScienceWorld


def scienceworld() -> World:
    """ScienceWorld (arXiv 2203.07540), its easiest topics with all simplifications; task and room in every prompt.

    Needs the extra `scienceworld` and Java. Assumes the simulator's gold paths for the warm-up. The hard topics are for
    models of billions of parameters.
    """
    env = ScienceWorld(
        topics=("find-animal", "find-living-thing", "find-non-living-thing", "find-plant"),
        max_steps=20,
        show_room=True,
        repeat_task=True,
    )
    return World(
        name="scienceworld",
        env=Replay(env=env, keep=32),
        policy=Tiny(layers=2, width=128, heads=4, context_tokens=1024),
        context=Window(turns=1),
        limits=Limits(turns=20),
        sampling=Sampling(max_tokens=16),
        optimizer=Optimizer(learning_rate=4e-4, minibatches=2),
        warmup=Warmup(demonstrations=60, epochs=8, learning_rate=2e-3, batch_tokens=4096),
        schedule=Schedule(steps=50, batch_tasks=4),
        tasks=Tasks(split="train", count=200),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=25),
    )
