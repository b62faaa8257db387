"""CodeTree: strategies, programs, repairs, and a critic that accepts or rejects."""

from bough.search.code_tree import ACCEPTED, ProgramCritic, PruneRegressions
from bough.search.frontier import DepthFirst
from bough.search.ideas import Ideas
from bough.search.search import Search

STRATEGIES = (
    "{instructions}\n\n{observation}\n\n"
    "Name up to {count} different strategies for this program. Write each in one line, the most promising first."
)
REPAIRS = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\nThe critic wrote: {review}\n"
    "The strategy of the program: {strategy}\n"
    "Name up to {count} different ways to repair the last program. Write each in one line, the most promising first."
)


def code_tree(width: int = 3, programs: int = 20) -> Search:
    """CodeTree (arXiv 2411.04329): strategies, programs, repairs, and a critic that accepts or rejects; needs forks.

    For environments in which an action is a program, such as those of the world `code` with `env.ends=attempts`,
    `env.visible=2`, `env.attempts=3` and `limits.turns=3`. At the root a thinker lists up to `width` strategies, and
    the policy writes a program for each. A program is run when it is selected, depth first and in the order of the
    list. `ProgramCritic` values it by the visible tests: it rates a program that fails one, and accepts or rejects a
    program that passes all. An accepted program ends the search. The thinker then lists repairs from the results of the
    tests and the critic's text; a program with a lower value than the one it repairs is not repaired further. The
    hidden tests have no influence where a task has visible ones; without them the reward is the share of tests.
    `limits.turns` is the depth (3 in the paper), `programs` the maximum number of programs. The answer is the program
    of the highest value.

    The released code also prunes a program of equal value that lies deeper than its rating, and accepts a program at
    the last depth whose parent passed the visible tests, too. Without an accepted program its answer is the last one
    that failed a visible test.
    """
    return Search(
        select=DepthFirst(),
        expand=Ideas(width=width, strategies=STRATEGIES, repairs=REPAIRS, text="Follow this hint of an expert: {idea}"),
        evaluate=ProgramCritic(),
        prune=(PruneRegressions(),),
        success_value=None,
        stop_value=ACCEPTED,
        answer_at_any_node=True,
        rounds=programs + 1,
    )
