"""Long ALFWorld tasks: two objects to find and place, in fifteen to twenty-four turns."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.alfworld.env import AlfWorld


def alfworld_long() -> World:
    """Long tasks of ALFWorld (arXiv 2010.03768): two objects of one kind to find and place, with 16 paths a step.

    Assumes an oracle for the warm-up. Half of the turns of its demonstrations try the last command at once. That wastes
    a turn and returns to the same state, so paths of a task share states.
    """
    return World(
        name="alfworld_long",
        env=AlfWorld(
            task_types=("pick_two_obj_and_place",),
            receptacles=4,
            objects=2,
            max_steps=24,
            repeat_task=True,
            verbs=("go", "open", "take", "move"),
        ),
        policy=Tiny(layers=2, width=128, heads=8, context_tokens=4096),
        limits=Limits(turns=24),
        sampling=Sampling(max_tokens=12),
        optimizer=Optimizer(learning_rate=5e-4),
        warmup=Warmup(demonstrations=1200, epochs=5, learning_rate=2e-3, batch_tokens=1536, shortcuts=0.5),
        schedule=Schedule(steps=30, batch_tasks=2),
        tasks=Tasks(split="train", count=1500),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=15),
    )
