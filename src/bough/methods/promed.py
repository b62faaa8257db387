"""ProMed (arXiv 2508.13514)."""

from typing import Literal

from bough.appraise import FactGain
from bough.credit import QuestionAnswer
from bough.reward import Judged
from bough.train import Run, World


def promed(
    world: World, *, field: str = "facts", answer: str = "answer", weights: Literal["softmax", "positive"] = "softmax"
) -> Run:
    """ProMed (arXiv 2508.13514): questions are paid the Shapley values of the facts that their replies reveal.

    Assumes tasks with hidden facts, a list of texts in the field `field` of their data, and a true answer in `answer`;
    the last turn of a path is the answer. Tasks without facts pay the result alone. The world's rewards are the result
    and its format. The paper's warm-up on paths of a tree search is `rest_mcts` or `agent_q` here, and its facts are
    found in replies by a model, here by their words.

    Try: `bough train promed --on facts`
    """
    return world.run(
        appraisers=(FactGain(field=field, answer=answer, weights=weights),),
        rewards=(*world.rewards, Judged(column="facts")),
        credit=QuestionAnswer(),
    )
