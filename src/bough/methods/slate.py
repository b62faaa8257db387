"""SLATE (arXiv 2602.23440)."""

from bough import credit
from bough.explore import EarlyAnswerBonus, OracleMatch, Slate, slate_judge
from bough.objective import Normalizer
from bough.train import Run, World


def slate(world: World, *, judge: str = "", answer: str = "", turns: int = 4) -> Run:
    """SLATE (arXiv 2602.23440): five candidates of each action, judged before one is executed.

    Assumes a judge of actions. The paper asks a large model whether the thought of a step, and its query or answer, are
    good, bad or neither, and adds the two scores and a bonus for an early answer: `judge="judge"` does this with the
    model `models.judge=...`. Without it the judge is the environment's oracle, which compares an action with its own.
    Five candidates, a temperature of 0.7, the clip of 0.2 and a mean in which every candidate counts once are the
    paper's, and so are a bonus of 0.1 and 4 turns.

    Try: `bough train 'slate(judge=judge)' --on search
    models='{judge: OpenAi(model=qwen3:8b,base_url=http://localhost:11434/v1)}'`

    Args:
        world: The world.
        judge: The role whose model judges; "" for the oracle.
        answer: Beginning of an action that answers, for the bonus; "" for no bonus. Needs `judge`.
        turns: The turn from which the bonus is 0.
    """
    if answer and not judge:
        raise ValueError(f"slate: got answer={answer!r} and no judge; need judge=..., the role whose model judges")
    quality = slate_judge(judge) if judge else OracleMatch()
    if answer:
        quality = EarlyAnswerBonus(quality=quality, answer=answer, turns=turns)
    return world.run(
        explorer=Slate(quality=quality), credit=credit.SlateCredit(), normalizer=Normalizer(by="unique_tokens")
    )
