"""Tree-PLV: a greedy tree whose steps are valued by look-ahead completions, as data for a verifier of steps."""

from bough.search.evaluate import RolloutValue
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.prune import BeamWidth
from bough.search.search import Search


def tree_plv(width: int = 5, completions: int = 10, rounds: int = 1000) -> Search:
    """Tree-PLV (arXiv 2407.00390): grows trees by the best step at a time, for a verifier that ranks sibling steps.

    At each node `width` steps are sampled. The reward of a step is the share of `completions` look-ahead completions
    that succeed, and of the open steps only the one of the highest reward is expanded, until none is open. Every
    completion stays in the tree. Then siblings whose rewards differ by a margin train a ranker, and best of n takes
    the path of the highest mean score: three commands.

        bough search runs/grpo_sokoban 'tree_plv()' evaluation.tasks='Tasks(split=train,count=200)' --out found
        bough train-reward found --run runs/grpo_sokoban --out prm labels=pairs estimate=score gap=.2
        bough search runs/grpo_sokoban 'best_of_n(folder="prm",by=mean)'

    The paper grows the tree by steps of a solution's text, here a step is a turn. With exact shares the order of
    siblings is that of the policy's values. The numbers of steps and completions and the mean are not in the abstract;
    they are those of summaries. The paper's verifier is a copy of a 7B model, `path=FOLDER`.

    Args:
        width: Number of sampled steps at a node; equal ones are one.
        completions: Number of look-ahead completions of a step.
        rounds: Maximum number of expanded steps of a path.

    Try: `bough search runs/grpo_sokoban 'tree_plv()' evaluation.tasks='Tasks(split=train,count=200)' --out found`
    """
    return Search(
        select=Level(),
        expand=Sample(width=width),
        evaluate=RolloutValue(n=completions),
        prune=(BeamWidth(width=1),),
        eager=True,
        stop_value=None,
        rounds=rounds,
    )
