"""Step-GRPO (R1-Router, arXiv 2505.22095)."""

from bough.appraise import RubricJudge
from bough.ask.prompts import NumberParser
from bough.credit import StepGrpo
from bough.reward import Judged
from bough.train import Run, World

STEP = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nIt then did this:\n{action}\n\n"
    "Was this the right next step: the right question, sent to the right place? Rate it from 0 to 10. Answer with the "
    "number."
)


def step_grpo(world: World, *, discount: float = 0.95, judge: str = "", weight: float = 1.0) -> Run:
    """Step-GRPO (R1-Router, arXiv 2505.22095): compares turns of one number with each other.

    Assumes comparable turns of one number, and a reward for each turn. With `judge`, a model of that role rates every
    turn, and the rating is added to its reward; else the environment's rewards count alone. The return of a turn is its
    reward plus what follows, discounted; `discount=0` compares each turn by its own reward, as the paper does.
    `RoutedSearch` is an environment like the paper's, which routes queries among knowledge bases. Experimental: written
    from the abstract. The paper's policy reads images, too, and it rewards steps by annotated ones.

    Try: `bough train 'step_grpo(discount=0)' --on routed_search`
    Try: `bough train 'step_grpo(discount=0, judge=judge)' --on routed_search
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world.
        discount: Weight of later rewards per turn.
        judge: The role of the model that rates turns, such as "judge" or "policy"; "" for none.
        weight: Weight of the ratings, which are from 0 to 1.
    """
    run = world.run(credit=StepGrpo(discount=discount))
    if not judge:
        return run
    rated = RubricJudge(column="step", each="step", prompt=STEP, read=NumberParser(), role=judge)
    return run.replace(appraisers=(rated,), rewards=(*world.rewards, Judged(column="step", weight=weight)))
