"""AgentSwift: MCTS over edits of a design; a value model chooses what is evaluated."""

from bough.search.agent_swift import EachKind, GuidedDescend
from bough.search.backup import MeanBackup
from bough.search.combine import EnvReturn
from bough.search.search import Search
from bough.search.surrogate import Surrogate


def agent_swift(width: int = 2, evaluations: int = 30, optimism: float = 0.5) -> Search:
    """AgentSwift (arXiv 2506.06017): MCTS over edits of a design; a value model chooses what is evaluated; needs forks.

    For environments in which each action is an edit and each state a design with a score, such as `AgentDesign`. A
    round descends by UCT plus the uncertainty of the value model to an edit that is not executed yet, the one with the
    highest rating of its siblings. It executes this edit, which is a real evaluation, and samples `width` edits of each
    kind (recombination, mutation, refinement) of the new design. Values are the change of the score since the start.
    Any design may be the answer.

    Experimental: written from the abstract. The paper's value model is a language model, trained on 220 evaluated
    agents of several tasks; here it learns from the evaluations of this search. The form of the uncertainty is not
    known. The paper's library has published components, and a model writes the code of new ones.

    Try: `bough train grpo --on agent_design`
    Try: `bough search grpo 'agent_swift()' --on agent_design
    engine='OpenAi(model=qwen3:8b, base_url=http://localhost:11434/v1)'`

    Args:
        width: Samples of each kind for a design.
        evaluations: Rounds, each with one evaluation after the first.
        optimism: Weight of the value model's standard deviation.
    """
    return Search(
        select=GuidedDescend(model=Surrogate(optimism=optimism)),
        expand=EachKind(width=width),
        rate=Surrogate(optimism=optimism),
        evaluate=EnvReturn(),
        backup=MeanBackup(),
        success_value=None,
        stop_value=None,
        answer_at_any_node=True,
        rounds=evaluations,
    )
