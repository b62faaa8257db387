"""Games of OpenSpiel against a scripted opponent."""

from bough.engine import Sampling
from bough.env import OpenSpiel, RandomAction, Script, ScriptedSeats
from bough.learner import Optimizer
from bough.objective import Entropy
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World

RANDOM = RandomAction()


def games(opponent: Script = RANDOM) -> World:
    """Tic-tac-toe of OpenSpiel (arXiv 1908.09453), after four random moves, against a random opponent.

    Trains in minutes on two CPU cores. Needs the extra `games`. Assumes an oracle for the warm-up: perfect play.

    Args:
        opponent: The script of the second player: `PerfectPlay(mistakes=0.3)`, `TreeSearchPlay(simulations=20)`.
    """
    return World(
        name="games",
        env=ScriptedSeats(env=OpenSpiel(game="tic_tac_toe", opening=4, spaced=True), scripts={"player_1": opponent}),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=8),
        regularizers=(Entropy(coefficient=0.01),),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=400, epochs=6, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=100, batch_tasks=16),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=500),
        evaluation=Evaluation(tasks=Tasks(split="test", count=60), every=20),
    )
