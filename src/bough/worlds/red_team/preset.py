"""Red teaming: attacks on a scripted target, rated by a scripted safety classifier."""

from bough.engine import Sampling
from bough.env import ScriptedSeats
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.red_team.env import RedTeam, ScriptedClassifier, ScriptedTarget


def red_team(max_turns: int = 5) -> World:
    """Red teaming over several turns, far smaller and more harmless than DialTree-RPO's (arXiv 2510.02286).

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up. Models are the target and the classifier with
    `env='RedTeam()' policies.target='OpenAi(...)' policies.classifier='OpenAi(...)'`.

    Args:
        max_turns: Attacks of a dialogue.
    """
    scripts = {"target": ScriptedTarget(), "classifier": ScriptedClassifier()}
    return World(
        name="red_team",
        env=ScriptedSeats(env=RedTeam(max_turns=max_turns), scripts=scripts),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=max_turns),
        sampling=Sampling(max_tokens=8),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=40, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=120),
        evaluation=Evaluation(tasks=Tasks(split="test", count=12), every=20),
    )
