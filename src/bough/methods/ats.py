"""ATS (arXiv 2310.10686)."""

from dataclasses import replace
from typing import Literal

from bough.context import CallParser, PromptedParser, Tagged
from bough.credit import Filtered
from bough.objective import SftMix
from bough.rewrite import SearchTraces
from bough.searches.ats import ats as search
from bough.searches.mcts import mcts
from bough.train import Demonstrations, Run, World


def ats(
    world: World,
    *,
    source: Literal["trees", "hints"] = "trees",
    simulations: int = 8,
    rounds: int = 3,
    batch_tasks: int = 64,
    tokens: int = 96,
) -> Run:
    """Autonomous tree-search (arXiv 2310.10686): imitates searches as text, so that the policy writes its own search.

    Assumes an environment that can step a state twice. A step of the run is a round over `batch_tasks` tasks, then four
    passes over its demonstrations. With source="trees" a search by rollouts tries actions, and each solved tree becomes
    text before the actions of its best path (`SearchTraces`). With source="hints", the paper's, the policy gets the
    request to search in its answer (`ats()` of `bough list search`), and its answers on solved tasks are imitated
    without the request. Nothing else is trained. An answer has up to `tokens` tokens, and its action is between tags:
    the parser is `Tagged` where the world's has no other form. A trace has up to eight lines, so that it fits. The
    paper's answers are GPT-4's.
    """
    formed = isinstance(world.parser, PromptedParser | CallParser)
    hinted = source == "hints"
    return world.run(
        explorer=search() if hinted else mcts(width=4, simulations=simulations),
        parser=world.parser if formed else Tagged(),
        sampling=replace(world.sampling, max_tokens=max(world.sampling.max_tokens, tokens)),
        credit=Filtered(max_paths=1),
        objective=SftMix(mu=1.0),
        demonstrations=Demonstrations(
            from_trees=hinted, revise=None if hinted else SearchTraces(characters=24, max_lines=8)
        ),
        regularizers=(),
        filters=(),
        optimizer=replace(world.optimizer, epochs=4, warmup_steps=0),
        steps=rounds,
        batch_tasks=batch_tasks,
        evaluation=replace(world.evaluation, every=1),
    )
