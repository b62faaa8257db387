"""SPARK (arXiv 2512.03244)."""

from bough.appraise import Verifications
from bough.credit import Verified
from bough.credit.verified import Design
from bough.needs import POLICY
from bough.reward import FormatConstraint, Judged
from bough.roles import TrainedJudge
from bough.train import Run, World


def spark(
    world: World,
    *,
    judge: str = POLICY,
    n: int = 1,
    design: Design = "selective",
    answer: str = "",
    min_steps: int = 1,
    max_steps: int | None = None,
    trains_judge: bool = False,
) -> Run:
    """SPARK (arXiv 2512.03244): a judge's verdicts on results and steps are the only reward, under a format constraint.

    Assumes a frozen judge that verifies steps: set `judge` and `models`, such as `FrozenCheckpoint`. With the policy as
    its own judge, the default, the reward moves with the policy, which collapses in the paper. `n` verifications vote.
    `answer` is a regular expression of the form of answers. The world's rewards stay as metrics, without an effect.

    The paper's judge is trained before, on labels: the majority of 16 verifications of each path by a larger model.
    With `trains_judge` a run does that, and leaves the policy as it is: a copy of the policy imitates the verifications
    all of whose verdicts are the majority's. In the next run this judge is frozen:

        bough train 'spark(judge=verifier,n=16,trains_judge=true)' --on frozenlake name=judge
            models='{verifier: StartingWeights}'
        bough train 'spark(judge=judge)' --on frozenlake models='{judge: FrozenCheckpoint(run=runs/judge, judge=true)}'

    At inference the judge chooses the best of several paths:

        bough search RUN 'best_by_judge(n=8)' models='{judge: FrozenCheckpoint(run=runs/judge, judge=true)}'

    Try: `bough train 'spark(judge=judge)' --on frozenlake
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`
    """
    asks = Verifications(role=judge, n=n)
    return world.run(
        appraisers=(asks,),
        hooks=(TrainedJudge(verifications=asks, agreement="majority", alone=True),) if trains_judge else (),
        rewards=(
            *world.rewards,
            Judged(column="verdict"),
            Judged(column="steps"),
            FormatConstraint(answer=answer, min_steps=min_steps, max_steps=max_steps),
        ),
        credit=Verified(design=design),
    )
