"""ALFWorld: household tasks in generated rooms."""

from bough.engine import Sampling
from bough.env import AlfWorld
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World


def alfworld() -> World:
    """Small rooms with ALFWorld's rules, far easier than its official games (arXiv 2010.03768).

    Assumes an oracle for the warm-up. No room of a held-out floor plan occurs in training.
    """
    return World(
        name="alfworld",
        env=AlfWorld(
            task_types=("pick_and_place_simple", "look_at_obj_in_light"),
            receptacles=4,
            objects=4,
            max_steps=10,
            verbs=("go", "open", "take", "move", "use"),
            repeat_task=True,
        ),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        limits=Limits(turns=10),
        sampling=Sampling(max_tokens=10),
        optimizer=Optimizer(learning_rate=4e-4, minibatches=2),
        warmup=Warmup(demonstrations=400, epochs=4, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=100, batch_tasks=16),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=20),
    )
