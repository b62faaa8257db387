"""Games of OpenSpiel against a scripted opponent."""

from bough.engine import Sampling
from bough.env import OpenSpiel, RandomAction, Script, ScriptedSeats
from bough.learner import Optimizer
from bough.objective import Entropy
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World

RANDOM = RandomAction()


def games(opponent: Script = RANDOM) -> World:
    """Pig of OpenSpiel (arXiv 1908.09453), a game of dice up to 20 points, against a random opponent.

    Trains in minutes on two CPU cores. Needs the extra `games`. Assumes an oracle for the warm-up: tree search.

    Args:
        opponent: The script of the second player, such as `TreeSearchPlay(simulations=20)`.
    """
    return World(
        name="games",
        env=ScriptedSeats(env=OpenSpiel(game="pig(winscore=20)"), scripts={"player_1": opponent}),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=2048),
        limits=Limits(turns=30),
        sampling=Sampling(max_tokens=3),
        regularizers=(Entropy(coefficient=0.02),),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=60, epochs=4, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=1000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
