"""PRS of PRS + VSPO (arXiv 2512.07478)."""

from bough.reward import StagedReward
from bough.reward.stages import AnswerBleu, Finished, JudgedQuality, Solved, Stage, ValidActions, WellFormed
from bough.train import Run, World


def prs(world: World, *, field: str = "", column: str = "", weight: float = 1.0) -> Run:
    """Progressive reward shaping (PRS, arXiv 2512.07478): form first, then valid calls, then an answer, then quality.

    Assumes several paths of each task. A later stage pays only after the earlier ones are met wholly (`StagedReward`).
    The quality is success; with `field`, a field of the task's data, the length-aware BLEU of the last action with the
    right answers there; with `column` the value of an appraiser at the end of the path, for long answers (set
    `appraisers`). The world's rewards stay, and are part of the return.

    Try: `bough train 'prs(field=answers)' --on search`
    """
    quality: Stage = Solved()
    if field:
        quality = AnswerBleu(field=field)
    elif column:
        quality = JudgedQuality(column=column)
    shares = (0.1 * weight, 0.1 * weight, 0.1 * weight, 0.7 * weight)
    staged = StagedReward(stages=(WellFormed(), ValidActions(), Finished(), quality), shares=shares)
    return world.run(rewards=(*world.rewards, staged))
