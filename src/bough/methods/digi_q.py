"""Digi-Q (arXiv 2502.15760)."""

from collections.abc import Sequence
from dataclasses import replace

from bough.credit import BestCandidate
from bough.explore import EqualScore, Slate
from bough.objective import Imitation, Normalizer
from bough.policy import FrozenCritic
from bough.train import Run, World


def digi_q(world: World, *, data: Sequence[str] = (), collect: int = 10, candidates: int = 8) -> Run:
    """Digi-Q (arXiv 2502.15760): an offline Q-function on frozen features, and imitation of the best of N actions.

    Assumes contexts that determine a turn's value. The first `collect` steps gather trees; with `data`, files of trees
    of an earlier run, they may be 0. A Q-function then learns from them by TD learning on hidden states of the policy
    before its first update, and stays fixed. From then on `candidates` actions are sampled in each state, and the one
    of the highest Q is imitated if its advantage is above 0; one of them, drawn uniformly, is executed. The rewards of
    these paths are not used: they only lead to states; the paper takes the states of its data. The paper uses the
    layers of a vision-language model that was tuned on changes of the screen.
    """
    critic = FrozenCritic(data=data, warmup_steps=collect)
    return world.run(
        explorer=Slate(quality=EqualScore(), candidates=candidates),
        hooks=(critic,),
        credit=BestCandidate(),
        objective=Imitation(),
        normalizer=Normalizer(by="unique_tokens"),
        optimizer=replace(world.optimizer, minibatches=1),
        steps=world.schedule.steps + collect,
    )
