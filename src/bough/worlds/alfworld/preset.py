"""ALFWorld: household tasks in generated rooms."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.objective import Entropy
from bough.policy import Tiny
from bough.reward import EnvReward, InvalidAction
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.alfworld.env import AlfWorld


def alfworld() -> World:
    """Small rooms with ALFWorld's rules, far easier than its official games (arXiv 2010.03768).

    Assumes an oracle for the warm-up: it searches, as the agent has to. Half of the turns of its demonstrations try the
    last command at once, which wastes a turn. The held-out rooms are in floor plans that do not occur in training.
    """
    return World(
        name="alfworld",
        env=AlfWorld(
            task_types=("pick_and_place_simple",),
            receptacles=3,
            objects=2,
            max_steps=9,
            repeat_task=True,
            verbs=("go", "open", "take", "move"),
        ),
        policy=Tiny(layers=2, width=128, heads=8, context_tokens=1024),
        limits=Limits(turns=9),
        sampling=Sampling(max_tokens=10),
        rewards=(EnvReward(), InvalidAction(penalty=0.02)),
        regularizers=(Entropy(coefficient=0.01),),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=4, warmup_steps=20),
        warmup=Warmup(demonstrations=1500, epochs=5, learning_rate=2e-3, batch_tokens=1024, shortcuts=0.5),
        schedule=Schedule(steps=30, batch_tasks=16),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=10),
    )
