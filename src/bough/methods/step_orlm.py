"""StepORLM (arXiv 2509.22558)."""

from dataclasses import replace

from bough.appraise import Verifications
from bough.credit import SolverAndJudge
from bough.curate import NonZeroAdvantage
from bough.needs import POLICY
from bough.objective import WDpo
from bough.reward import Judged
from bough.roles import JudgeWeights, StartingWeights, TrainedJudge
from bough.train import Run, World


def step_orlm(world: World, *, judge: str = "judge", n: int = 1, beta: float = 0.1, evolves: bool = True) -> Run:
    """StepORLM (arXiv 2509.22558): pairs of paths by the solver's verdict, then by a judge of steps; weighted DPO.

    Assumes success as an exact verdict, and several paths of a task. The judge is a second model with weights of its
    own: a copy of the policy after the warm-up that imitates those of its verifications whose verdict on the result is
    the solver's, after every batch; the paper trains both in three rounds. With `evolves=false` it is frozen, by
    default the weights before the warm-up; with `judge=policy` the policy is its own judge. The loss has no reference,
    so the learning rate is a quarter of the world's. Experimental: not compared with the paper's results.

    A judge must write verdicts from the first step on; the paper first trains it on written ones. A copy of the policy
    does so with a language model of some billions of parameters. The verdicts of one with 135 million cannot be parsed,
    and the run stops at its first step.

    Nothing bounds the margin of a pair, so long runs lower the probability of sampled actions: with a judge that is
    always right, 28 steps on `linear_programs` changed the mean of `beta` times the margin from .8 to 19, the entropy
    from 1.0 to 4.8 and success from 12 % to 2 %. The first 13 steps do no harm; the paper has three rounds.

    Try: `bough train 'step_orlm(evolves=false)' --on linear_programs warmup.demonstrations=160 warmup.epochs=10
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    With a judge that learns, or a frozen one of another run:

        bough train step_orlm --on linear_programs --policy 'pretrained(path=FOLDER)'
        bough train 'step_orlm(evolves=false)' --on linear_programs models='{judge: FrozenCheckpoint(run=RUN)}'

    At inference the judge chooses the best of 4 paths:

        bough search RUN 'best_by_judge(n=4)' models='{judge: FrozenCheckpoint(run=RUN, judge=true)}'
    """
    asks = Verifications(role=judge, n=n)
    own = judge != POLICY
    return world.run(
        appraisers=(asks,),
        hooks=(TrainedJudge(verifications=asks),) if own and evolves else (),
        models={judge: JudgeWeights() if evolves else StartingWeights()} if own else {},
        rewards=(*world.rewards, Judged(column="steps")),
        credit=SolverAndJudge(),
        objective=WDpo(beta=beta, max_weight=1.0, reference=False),
        regularizers=(),
        filters=(NonZeroAdvantage(),),
        optimizer=replace(world.optimizer, learning_rate=world.optimizer.learning_rate / 4),
    )
