"""Tic-tac-toe in self-play, where an action is a written search and a move."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import InternalSearch, OpenSpiel
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World


def board_games(game: str = "tic_tac_toe", depth: int = 2, width: int = 2, tree_tokens: int = 96) -> World:
    """Board games by internal search (arXiv 2412.12119): the policy writes a small game tree, then its move.

    One policy plays both seats. Trains in minutes on two CPU cores. Needs the extra `games`. Assumes an oracle for the
    warm-up: perfect play. `policies.player_1='PerfectPlay()'` is an opponent.

    Args:
        game: A game of OpenSpiel without chance and hidden information.
        depth: Levels of the trees that the warm-up shows.
        width: Actions of each state in them.
        tree_tokens: Maximum length of an action, the tree included.
    """
    return World(
        name="board_games",
        env=InternalSearch(env=OpenSpiel(game=game, spaced=True), depth=depth, width=width),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=16),
        sampling=Sampling(max_tokens=tree_tokens),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=40, epochs=8, learning_rate=2e-3, batch_tokens=2048),
        schedule=Schedule(steps=60, batch_tasks=8),
        tasks=Tasks(split="train", count=40),
        evaluation=Evaluation(tasks=Tasks(split="test", count=5), every=20),
    )
