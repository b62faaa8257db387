"""ReEx-SQL: decoding that forks after executions, and a vote by results."""

from bough.search.frontier import Level
from bough.search.reex_sql import ForkAfterValid
from bough.search.search import Search
from bough.search.vote import Vote


def reex_sql(start: int = 2, width: int = 2, forks: int = 2) -> Vote:
    """ReEx-SQL (arXiv 2505.12768): decoding that forks after executions, and a vote by results; needs forks.

    `start` paths begin. After a query with a result `width` continuations are sampled, at most `forks` times on a path,
    so there are up to start * width^forks ends, and common turns are sampled once. The answer is that of most paths, by
    the results of their last queries. Experimental: written from the abstract, which does not give the rule of the
    forks; after an error message there is none. In environments other than `Sql` paths fork after valid actions, and
    vote by the texts of their last ones.
    """
    expand = ForkAfterValid(start=start, width=width, forks=forks)
    return Vote(search=Search(select=Level(), expand=expand, stop_value=None), by="result")
