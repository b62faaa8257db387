"""SPaR (arXiv 2412.11605)."""

from dataclasses import replace

from bough.credit import Searched
from bough.needs import POLICY
from bough.objective import Dpo, Imitation, Pairs, Sum
from bough.rewrite import Refined
from bough.searches.spar import spar as refining
from bough.train import Demonstrations, Run, World


def spar(world: World, *, rounds: int = 3, batch_tasks: int = 64, judge: str = POLICY) -> Run:
    """SPaR (arXiv 2412.11605): prefers the refined answer that a judge accepts to the first answer, by DPO.

    Assumes an environment in which each action is a whole answer that the next may replace, and a model that can judge.
    A step of the run is a round: a search refines a first answer of `batch_tasks` tasks, and a pass over the pairs
    follows. The policy also imitates its accepted refinements and, where it is the judge, the judgements with the
    majority (`Refined`), so it becomes a better refiner and judge for the next round. DPO with beta 0.1 and imitation
    with a weight of 0.1 are those of the released code, which trains the refiner as a model of its own and mixes in
    other data.

    In three rounds on `code`, with a judge that is always right, at most 3 of 64 tasks had an accepted refinement, and
    held-out success fell from 52 % to 37 %: so few examples are trained with the world's learning rate.

    The judge must be a language model. The judgements of a small policy that never learned to judge cannot be parsed:
    with `judge="policy"` no answer is accepted, and there is no pair (`questions/unanswered`, `policy/pairs`).

    Try: `bough train 'spar(judge=judge)' --on code env.attempts=4 limits.turns=4 policy.context_tokens=1024
    models.judge='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        world: The world.
        rounds: Number of rounds.
        batch_tasks: Tasks of a round.
        judge: The role whose model judges and criticises; with another than "policy" set `models`.
    """
    return world.run(
        explorer=refining(first=1, depth=4, role=judge),
        credit=Searched(),
        objective=Sum(
            terms=(Dpo(pairs=Pairs(unit="turn")), Imitation(coefficient=0.1, of="demonstrations")),
        ),
        demonstrations=Demonstrations(revise=Refined(judge=judge == POLICY)),
        filters=(),
        regularizers=(),
        optimizer=replace(world.optimizer, epochs=1, warmup_steps=0),
        reference="step",
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
