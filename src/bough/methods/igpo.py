"""IGPO (arXiv 2510.14967)."""

from bough.appraise import AnswerProbe
from bough.credit import Igpo
from bough.reward import PotentialGain
from bough.train import Run, World


def igpo(world: World, *, field: str = "answer", prefix: str = "", gain: float = 1.0) -> Run:
    """IGPO (arXiv 2510.14967): pays each turn for how much it raised the policy's probability of the true answer.

    Assumes tasks with a true answer, the field `field` of their data. `prefix` begins an answer. The probe costs one
    score for each turn. The world's rewards stay; in the paper the last turn has the F1 of the answer. The release
    counts a repeated word once and pays -2 for tags without their counterpart: `env.metric=set_f1 env.unpaired=-2` on
    the world `search`.

    Try: `bough train 'igpo(field=answers)' --on search`
    """
    probe, paid = AnswerProbe(field=field, prefix=prefix), PotentialGain(weight=gain)
    return world.run(appraisers=(probe,), rewards=(*world.rewards, paid), credit=Igpo())
