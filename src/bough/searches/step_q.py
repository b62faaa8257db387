"""Step-level Q: another model's preferences steer the actions of an agent."""

from bough.search.commit_to_executed import CommitToExecuted
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.log_ratio import LogRatio
from bough.search.search import Search


def step_q(samples: int = 5, beta: float = 0.1, model: str = "q", reference: str = "reference") -> Search:
    """Step-level Q (arXiv 2409.09345): a model that DPO trained on steps chooses among the agent's actions; one path.

    At each turn the agent samples `samples` actions, and the one with the highest Q is executed:

        Q(s, a) = beta * (log model(a | s) - log reference(a | s))

    The model of the role `model` is that of a run of step DPO on the pairs of a search, such as `mcts_dpo`, and the one
    of the role `reference` is the same before DPO; the agent stays as it is. All three have one tokenizer. The paper's
    Q model is small and its agents large. No state is stepped twice, but the environment check is that of every search.

    Try: `bough search runs/grpo_sokoban 'step_q()'
    models='{q: FrozenCheckpoint(run=runs/mcts_dpo_sokoban), reference: FrozenCheckpoint(run=runs/grpo_sokoban)}'`

    Args:
        samples: Number of actions sampled in a state.
        beta: The beta of DPO; it does not change the choice.
        model: The role of the Q model.
        reference: The role of its reference.
    """
    return Search(
        select=Level(),
        expand=Sample(width=samples),
        rate=LogRatio(beta=beta, model=model, role=reference),
        prune=(CommitToExecuted(),),
        eager=True,
        max_evaluated=1,
    )
