"""ExIt (arXiv 2509.04575)."""

from dataclasses import replace

from bough.env import SelfIteration
from bough.hooks import ExIt
from bough.reward import Diversity
from bough.train import Run, World


def exit(  # noqa: A001 - the name of the paper
    world: World, *, answers: bool = False, diverge: float = 0.5, bonus: float = 0.5
) -> Run:
    """ExIt (arXiv 2509.04575): half of the tasks begin in the middle of earlier paths whose groups disagreed.

    Assumes an environment in which the same actions lead to the same state. Experimental: written from the abstract and
    summaries. A path of a group with unequal returns is cut at a random turn and kept; its priority is the variance of
    the returns.

    With `answers` each action is a whole answer, as in the paper: an episode is one answer, to a task or after a
    history, and after a history an instruction asks for a better answer, or for one that is very different. Rewarded
    answers that differ from their group get a bonus. To measure several answers in a row, evaluate with a larger
    `limits.turns`. Without `answers` the rest of an episode follows a history.

    Try: `bough train 'exit(answers=true)' --on code env.env.attempts=4 env.env.visible=2`

    Args:
        world: The world.
        answers: Whether each action is a whole answer.
        diverge: Probability that the instruction asks for a different answer.
        bonus: Weight of the bonus.
    """
    if not answers:
        return world.run(hooks=(ExIt(),))
    return world.run(
        env=SelfIteration(env=world.env),
        limits=replace(world.limits, turns=1),
        hooks=(ExIt(diverge=diverge),),
        rewards=(*world.rewards, Diversity(weight=bonus)),
    )
