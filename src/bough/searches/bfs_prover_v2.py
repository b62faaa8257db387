"""BFS-Prover-V2: a planner's subgoals, provers that share states, likelihood."""

from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.log_ratio import PathRating
from bough.search.q_star import Likely
from bough.search.search import Search
from bough.search.shared_states import KnownActions, ShareStates
from bough.search.subgoal import REACHED, SubgoalHint, SubgoalValue
from bough.search.subgoal_search import SubgoalSearch


def bfs_prover_v2(
    provers: int = 4, width: int = 4, alpha: float = 2.0, expansions: int = 100, revisions: int = 2, attempts: int = 2
) -> SubgoalSearch:
    """BFS-Prover-V2 (arXiv 2509.06493): a planner's subgoals, provers that share states, likelihood; needs forks.

    Needs state keys, and an engine that scores tokens. A planner divides the task into subgoals. For each one a search
    as `bfs_prover()` begins at the end of the fixed path: `provers` nodes are expanded at once, each with `width`
    actions, until a state reaches the subgoal or the environment reports success. When the search fails the planner
    divides the rest again. All searches share the status of states: of equal states one is expanded, a state that an
    earlier search of the subgoal tried in vain is pruned, and a solution that it found is repeated.

    In the paper a subgoal is a statement that Lean checks, here the role's model answers whether a state reaches it.
    The likelihood is that of the action without the hint, normalised by the depth from the start of the task. The
    method `bfs_prover_v2` trains the prover.
    """
    return SubgoalSearch(
        search=Search(
            select=Best(by=PathRating(alpha=alpha), width=provers),
            expand=KnownActions(expand=Sample(width=width, hint=SubgoalHint())),
            rate=Likely(),
            evaluate=SubgoalValue(),
            prune=(ShareStates(),),
            eager=True,
            success_value=REACHED,
            stop_value=REACHED,
            answer_at_any_node=True,
            rounds=max(1, -(-expansions // provers)),
        ),
        revisions=revisions,
        attempts=attempts,
    )
