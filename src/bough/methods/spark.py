"""SPARK (arXiv 2512.03244)."""

from bough.appraise import Verifications
from bough.credit import Verified
from bough.credit.verified import Design
from bough.reward import FormatConstraint, Judged
from bough.train import Run, World
from bough.tree.needs import POLICY


def spark(
    world: World,
    *,
    role: str = POLICY,
    n: int = 1,
    design: Design = "selective",
    answer: str = "",
    least_steps: int = 1,
    most_steps: int | None = None,
) -> Run:
    """SPARK (arXiv 2512.03244): a judge's verdicts on results and steps are the only reward, under a format constraint.

    Assumes a frozen judge that verifies steps: set `role` and `models`, such as `FrozenCheckpoint`. With the policy as
    its own judge, the default, the reward moves with the policy, which collapses in the paper. `n` verifications vote.
    `answer` is a regular expression of the form of answers. The world's rewards stay as metrics, without an effect.
    The paper trains its judge on the majority of 16 verifications by a larger model; here `n=16` asks that model.

    Try: `bough train 'spark(role=judge)' --on frozenlake models='{judge: StartingWeights}'`
    """
    return world.run(
        appraisers=(Verifications(role=role, n=n),),
        rewards=(
            *world.rewards,
            Judged(column="verdict"),
            Judged(column="steps"),
            FormatConstraint(answer=answer, least_steps=least_steps, most_steps=most_steps),
        ),
        credit=Verified(design=design),
    )
